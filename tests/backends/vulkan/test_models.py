"""Models of every type on a GPU: the logits and the texts of the CPU's kernels."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from llm_export import api
from llm_runner import BackendError, Model, MoteError
from mote.commands import runner_binary
from tests.backends.models import (
    MAX_AFTER_A_MOVED_CODE,
    MAX_RELATIVE_ERROR,
    chosen,
    each_type,
    errors_of,
    logits,
    session_lines,
)
from tests.contracts.architectures import Row, save_tiny_checkpoint

# Every instruction of every type runs on the GPU; these have all its ops.
SOME = """
apertus beam bloom codegen cohere_compass_text deepseek_v3 deepseek_v32 deepseek_v4 diffllama falcon falcon_h1
falcon_mamba gemma2 gemma3n_text gemma4_text gpt2 gpt_oss gptj granitemoehybrid inkling_text jetmoe lfm2_moe llama
llama4_text minicpm3 mpt nemotron opt phi3 phimoe qwen3 qwen3_next
""".split()  # noqa: SIM905


# Inputs stay floats here: rounded to 8 bits, a difference in the last bit of one moves a code now and then.
@each_type(SOME)
def test_the_same_logits_as_on_the_cpu(row: Row, tmp_path, vulkan):
    errors = errors_of("vulkan", row.name, tmp_path, "4w", kv_dtype="float16", delegated=1.0)
    assert errors.max() <= MAX_RELATIVE_ERROR


@pytest.mark.parametrize("recipe", ["8da4w", "8da8w", "none"])
@pytest.mark.parametrize("name", ["llama", "qwen3", "gemma2", "gpt2", "lfm2_moe"])
def test_recipes(name, recipe, tmp_path, vulkan):
    errors = errors_of("vulkan", name, tmp_path, recipe, kv_dtype="float16")
    assert errors.max() <= (2e-4 if recipe == "none" else MAX_AFTER_A_MOVED_CODE), errors
    assert recipe == "none" or errors.min() <= 1e-5, errors


@pytest.fixture(scope="module")
def both(demo_files, vulkan) -> Path:
    return demo_files.path(backends="vulkan,cpu")


def test_calls_of_any_length_give_the_same_bits(both):
    """A token's logits do not depend on its neighbours in a call, beyond a split of 256 positions."""
    ids = torch.randint(3, 4000, (300,), generator=torch.Generator().manual_seed(2)).tolist()
    model, last = Model.load(both, backend="vulkan"), []
    for chunk in (7, 64, 300):
        with model.session(context_length=320, prefill_chunk=chunk) as session:
            first = session.prefill(ids[:-3])
            last.append(np.stack([first, session.decode(ids[-3]), *session.verify(ids[-2:])]))
    assert np.array_equal(last[0], last[1]) and np.array_equal(last[0], last[2])


# Experts and states; windows and sinks; softcaps; slopes; values narrower than keys; matrices of states; chunks; chosen
# keys; biases by distance; sinks of tokens.
@pytest.mark.parametrize("name,recipe", [("lfm2_moe", "4w"), ("lfm2_moe", "8da4w"), ("gpt_oss", "4w"),
                                         ("gemma2", "4w"), ("bloom", "4w"), ("deepseek_v3", "8da4w"),
                                         ("qwen3_next", "8da4w"), ("llama4_text", "4w"), ("deepseek_v32", "4w"),
                                         ("doge", "4w"), ("inkling_text", "4w")])  # fmt: skip
def test_calls_of_any_length_give_the_same_bits_whatever_they_compute(name, recipe, tmp_path, vulkan):
    save_tiny_checkpoint(name, tmp_path / "checkpoint")
    path = tmp_path / "model.mote"
    report = api.export(tmp_path / "checkpoint", path, backends="vulkan,cpu", recipe=recipe, group_size=32, check="off")
    taken, total = report.num_delegated["vulkan", "decode"]
    assert taken == total
    ids, model, last = list(range(3, 43)), Model.load(path, backend="vulkan"), []
    for chunk in (1, 7, 40):
        with model.session(context_length=64, prefill_chunk=chunk) as session:
            first = session.prefill(ids[:-3])
            last.append(np.stack([first, session.decode(ids[-3]), *session.verify(ids[-2:])]))
    assert np.array_equal(last[0], last[1]) and np.array_equal(last[0], last[2])


