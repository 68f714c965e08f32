"""How long a chat's next turn takes to its first token, with what the session has read and without.

    python benchmarks/chat_turn.py [MODEL.mote]

Without a file it makes one: random weights of a shape with the tokenizer and chat template of examples/demo. Each turn
is asked three times: of a session that keeps the conversation, of a new session, and of `mote serve` over HTTP, which
keeps it too. The table shows the least of the rounds.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

if not __package__:
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from benchmarks.shapes import SHAPES, write_checkpoint  # noqa: E402

ROOT = Path(__file__).resolve().parents[1]
DEMO = ROOT / "examples" / "demo"
QUESTION = "And what does the next one do? Please answer in a few words, and say where it is defined. "


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n\n")[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument("model", type=Path, nargs="?", help="a .mote file with a chat template")
    parser.add_argument("--shape", choices=SHAPES, default="qwen3-0.6b", help="of the file that is made")
    parser.add_argument("--turns", type=int, default=6)
    parser.add_argument("--reply-tokens", type=int, default=32)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--work", type=Path, default=Path("build/chat_turn"))
    return parser.parse_args(arguments)


def make_model(options: argparse.Namespace) -> Path:
    from llm_export.api import export

    path = options.work / f"{options.shape}.mote"
    if path.exists():
        return path
    demo = json.loads((DEMO / "config.json").read_text())
    same = ("vocab_size", "bos_token_id", "eos_token_id")
    folder = options.work / options.shape
    write_checkpoint(folder, SHAPES[options.shape] | {name: demo[name] for name in same})
    for name in ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja", "generation_config.json"):
        shutil.copy(DEMO / name, folder)
    export(str(folder), path, check="off")
    return path


def conversation(model, options: argparse.Namespace) -> list[list[dict]]:
    """Returns the messages of each turn."""
    messages, turns = [], []
    with model.session(threads=options.threads) as session:
        for _ in range(options.turns):
            messages = [*messages, {"role": "user", "content": QUESTION * 3}]
            turns.append(messages)
            reply = session.chat(messages, do_sample=False, ignore_eos=True, max_new_tokens=options.reply_tokens)
            messages = [*messages, reply.run()]
    return turns


def first_token_ms(session, messages) -> tuple[float, int]:
    start = time.perf_counter()
    reply = session.chat(messages, do_sample=False, ignore_eos=True, max_new_tokens=1)
    reply.run()
    return 1e3 * (time.perf_counter() - start), reply.prompt_tokens


def kept(model, turns, options) -> list[float]:
    with model.session(threads=options.threads) as session:
        return [first_token_ms(session, messages)[0] for messages in turns]


def anew(model, turns, options) -> list[float]:
    times = []
    for messages in turns:
        with model.session(threads=options.threads) as session:
            times.append(first_token_ms(session, messages)[0])
    return times


def served(path: Path, turns, options) -> list[float]:
    command = [
        sys.executable,
        "-m",
        "mote.cli",
        "serve",
        str(path),
        "--port",
        "0",
        "--threads",
        str(options.threads),
    ]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        url = process.stderr.readline().split(" at ")[1].split("/v1")[0]
        try:
            return [_served_ms(url, messages) for messages in turns]
        finally:
            process.terminate()


def _served_ms(url: str, messages) -> float:
    body = json.dumps({"messages": messages, "temperature": 0, "ignore_eos": True, "max_tokens": 1}).encode()
    start = time.perf_counter()
    urllib.request.urlopen(f"{url}/v1/chat/completions", body).read()
    return 1e3 * (time.perf_counter() - start)


def main(arguments: list[str] | None = None) -> None:
    from llm_runner import Model

    options = parse(arguments)
    path = options.model or make_model(options)
    model = Model.load(path)
    turns = conversation(model, options)
    tokens = []
    with model.session(threads=options.threads) as session:
        tokens = [first_token_ms(session, messages)[1] for messages in turns]
    ways = {"kept": kept, "anew": anew, "served": lambda _, *rest: served(path, *rest)}
    best = {name: [float("inf")] * len(turns) for name in ways}
    for _ in range(options.rounds):
        for name, way in ways.items():
            best[name] = [min(pair) for pair in zip(best[name], way(model, turns, options), strict=True)]
    print(
        "| turn | prompt tokens | session that keeps it, ms | new session, ms | over HTTP, ms |\n|---|---|---|---|---|"
    )
    for i, count in enumerate(tokens):
        print(f"| {i + 1} | {count} | {best['kept'][i]:.1f} | {best['anew'][i]:.1f} | {best['served'][i]:.1f} |")


if __name__ == "__main__":
    main()
