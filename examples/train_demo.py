"""Trains the demo checkpoint and its draft from the Python standard library."""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
from training import corpus, dialogues, loop, model, tokenizer
from training.data import Dataset
from training.evaluate import evaluate


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    here = Path(__file__).parent
    parser.add_argument("--out", type=Path, default=here, help="folder for demo/ and demo-draft/")
    parser.add_argument("--steps", type=int, default=1000, help="steps of the demo; 0 skips it")
    parser.add_argument("--draft-steps", type=int, default=800, help="same for the draft")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=2, help="CPU threads")
    parser.add_argument("--save-every", type=int, default=0, help="steps between early saves")
    parser.add_argument("--write-heldout", type=Path, metavar="FILE", help="write the text, stop")
    return parser.parse_args()


def main() -> None:
    arguments = parse_arguments()
    documents = corpus.read_standard_library()
    held_out = corpus.held_out_text(documents)
    if arguments.write_heldout:
        arguments.write_heldout.write_text(held_out, encoding="utf-8", newline="\n")
        return
    device = torch.device(arguments.device)
    loop.prepare(device, arguments.threads)
    train_documents, _ = corpus.split(documents)
    chats = dialogues.build(train_documents, arguments.seed)
    texts = [document.text for document in train_documents]
    texts += [message["content"] for chat in chats for message in chat]
    words = tokenizer.train(texts)
    dataset = Dataset(train_documents, chats, words, arguments.seed)
    print("tokens in sources and dialogues:", *dataset.num_tokens, flush=True)
    for name, steps in (("demo", arguments.steps), ("demo-draft", arguments.draft_steps)):
        if steps:
            train_one(name, steps, dataset, words, held_out, arguments)


def train_one(name, steps, dataset, words, held_out, arguments) -> None:
    """Trains, scores and saves one of the two models."""
    network = model.create(name, words, arguments.seed)
    device = torch.device(arguments.device)
    folder = arguments.out / name
    recipe = loop.Recipe(steps)

    def save_early(step: int) -> None:
        model.save(network, words, folder)

    seconds = loop.train(network, dataset, recipe, device, arguments.save_every, save_early)
    model.save(network, words, folder)
    saved = type(network).from_pretrained(folder, dtype=torch.float32).to(device)
    print(f"{name}: {saved.num_parameters()} parameters, {steps} steps, {seconds:.0f} s")
    for context in (512, 2048):
        print(f"  held out, context {context}: {evaluate(saved, words, held_out, context)}")


if __name__ == "__main__":
    main()