def export_llama(folder: Path, inputs: str, hidden: int, inner: int) -> Path:
    sizes = {"hidden_size": hidden, "intermediate_size": inner, "num_hidden_layers": 1, "vocab_size": 128}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 64}
    torch.manual_seed(0)
    LlamaForCausalLM(LlamaConfig(**sizes, **heads)).save_pretrained(folder / "checkpoint")
    path, options = folder / "model.mote", {"recipe": "8da4w", "group_size": 32, "check": "off", "inputs": inputs}
    api.export(folder / "checkpoint", path, backends="vulkan,cpu", **options)
    return path


def test_rows_that_fit_no_shared_memory_are_turned_where_they_lie(tmp_path, vulkan, monkeypatch):
    path, got = export_llama(tmp_path, "rotated", 128, 4224), []
    for limits in ("", "shared_memory=8192"):
        monkeypatch.setenv("MOTE_GPU_LIMITS", limits)
        with Model.load(path, backend="vulkan").session(context_length=16) as session:
            got.append([session.prefill([5, 6, 7]), session.decode(8)])
    assert np.array_equal(*got)


@pytest.mark.parametrize("inputs", ["rotated", "token", "grouped"])
def test_rows_are_rounded_by_the_last_workgroup_of_any_variant(inputs, tmp_path, vulkan, monkeypatch):
    """Also where shared memory has no room for a row."""
    path = export_llama(tmp_path, inputs, 1280, 3200)
    expected = None
    little = f"shared_memory={8192 if inputs == 'rotated' else 4096},invocations=32"
    for variant, limits in ("none", ""), ("none", little), ("dot", ""), ("subgroups", ""), ("dot+subgroups", little):
        monkeypatch.setenv("MOTE_VULKAN_PRODUCTS", variant)
        monkeypatch.setenv("MOTE_GPU_LIMITS", limits)
        with Model.load(path, backend="vulkan").session(context_length=16) as session:
            got = [session.prefill([5]), *(session.decode(id) for id in (6, 7))]
            session.rewind(0)
            assert np.array_equal(session.prefill([5, 6, 7]), got[-1])  # rounded by dispatches of their own
        expected = got if expected is None else expected
        assert np.array_equal(got, expected), (variant, limits)
    with Model.load(path, backend="cpu").session(context_length=16, kv_dtype="float16") as session:
        on_cpu = np.stack([session.prefill([5]), *(session.decode(id) for id in (6, 7))])
    assert np.abs(np.stack(expected) - on_cpu).max() <= MAX_AFTER_A_MOVED_CODE * np.abs(on_cpu).max()


def test_golden_samples_hold(both):
    verified = subprocess.run([runner_binary(), "verify", both, "--backend", "vulkan"], capture_output=True, text=True)
    assert verified.returncode == 0, verified.stdout + verified.stderr


def test_texts_are_those_of_the_cpu(both):
    texts = []
    for backend in ("cpu", "vulkan"):
        model = Model.load(both, backend=backend)
        session = model.session(context_length=512)
        session.append("def read_lines(path):\n")
        texts.append(session.generate(max_new_tokens=48, do_sample=False).text())
    assert texts[0] == texts[1]


# The delta rule takes minutes without a GPU; a test below has it too.
SESSIONS = ["llama", "gemma2", "lfm2_moe", "falcon_mamba", "deepseek_v2"]


@pytest.mark.parametrize("name", [*SESSIONS, "qwen3_next"] if os.environ.get("MOTE_TEST_ALL_TYPES") else SESSIONS)
def test_sessions_go_back_branch_and_are_saved_as_on_the_cpu(name, tmp_path, vulkan):
    save_tiny_checkpoint(name, tmp_path / "checkpoint")
    path = tmp_path / "model.mote"
    api.export(tmp_path / "checkpoint", path, backends="vulkan,cpu", recipe="none", check="off")
    expected = session_lines(path, "cpu")
    for other in ("", "cpu"):
        got = session_lines(path, "vulkan", other)
        assert list(got) == list(expected) and len(got) > 40
        for line, numbers in expected.items():
            assert got[line] == pytest.approx(numbers, abs=2e-3), line  # keys and values are float16 there


def calls_of(session, work) -> int:
    """How many calls of the model it takes."""
    session.start_profile()
    work()
    return sum(event.get("cat") == "call" for event in session.stop_profile()["traceEvents"])


