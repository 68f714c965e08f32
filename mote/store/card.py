"""The model card of a repository with `.mote` files: what they are, how they were checked, how to run them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from llm_runner.labels import count_text
from mote.units import human_bytes

MARK = "library_name: mote"
TABLE_HEADING = "| file | recipe | size | relative error, median | at most | same token |"
# What the text of a licence begins with -> the hub's identifier.
LICENSES = (
    (r"Apache License\s+Version 2\.0", "apache-2.0"),
    (r"\bMIT License\b", "mit"),
    (r"LLAMA 3\.1 COMMUNITY LICENSE", "llama3.1"),
    (r"LLAMA 3\.2 COMMUNITY LICENSE", "llama3.2"),
    (r"LLAMA 3\.3 COMMUNITY LICENSE", "llama3.3"),
    (r"Gemma Terms of Use", "gemma"),
)
FIRST_CHARACTERS = 2000


def make_card(repo: str, file: str, about: Mapping[str, Any], license: str = "", old: str = "") -> str:
    """Returns the README.md of a repository.

    file: the name that the .mote file has there   about: its description, with `num_parameters`
    license: the hub's identifier, "" to read it from the licence's text in the file
    old: the card that is there, of which the rows of other files are kept
    """
    made = about["provenance"]
    base = made["model_id"] if "/" in made["model_id"] else ""
    rows = {**_rows(old), file: _row(file, about)}
    parts = [
        _front_matter(about, base, license or license_of(made["license"])),
        f"# {repo.partition('/')[2]}",
        _introduction(about, base),
        "\n".join([TABLE_HEADING, "|---|---|---|---|---|---|", *(rows[name] for name in sorted(rows))]),
        "Every export ends with a comparison of the finished file with PyTorch: errors of logits are relative to the "
        "largest of their position; the last column is how often both have the same likeliest token.",
        _how_to_run(repo, file, about, several=len(rows) > 1),
        _made_with(about),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def is_ours(card: str) -> bool:
    """Whether a model card is one that `make_card` made, and may be made anew."""
    return bool(re.search(rf"^{MARK}$", card, re.MULTILINE)) and TABLE_HEADING in card


def license_of(text: str) -> str:
    """Returns the hub's identifier of a licence, "other" if it is none of the known ones, "" for no text."""
    start = text[:FIRST_CHARACTERS]
    found = next((name for pattern, name in LICENSES if re.search(pattern, start, re.IGNORECASE)), "other")
    return found if start.strip() else ""


def bits_of(recipe: str) -> int:
    """Returns the bits of the linears of a recipe, 0 for one that does not quantize them."""
    match = re.match(r"(?:8da)?(\d)w\b", recipe)
    return int(match[1]) if match else 0


def _front_matter(about: Mapping[str, Any], base: str, license: str) -> str:
    bits = bits_of(about["provenance"]["recipe"])
    fields: dict[str, Any] = {
        "license": license,
        "base_model": base,
        "base_model_relation": "quantized" if base else "",
        "library_name": "mote",
        "pipeline_tag": "text-generation",
        "tags": ["mote", about["provenance"]["model_type"], *([f"{bits}-bit"] if bits else [])],
    }
    lines = [f"{key}: {_yaml(value)}" for key, value in fields.items() if value and key != "tags"]
    return "\n".join(["---", *lines, "tags:", *(f"- {_yaml(tag)}" for tag in fields["tags"]), "---"])


def _yaml(text: str) -> str:
    return text if re.fullmatch(r"[A-Za-z][\w./-]*", text, re.ASCII) else json.dumps(text)


def _introduction(about: Mapping[str, Any], base: str) -> str:
    made = about["provenance"]
    model = f"`{made['model_id']}`"
    at = f" at commit `{made['revision'][:12]}`" if made["revision"] else ""
    count = about.get("num_parameters")
    facts = [
        f"type `{made['model_type']}`",
        f"{count_text(count)} parameters" if count else "",
        f"context of up to {about['max_position_embeddings']} tokens",
        "with chat template" if about["chat_template"] else "without chat template",
    ]
    return (
        f"{model}{at}, exported to `.mote` files, which the runtime Mote runs on CPUs and other devices: "
        f"{', '.join(filter(None, facts))}."
    )


def _row(file: str, about: Mapping[str, Any]) -> str:
    check = about.get("check")
    figures = ["not checked", "", ""]
    if check:
        figures = [f"{check['median_relative_error']:.1e}", f"{check['max_relative_error']:.1e}"]
        figures.append(f"{check['top1_agreement']:.0%} of {check['num_positions']}")
    cells = [f"`{file}`", f"`{about['provenance']['recipe']}`", human_bytes(about["file_bytes"]), *figures]
    return f"| {' | '.join(cells)} |"


def _rows(card: str) -> dict[str, str]:
    """Returns the rows of a card by file."""
    lines = card.splitlines()
    if TABLE_HEADING not in lines:
        return {}
    found = {}
    for line in lines[lines.index(TABLE_HEADING) + 2 :]:
        match = re.match(r"\| `([^`]+)` \|", line)
        if match is None:
            break
        found[match[1]] = line
    return found


def _how_to_run(repo: str, file: str, about: Mapping[str, Any], several: bool) -> str:
    name = f"{repo}:{file.removesuffix('.mote')}" if several else repo
    verb = f"mote chat {name}" if about["chat_template"] else f'mote run {name} "Once upon a time"'
    return f"```sh\npip install mote-llm\n{verb}\nmote serve {name}        # an API over HTTP\n```"


def _made_with(about: Mapping[str, Any]) -> str:
    made = about["provenance"]
    targets = ", ".join(about["targets"])
    return (
        f"Made with mote {made['exporter_version']}, torch {made['torch_version']}, transformers "
        f"{made['transformers_version']}; runs on: {targets}."
    )
