"""Heads for multi-token prediction and assistants guess what transformers' modules do, and change no text."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from safetensors.torch import load_file, save_file

from llm_export.api import export
from llm_export.capture import build_model
from llm_export.capture.assistants import build
from llm_export.checkpoint import open_checkpoint, with_assistant
from llm_export.errors import UnsupportedError
from llm_export.program.specs import StateSpec
from llm_runner import ArgumentError, Model, PrefixCache
from tests.contracts import assistants, eagle_heads
from tests.contracts.draft_heads import NAMES, SEVERAL, Reference, save_with_head

PROMPT = [3, 4, 5, 6, 7, 8, 9, 3, 4, 5]
FIXED = {"ignore_eos": True, "max_new_tokens": 30}


ALL = bool(os.environ.get("MOTE_TEST_ALL_TYPES"))
WITH_HEAD = NAMES if ALL else ("qwen3_5_text", "glm4_moe", "mimo_v2_flash")
WITH_ASSISTANT = assistants.NAMES if ALL else ("gemma4_text-ordered",)
WITH_EAGLE = eagle_heads.NAMES if ALL else eagle_heads.NAMES[:1]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """files(name) -> the folder of a checkpoint with a head or an assistant and its export, without quantization."""
    made: dict[str, Path] = {}

    def make(name: str) -> Path:
        if name not in made:
            folder = made[name] = tmp_path_factory.mktemp(name)
            source, given = folder, {}
            if name in (*assistants.NAMES, *eagle_heads.FORMS):
                save = eagle_heads.save_with_eagle if name in eagle_heads.FORMS else assistants.save_with_assistant
                save(name, folder)
                source, given = folder / "model", {"assistant": folder / "assistant"}
            else:
                save_with_head(name, folder)
            assert not export(str(source), folder / "tiny.mote", recipe="none", tokenizer=False, **given).notes
        return made[name]

    return make


def ids_of(session, prompt, **options) -> tuple[list[int], object]:
    generation = session.generate(prompt, **FIXED | options)
    generation.text()
    return generation.token_ids, generation.statistics


def logits_of_head(model, name: str = "mtp") -> tuple[int, int]:
    """Returns the places of the method and of the instruction that computes its logits, the last as wide as these."""
    methods = model.describe()["methods"]
    place = next(index for index, method in enumerate(methods) if method["name"] == name)
    instructions = methods[place]["instructions"]
    return place, max(
        index
        for index, instruction in enumerate(instructions)
        if any([str(size) for size in output["shape"]] == ["1", "1", "128"] for output in instruction["outputs"])
    )


@pytest.mark.parametrize("name", (*WITH_HEAD, *WITH_ASSISTANT, *WITH_EAGLE))
def test_guesses_are_those_of_transformers(files, name):
    folder = files(name)
    model = Model.load(folder / "tiny.mote")
    of_kind = {**dict.fromkeys(assistants.NAMES, assistants), **dict.fromkeys(eagle_heads.NAMES, eagle_heads)}
    reference = of_kind[name].Reference(folder) if name in of_kind else Reference(folder, name)
    session = model.session(context_length=48, prefill_chunk=4, threads=1, kv_dtype="float32")
    place = logits_of_head(model)
    calls: dict[int, list[np.ndarray]] = {}

    def note(method, instruction, _output, value):
        if (method, instruction) == place:
            calls.setdefault(session.position, []).append(value.reshape(-1))

    varied = {"temperature": 2.0, "seed": 3} if name in assistants.NAMES else {}
    with session.record(note):
        ids, statistics = ids_of(session, PROMPT, speculative="mtp", draft_tokens=2, **varied)
    text = [*PROMPT, *ids]
    assert statistics["proposed_tokens"] >= 2 * statistics["num_drafts"] - 2 >= 20
    assert sum(len(found) for found in calls.values()) >= statistics["proposed_tokens"]
    # A head also read when it was not asked.
    assert (min(calls) < len(PROMPT)) == (name not in assistants.NAMES)
    for position, found in calls.items():
        for logits, expected in zip(found, reference.guesses(text[: position + 1], len(found)), strict=True):
            np.testing.assert_allclose(logits, expected.numpy(), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("name", SEVERAL)
def test_each_of_several_heads_guesses_as_that_of_transformers(files, name):
    folder, depth_of = files(name), {}
    model, reference = Model.load(folder / "tiny.mote"), Reference(folder, name)
    session = model.session(context_length=64, prefill_chunk=6, threads=1, kv_dtype="float32")
    for depth in range(SEVERAL[name]):
        depth_of[logits_of_head(model, f"mtp_{depth + 1}" if depth else "mtp")] = depth
    calls: dict[int, list[tuple[int, np.ndarray]]] = {}

    def note(method, instruction, _output, value):
        if (method, instruction) in depth_of:
            calls.setdefault(session.position, []).append((depth_of[method, instruction], value.reshape(-1)))

    num_drafted, text = SEVERAL[name] + 1, []
    options = {"speculative": "mtp", "draft_tokens": num_drafted, "max_new_tokens": 22, "temperature": 0.2, "seed": 5}
    statistics = {"proposed_tokens": 0, "accepted_tokens": 0}
    for prompt in (PROMPT, PROMPT[3:]):
        with session.record(note):
            ids, found = ids_of(session, prompt, **options)
        text = [*session.tokens, ids[-1]]
        statistics = {key: statistics[key] + found[key] for key in statistics}
    # Of both kinds, so that heads read tokens behind right and behind wrong guesses.
    assert 10 <= statistics["accepted_tokens"] <= statistics["proposed_tokens"] - 10
    compared = 0
    for position, found in calls.items():
        # Behind what the heads read of the text come the guesses, two of the last head.
        by_depth = [[value for depth, value in found if depth == each] for each in range(SEVERAL[name])]
        if len(by_depth[-1]) < 2:
            continue
        last = [*(values[-1] for values in by_depth[:-1]), *by_depth[-1][-2:]]
        for logits, expected in zip(last, reference.guesses(text[: position + 1], num_drafted), strict=True):
            np.testing.assert_allclose(logits, expected.numpy(), atol=1e-4, rtol=1e-4)
        compared += 1
    assert compared >= 8


@pytest.mark.parametrize("name", (*NAMES[1:3], *SEVERAL, *WITH_ASSISTANT, *WITH_EAGLE))
def test_every_way_of_going_on_gives_the_text_without_drafts(files, name):
    model = Model.load(files(name) / "tiny.mote")
    plain, fast = model.session(context_length=64), model.session(context_length=64, prefill_chunk=7)
    for options in ({}, {"temperature": 0.9, "seed": 3}, {"temperature": 0.9, "seed": 3, "top_k": 5}):
        for prompt in (PROMPT, PROMPT[2:]):
            expected, _ = ids_of(plain, prompt, speculative="off", **options)
            found, _ = ids_of(fast, prompt, speculative="mtp", draft_tokens=3, **options)
            assert found == expected
            plain.rewind(4), fast.rewind(4)
    fork = fast.fork()
    expected, _ = ids_of(plain, PROMPT, speculative="off")
    assert ids_of(fork, PROMPT, speculative="mtp", draft_tokens=3)[0] == expected
    assert ids_of(fast, PROMPT, speculative="auto")[0] == expected


def test_right_guesses_are_accepted_and_counted(tmp_path):
    save_with_head("qwen3_5_text", tmp_path)
    path = tmp_path / "model.safetensors"
    tensors = load_file(path)
    # Model and head both look at the embedding of the last token alone, and so say the same.
    for key in tensors:
        if key.endswith(("o_proj.weight", "out_proj.weight", "down_proj.weight", "mtp.fc.weight")):
            tensors[key] = tensors[key] * 0
    tensors["mtp.fc.weight"][:, :64].fill_diagonal_(1.0)
    tensors["mtp.pre_fc_norm_embedding.weight"] *= 0  # of which one more is the factor
    tensors["mtp.norm.weight"] = tensors["model.norm.weight"].clone()
    save_file(tensors, path, {"format": "pt"})
    export(str(tmp_path), tmp_path / "tiny.mote", recipe="none", tokenizer=False, check="off")
    session = Model.load(tmp_path / "tiny.mote").session(context_length=64)
    _, statistics = ids_of(session, PROMPT, speculative="mtp", draft_tokens=3)
    assert statistics["accepted_tokens"] == statistics["proposed_tokens"] >= 20
    assert statistics["mean_run_length"] > 3


def test_the_file_grows_by_the_head_alone(files, tmp_path):
    folder = files("glm4_moe")
    tensors = load_file(folder / "model.safetensors")
    own = {key: value for key, value in tensors.items() if key.startswith("model.layers.2.")}
    (tmp_path / "config.json").write_text((folder / "config.json").read_text())
    save_file({k: v for k, v in tensors.items() if k not in own}, tmp_path / "model.safetensors", {"format": "pt"})
    report = export(str(tmp_path), tmp_path / "plain.mote", recipe="none", tokenizer=False, check="off")
    assert not report.notes
    weights = sum(value.numel() * 4 for value in own.values())
    added = (folder / "tiny.mote").stat().st_size - report.file_bytes
    assert weights - 65536 <= added <= weights + (1 << 18)
    plain = Model.load(tmp_path / "plain.mote")
    with pytest.raises(ArgumentError, match=r"plain\.mote has no head for multi-token prediction: use lookup or auto"):
        plain.session(context_length=32).generate(PROMPT, speculative="mtp")

    # A head that lacks a tensor is none, and the model is what it is without.
    del tensors["model.layers.2.enorm.weight"]
    save_file(tensors, tmp_path / "model.safetensors", {"format": "pt"})
    report = export(str(tmp_path), tmp_path / "part.mote", recipe="none", tokenizer=False, check="off")
    (note,) = report.notes
    assert "without the head for multi-token prediction" in note and "'layers.0.enorm.weight'" in note
    assert report.file_bytes == (tmp_path / "plain.mote").stat().st_size


@pytest.mark.parametrize(
    "added, reason",
    [
        ("model.layers.2.self_attn.sinks", "transformers' layer has no place for 'model.layers.2.self_attn.sinks'"),
        ("model.mtp_block.0.mlp.up_proj.weight", "the checkpoint has no tensor for its 'layers.0.eh_proj.weight'"),
    ],
)
def test_a_head_that_is_not_the_one_of_transformers_is_left_out(files, tmp_path, added, reason):
    folder = files("glm4_moe")
    tensors = load_file(folder / "model.safetensors")
    if "mtp" in added:
        tensors = {key: value for key, value in tensors.items() if not key.startswith("model.layers.2.")}
    tensors[added] = tensors["model.norm.weight"].clone()
    (tmp_path / "config.json").write_text((folder / "config.json").read_text())
    save_file(tensors, tmp_path / "model.safetensors", {"format": "pt"})
    report = export(str(tmp_path), tmp_path / "plain.mote", recipe="none", tokenizer=False, check="off")
    assert len(report.notes) == 1 and "without the head for multi-token prediction" in report.notes[0]
    assert report.notes[0].endswith(f"): {reason}")


@pytest.mark.parametrize("name", WITH_ASSISTANT)
def test_right_guesses_of_an_assistant_are_accepted(files, tmp_path, name):
    model = Model.load(files(name) / "tiny.mote")
    plain, session = model.session(context_length=64), model.session(context_length=64, prefill_chunk=7)
    for options in ({"temperature": 0.9, "seed": 3}, {}):
        expected, _ = ids_of(plain, PROMPT, speculative="off", **options)
        found, statistics = ids_of(session, PROMPT, speculative="mtp", draft_tokens=3, **options)
        assert found == expected
        accepted, proposed = statistics["accepted_tokens"], statistics["proposed_tokens"]
        assert (0 < accepted < proposed) if options else (accepted >= 20)
        plain.rewind(4), session.rewind(4)
    # A session from a file has no hidden state until the first token was computed.
    session.save(tmp_path / "saved.session")
    restored = model.session(context_length=64)
    restored.restore(tmp_path / "saved.session")
    expected, _ = ids_of(plain, PROMPT, speculative="off")
    found, statistics = ids_of(restored, PROMPT, speculative="mtp", draft_tokens=3)
    assert found == expected
    assert statistics["proposed_tokens"] > 0


@pytest.mark.parametrize("name", WITH_EAGLE[:2])  # of which guesses are right
def test_an_eagle_head_shares_the_embeddings_and_finds_tokens_of_its_vocabulary(files, name):
    folder = files(name)
    model = Model.load(folder / "tiny.mote")
    own = [each["name"] for each in model.describe()["weights"]["tensors"] if each["name"].startswith("mtp.")]
    assert "mtp.fc.weight" in own and not any("embed_tokens" in weight for weight in own)
    ids, statistics = ids_of(model.session(context_length=64), PROMPT, speculative="mtp", draft_tokens=3)
    known = eagle_heads.draft_ids(folder)
    right = sum(one in known for one in ids[2:])  # of those that a first guess was made of
    assert 0 < statistics["accepted_tokens"] <= right < len(ids)


@pytest.mark.parametrize("name", (NAMES[3], "deepseek_v3-3", *WITH_EAGLE))
def test_files_prefixes_and_batches_go_on_beside_a_head(files, tmp_path, name):
    model, cache = Model.load(files(name) / "tiny.mote"), PrefixCache(1 << 26)
    drafts, short = {"speculative": "mtp", "draft_tokens": 3}, {"ignore_eos": True, "max_new_tokens": 12}

    def text_of(session, prompt, **options) -> tuple[list[int], int]:
        generation = session.generate(prompt, **short, **options)
        generation.text()
        return generation.token_ids, generation.statistics["proposed_tokens"]

    plain = model.session(context_length=64)
    expected, _ = text_of(plain, PROMPT, speculative="off")
    whole = [*plain.tokens, *PROMPT[4:]]
    assert len(whole) >= 24
    more, _ = text_of(plain, PROMPT[4:], speculative="off")
    with model.session(context_length=64, prefix_cache=cache) as session:
        assert text_of(session, PROMPT, **drafts)[0] == expected
        session.save(tmp_path / "saved.session")
    least = 5 if name in SEVERAL else 10  # of right guesses no more are made than there are tokens
    # What a head has read is not in a file, so it begins to read behind it.
    restored = model.session(context_length=64)
    restored.restore(tmp_path / "saved.session")
    found, proposed = text_of(restored, PROMPT[4:], **drafts)
    assert found == more and proposed > least
    # It is in a prefix cache.
    with model.session(context_length=64, prefix_cache=cache) as session:
        found, proposed = text_of(session, whole, **drafts)
        assert found == more and proposed > least
    assert cache.info["hits"] == 1 and cache.info["reused_tokens"] > len(PROMPT)
    together: dict[int, list[int]] = {}
    with model.batch(2, context_length=64) as batch:
        numbers = [batch.add(prompt, **short) for prompt in (PROMPT, whole)]
        while len(batch):
            for piece in batch.step():
                together.setdefault(piece.sequence, []).append(piece.token_id)
    assert [together[number] for number in numbers] == [expected, more]


def test_an_eagle_head_with_dynamic_rotations_takes_the_length_of_the_text(files):
    folder = files("llama-dynamic-eagle3")
    model = Model.load(folder / "tiny.mote")
    session = model.session(context_length=48, prefill_chunk=32, threads=1, kv_dtype="float32")
    place, calls = logits_of_head(model), []

    def note(method, instruction, _output, value):
        if (method, instruction) == place:
            calls.append((session.position, value.reshape(-1).copy()))

    prompt = [*PROMPT, *PROMPT]  # longer than the positions of the head, and read at once
    with session.record(note):
        ids, _ = ids_of(session, prompt, speculative="mtp", draft_tokens=1)
    position, logits = calls[0]
    assert position == len(prompt)
    (expected,) = eagle_heads.Reference(folder).guesses([*prompt, ids[0]], 1)
    np.testing.assert_allclose(logits, expected.numpy(), atol=1e-4, rtol=1e-4)


def test_assistants_of_other_models_are_refused(tmp_path):
    assistants.save_with_assistant("gemma4_text", tmp_path)
    model, own, changed = (tmp_path / name for name in ("model", "assistant", "changed"))
    config = json.loads((own / "config.json").read_text())
    shutil.copytree(own, changed)

    def refused(text: str, backends: str = "cpu", **changes) -> None:
        (changed / "config.json").write_text(json.dumps(config | changes))
        with pytest.raises(ArgumentError, match=text):
            export(str(model), tmp_path / "no.mote", tokenizer=False, check="off", assistant=changed, backends=backends)
        assert not (tmp_path / "no.mote").exists()

    refused("its model_type is 'llama': must be gemma4_assistant or gemma4_unified_assistant", model_type="llama")
    refused("its backbone_hidden_size is 96, the hidden_size of the model 64: must be an ass", backbone_hidden_size=96)
    larger = config["text_config"] | {"vocab_size": 256}
    refused("its vocab_size is 256, the vocab_size of the model 128", text_config=larger)
    refused("reads keys and values, which vulkan keeps on its device", backends="vulkan,cpu")
    with pytest.raises(UnsupportedError, match="Export the model that it drafts for, with this as its assistant"):
        export(str(own), tmp_path / "no.mote")


def test_assistants_for_other_caches_are_refused(tmp_path):
    assistants.save_with_assistant("gemma4_text", tmp_path)
    checkpoint = with_assistant(open_checkpoint(tmp_path / "model", tokenizer=False), tmp_path / "assistant")
    model = build_model(checkpoint.config)
    cache = {"kind": "kv_cache", "num_heads": 2, "head_dim": 32, "value_head_dim": 32}
    sliding = StateSpec("model.layers.0.self_attn", **cache, window=4)
    full = StateSpec("model.layers.1.self_attn", **cache | {"head_dim": 64, "value_head_dim": 64})

    def states_after(*states: StateSpec) -> list[StateSpec]:
        context = SimpleNamespace(states=list(states))
        build(model, checkpoint, build_model).prepare(context)
        return context.states

    assert [state.window for state in states_after(sliding, full)] == [5, 0]  # one key more than the model's
    with pytest.raises(ArgumentError, match="of layers of type 'full_attention', of which the model has none"):
        states_after(sliding)
    with pytest.raises(ArgumentError, match="its head_dim of 'full_attention' is 64, the head_dim of the model 32"):
        states_after(sliding, replace(full, head_dim=32))
    with pytest.raises(ArgumentError, match="its num_key_value_heads of 'sliding_attention' is 2, the heads of"):
        states_after(replace(sliding, num_heads=4), full)
