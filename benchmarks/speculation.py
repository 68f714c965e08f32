"""What speculative decoding gives: the same tokens with and without, in turns, on text that repeats and that does not.

    python -m benchmarks.speculation model.mote [--draft small.mote] [--threads 2] [--tokens 128] [--rounds 5]

Prints a Markdown table: median decode tokens a second with and without, and their ratio as the median of the rounds.
"""

from __future__ import annotations

import argparse
import random
from statistics import median

from llm_runner import Model

NAMES = ["Stack", "Queue", "Point", "Matrix", "Parser", "Counter", "Cache", "Graph", "Timer"]
PROGRAM = "import os\n\n\nclass {}:\n    def __init__(self, value):\n        self.value = value\n\n    def "


def cases(model: Model, seed: int) -> dict[str, tuple[list[int], dict]]:
    """Returns prompts and options: greedy decoding of a random model falls into loops, temperature 2 hardly repeats."""
    draw = random.Random(seed)
    vocab_size = model.info["vocab_size"]
    prompt = [draw.randrange(3, vocab_size) for _ in range(64)]
    found = {
        "repetitive (greedy)": (prompt[:8] * 8, {"do_sample": False}),
        "not repetitive (temperature 2)": (prompt, {"do_sample": True, "temperature": 2.0, "top_k": 0, "seed": seed}),
    }
    if model.info["has_tokenizer"]:
        program = model.tokenize(PROGRAM.format(NAMES[seed % len(NAMES)]))
        found["a program (temperature 0.7)"] = (program, {"do_sample": True, "temperature": 0.7, "seed": seed})
    return found


def measure(session, prompt: list[int], options: dict, tokens: int) -> tuple[list[int], dict]:
    session.reset()
    generation = session.generate(prompt, max_new_tokens=tokens, ignore_eos=True, **options)
    generation.text()
    return generation.token_ids, generation.statistics


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--draft")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    model = Model.load(arguments.model)
    draft = Model.load(arguments.draft) if arguments.draft else None
    session = model.session(threads=arguments.threads, draft_model=draft)
    print("| text | off, tok/s | auto, tok/s | ratio | accepted | tokens a call |\n|---|---|---|---|---|---|")
    for name in cases(model, 0):
        rates: dict[str, list[float]] = {"off": [], "auto": []}
        for seed in range(arguments.rounds):
            prompt, options = cases(model, seed)[name]
            ids = {}
            for mode in ("off", "auto") if seed % 2 == 0 else ("auto", "off"):
                ids[mode], statistics = measure(session, prompt, {**options, "speculative": mode}, arguments.tokens)
                rates[mode].append(statistics["decode_tokens_per_second"])
                if mode == "auto":
                    last = statistics
            assert ids["off"] == ids["auto"]
        ratio = median(fast / plain for fast, plain in zip(rates["auto"], rates["off"], strict=True))
        accepted = f"{last['accepted_tokens']} of {last['proposed_tokens']}"
        print(
            f"| {name} | {median(rates['off']):.1f} | {median(rates['auto']):.1f} | {ratio:.2f} | {accepted} | "
            f"{last['mean_run_length']:.1f} |"
        )


if __name__ == "__main__":
    main()
