"""`mote push`: the file and its model card on the hub."""

import pytest
import yaml

from mote.store.card import bits_of, license_of, make_card
from tests.mote.fake_hub import FakeRepository

ABOUT = {
    "provenance": {
        "model_id": "base/model", "revision": "a" * 40, "model_type": "qwen3",
        "license": "Apache License\n Version 2.0",
        "recipe": "8da4w group_size=32 embedding=8", "exporter_version": "0.1.0", "torch_version": "2.13.0",
        "transformers_version": "5.23.0",
    },
    "num_parameters": 596 * 10**6, "max_position_embeddings": 40960, "chat_template": "x", "file_bytes": 409 * 10**6,
    "targets": {"cpu": None},
    "check": {
        "mode": "layers", "median_relative_error": 1.2e-4, "max_relative_error": 2.5e-3, "tolerance": 0.05,
        "top1_agreement": 1.0, "num_positions": 30,
    },
}  # fmt: skip


def front_matter(card):
    return yaml.safe_load(card.split("---\n")[1])


def test_a_card_says_what_was_exported_how_it_was_checked_and_how_to_run_it():
    card = make_card("org/out", "m-8da4w.mote", ABOUT)
    assert front_matter(card) == {
        "license": "apache-2.0", "base_model": "base/model", "base_model_relation": "quantized", "library_name": "mote",
        "pipeline_tag": "text-generation", "tags": ["mote", "qwen3", "4-bit"],
    }  # fmt: skip
    assert "596 M parameters" in card and "context of up to 40960 tokens" in card and "at commit `aaaaaaaaaaaa`" in card
    assert (
        "| `m-8da4w.mote` | `8da4w group_size=32 embedding=8` | 409.0 MB | 1.2e-04 | 2.5e-03 | 100% of 30 |" in card
    )
    assert "\npip install mote-llm\nmote chat org/out\nmote serve org/out " in card


def test_a_card_keeps_the_rows_of_other_files():
    first = make_card("org/out", "m-8w.mote", ABOUT | {"check": None})
    card = make_card("org/out", "m-8da4w.mote", ABOUT, old=first)
    assert "| `m-8w.mote` | `8da4w group_size=32 embedding=8` | 409.0 MB | not checked |  |  |" in card
    assert "| `m-8da4w.mote` |" in card and "mote chat org/out:m-8da4w\n" in card
    assert make_card("org/out", "m-8da4w.mote", ABOUT, old=card) == card


def test_a_card_of_a_file_without_template_or_base():
    made = ABOUT["provenance"] | {"model_id": "my folder", "license": ""}
    card = make_card("org/out", "m.mote", ABOUT | {"chat_template": "", "provenance": made})
    assert "base_model" not in front_matter(card) and "license" not in front_matter(card)
    assert 'mote run org/out "Once upon a time"' in card


@pytest.mark.parametrize(
    ("text", "license"),
    [("", ""), ("MIT License\n\n(c)", "mit"), ("All rights reserved", "other"), ("  GEMMA TERMS OF USE", "gemma")],
)
def test_licences_by_their_text(text, license):
    assert license_of(text) == license


@pytest.mark.parametrize(("recipe", "bits"), [("8da4w group_size=32", 4), ("8w", 8), ("none", 0)])
def test_bits_of_recipes(recipe, bits):
    assert bits_of(recipe) == bits


@pytest.fixture
def file(demo_files, tmp_path):
    path = tmp_path / "demo-8da4w.mote"
    path.symlink_to(demo_files.path())
    return path


def test_uploads_the_file_and_its_card(hub, mote, file, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "secret")
    result = mote("push", file, "org/new", "--private")
    assert result.status == 0 and f"{hub.url}/org/new/commit/" in result.out
    assert hub.created[0]["visibility"] == "private"
    files = hub.repositories["org/new"].files
    assert files["demo-8da4w.mote"] == file.read_bytes()
    card = files["README.md"].decode()
    assert front_matter(card)["library_name"] == "mote" and "| `demo-8da4w.mote` |" in card
    assert "not checked" not in card


def test_a_card_of_somebody_else_is_kept(hub, mote, file, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "secret")
    hub.repositories["org/old"] = FakeRepository({"README.md": b"# Mine"})
    result = mote("push", file, "org/old")
    assert result.status == 0 and "a model card of its own, which was kept" in result.err
    assert hub.repositories["org/old"].files["README.md"] == b"# Mine"
    assert mote("push", file, "org/old", "--replace-card").status == 0
    assert b"library_name: mote" in hub.repositories["org/old"].files["README.md"]


def test_dry_run_asks_nobody(hub, mote, file):
    result = mote("push", file, "org/new", "--dry-run")
    assert result.out.startswith("---\n") and "mote chat org/new\n" in result.out
    assert hub.requests == []


def test_without_a_token_the_line_to_get_one(hub, mote, file):
    result = mote("push", file, "org/new")
    assert result.status == 2 and "hf auth login" in result.err


@pytest.mark.parametrize("name", ["new", "org/new:tag", "x.mote"])
def test_what_is_no_repository(mote, file, name):
    assert "must be org/name" in mote("push", file, name).err