@pytest.mark.parametrize("name", ["qwen3_next", "falcon_mamba", "deepseek_v4"])
def test_states_go_back_and_move_without_being_computed_again(name, tmp_path, vulkan):
    save_tiny_checkpoint(name, tmp_path / "checkpoint")
    path = tmp_path / "model.mote"
    api.export(tmp_path / "checkpoint", path, backends="vulkan,cpu", recipe="none", check="off")
    model, ids = Model.load(path, backend="vulkan"), [7 * i % 113 + 3 for i in range(64)]
    with model.session(context_length=64) as session, model.session(context_length=64) as other:
        session.prefill(ids[:20])
        for id in ids[20:60]:
            session.decode(id)
        assert calls_of(session, lambda: session.rewind(33)) == 0
        expected = [other.prefill(ids[:33]), other.decode(ids[33])][1]
        assert np.array_equal(session.decode(ids[33]), expected)
        session.verify(ids[34:46])
        assert calls_of(session, lambda: session.rewind(37)) == 0
        other.verify(ids[34:37])
        fork = session.fork()
        assert np.array_equal(session.decode(ids[37]), other.decode(ids[37]))
        assert np.array_equal(fork.decode(ids[37]), session.logits())
        for backend in ("cpu", "vulkan"):
            session.move_to(backend)
            assert calls_of(session, lambda: session.decode(ids[38])) == 1
            other.decode(ids[38])
            assert session.logits() == pytest.approx(other.logits(), abs=2e-3)
        assert session.backend == "vulkan"


def test_profiles_tell_of_each_dispatch(both):
    model = Model.load(both, backend="vulkan")
    with model.session(context_length=64) as session:
        expected = [session.prefill([5, 6, 7]), session.decode(20)]
    with model.session(context_length=64) as session:
        session.start_profile()
        assert np.array_equal(expected, [session.prefill([5, 6, 7]), session.decode(20)])
        events = [event for event in session.stop_profile()["traceEvents"] if event["ph"] == "X"]
    calls = [event for event in events if event["cat"] == "call"]
    steps = [event for event in events if event["cat"] == "op" and event["ts"] > calls[1]["ts"]]
    names = {event["name"] for event in steps}
    assert {"vulkan.product", "vulkan.attend", "vulkan.embedding"} <= names and "mote.delegate" not in names
    assert {event["args"]["origin"].split(".mlp")[0] for event in steps} >= {"model.layers.0", "model.layers.1"}
    assert 0 < sum(event["dur"] for event in steps) <= calls[1]["dur"]
    assert all(event["args"]["bytes"] > 0 for event in steps)
    products = [event for event in steps if event["name"] == "vulkan.product"]
    assert all(event["args"]["bytes"] > event["args"]["macs"] / 2 > 0 for event in products)  # 4 bits at least


def test_two_sessions_share_the_device(both):
    model = Model.load(both, backend="vulkan")
    alone = []
    for ids in ([5, 6, 7], [9, 10, 11, 12]):
        with model.session(context_length=64) as session:
            alone.append([session.prefill(ids), session.decode(20)])
    one, two = model.session(context_length=64), model.session(context_length=64)
    together = [[one.prefill([5, 6, 7])], [two.prefill([9, 10, 11, 12])]]
    together[0].append(one.decode(20))
    together[1].append(two.decode(20))
    assert np.array_equal(alone, together)


def test_ids_outside_of_the_vocabulary_are_refused(both):
    with (
        Model.load(both, backend="vulkan").session(context_length=64) as session,
        pytest.raises(MoteError, match="4096"),
    ):
        session.prefill([5, 4096])


DRIVERS = (Path("/usr/share/vulkan/icd.d"), Path("/etc/vulkan/icd.d"))  # where systems say which there are
NO_DRIVERS = {"VK_ICD_FILENAMES": "/nowhere.json", "VK_DRIVER_FILES": "/nowhere.json"}


def test_without_a_driver_the_cpu_is_taken_or_the_lack_is_named(both):
    assert chosen(both, "auto", **NO_DRIVERS).stdout == "cpu\n"
    refused = chosen(both, "vulkan", **NO_DRIVERS)
    assert BackendError.__name__ in refused.stderr and "install the driver of a GPU" in refused.stderr


def test_auto_takes_no_device_that_is_the_cpu_itself(both):
    """Where the drivers named here are lavapipe's alone."""
    found = [str(path) for folder in DRIVERS for path in folder.glob("lvp_icd*.json")]
    if not found:
        pytest.skip("lavapipe is not installed")
    drivers = {"VK_ICD_FILENAMES": found[0], "VK_DRIVER_FILES": found[0]}
    assert chosen(both, "vulkan", **drivers).stdout == "vulkan\n"
    assert chosen(both, "auto", **drivers).stdout == "cpu\n"


def test_results_do_not_depend_on_what_the_cpu_keeps_its_caches_in(both):
    ids = list(range(30, 45))
    model = Model.load(both, backend="vulkan")
    assert np.array_equal(logits(model, ids, "float32"), logits(model, ids, "int8"))


def test_the_validation_layers_have_nothing_to_say(both):
    """Of a prompt, single tokens, several at once, a cache that grows and a way back."""
    check_validated(both)


def test_the_validation_layers_have_nothing_to_say_of_many_submissions(both):
    check_validated(both, prompt=30, context_length=60, MOTE_GPU_LIMITS="submission_us=1")


@pytest.mark.parametrize("name", ["deepseek_v32", "qwen3_next"])
def test_the_validation_layers_have_nothing_to_say_of_experts_and_states(name, tmp_path, vulkan):
    save_tiny_checkpoint(name, tmp_path / "checkpoint")
    path = tmp_path / "model.mote"
    api.export(tmp_path / "checkpoint", path, backends="vulkan,cpu", recipe="8da4w", group_size=32, check="off")
    check_validated(path, prompt=30, context_length=60)


def check_validated(path: Path, prompt: int = 300, context_length: int = 700, **variables: str) -> None:
    script = (
        "import sys; from llm_runner import Model;"
        "s = Model.load(sys.argv[1], backend='vulkan').session(context_length=int(sys.argv[3]));"
        "s.prefill(list(range(5, int(sys.argv[2])))); s.decode(7); s.verify([8, 9, 10]); s.rewind(20); s.decode(7)"
    )
    environment = (
        os.environ
        | variables
        | {
            "VK_INSTANCE_LAYERS": "VK_LAYER_KHRONOS_validation",
            "VK_LAYER_ENABLES": "VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT",
        }
    )
    run = [sys.executable, "-c", script, path, str(prompt), str(context_length)]
    done = subprocess.run(run, env=environment, capture_output=True, text=True)
    if "VK_ERROR_LAYER_NOT_PRESENT" in done.stderr:
        pytest.skip("needs the layers: on Debian and Ubuntu, vulkan-validationlayers")
    assert done.returncode == 0, done.stderr
    assert not [line for line in (done.stdout + done.stderr).splitlines() if "VUID" in line or "SYNC-HAZARD" in line]


# Of a decode step and of a prompt; each layer of llama and qwen3 is the same.
DISPATCHES = [
    ("llama", "", "rotated", 6, 10), ("qwen3", "", "rotated", 6, 10), ("llama", "", "token", 6, 10),
    ("llama", "", "grouped", 6, 8), ("deepseek_v3", "self_attn.", "rotated", 6, 9),
    ("deepseek_v3", "mlp.", "rotated", 10, 14),
]  # fmt: skip


@pytest.mark.parametrize("name,within,inputs,decoding,prompt", DISPATCHES)
def test_dispatches_of_a_layer(name, within, inputs, decoding, prompt, tmp_path, vulkan):
    save_tiny_checkpoint(name, tmp_path / "checkpoint")
    path = tmp_path / "model.mote"
    api.export(
        tmp_path / "checkpoint", path, backends="vulkan,cpu", recipe="8da4w", group_size=32, check="off", inputs=inputs
    )
    model = Model.load(path, backend="vulkan")
    for ids, expected in ([7], decoding), ([5, 6, 7], prompt):
        with model.session(context_length=64) as session:
            session.start_profile()
            session.prefill(ids)
            events = [event for event in session.stop_profile()["traceEvents"] if event.get("cat") == "op"]
        whole = f"model.layers.1.{within}"
        layer = [event["name"] for event in events if f"{event['args']['origin']}.".startswith(whole)]
        assert 4 < len(layer) <= expected, layer
