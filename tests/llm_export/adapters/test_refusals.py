"""Folders that are not taken: one sentence with file, field, value and what would be accepted; nothing is written."""

from __future__ import annotations

import json
import random
import re
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file

from llm_export.adapters import make_adapter
from llm_export.api import export
from llm_export.errors import ArgumentError, FileError, MoteError, ProgramError
from llm_runner import Model
from mote.cli import main
from tests.adapters import save_lora
from tests.contracts.architectures import save_tiny_checkpoint

CONFIG, TENSORS = "adapter_config.json", "adapter_model.safetensors"
Q = "base_model.model.model.layers.0.self_attn.q_proj.lora_"


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("good")
    save_tiny_checkpoint("llama", folder / "checkpoint")
    export(folder / "checkpoint", folder / "base.mote", recipe="none", check="off")
    save_lora(folder / "checkpoint", folder / "lora", targets=("q_proj", "v_proj"))
    return folder


@pytest.fixture
def lora(good, tmp_path):
    return shutil.copytree(good / "lora", tmp_path / "lora")


def change_config(folder, **fields) -> None:
    config = json.loads((folder / CONFIG).read_text())
    (folder / CONFIG).write_text(json.dumps(config | fields))


def change_tensors(folder, change) -> None:
    tensors = load_file(folder / TENSORS)
    change(tensors)
    save_file(tensors, folder / TENSORS)


def refusal(good, folder, kind=ProgramError, **how) -> str:
    output = folder.parent / "x.mote-adapter"
    with pytest.raises(kind) as caught:
        make_adapter(folder, good / "base.mote", output, **how)
    assert not output.exists()
    return str(caught.value)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"peft_type": "LOHA"}, "peft_type = LOHA: must be LORA"),
        ({"modules_to_save": ["lm_head"]}, 'modules_to_save = ["lm_head"]: is not supported: must be empty'),
        ({"bias": "all"}, "bias = all: is not supported"),
        ({"lora_bias": True}, "lora_bias = true: is not supported"),
        ({"trainable_token_indices": [1]}, "trainable_token_indices = [1]: is not supported"),
        ({"a_field_of_next_year": 1}, "a_field_of_next_year = 1: is not supported"),
        ({"init_lora_weights": "pissa_niter_4"}, "init_lora_weights = pissa_niter_4: it changes the weights"),
        ({"r": 5}, "q_proj: lora_A has rank 4: must be 5, as adapter_config.json says"),
        ({"lora_alpha": "many"}, "lora_alpha = many: must be a number"),
        ({"rank_pattern": {"(": 3}}, "rank_pattern: (: "),
        ({"rank_pattern": [3]}, "rank_pattern = [3]: must be an object"),
        ({"use_dora": True}, "has no lora_magnitude_vector, but use_dora = true"),
    ],
)
def test_configs(good, lora, fields, message):
    change_config(lora, **fields)
    assert message in refusal(good, lora)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.pop(Q + "B.weight"), "q_proj: has lora_A only: must have lora_A and lora_B"),
        (lambda t: t.update({Q + "A.weight": torch.zeros(4, 3, 1)}), "lora_A has shape [4, 3, 1]"),
        (lambda t: t.update({Q + "A.weight": torch.zeros(4, 8)}), "lora_B A has shape"),
        (lambda t: t.update({Q + "A.weight": torch.zeros(4, 8, dtype=torch.int32)}), "is of torch.int32: must be"),
        (lambda t: t.update({"base_model.model.lm_head.weight": torch.zeros(1)}), "lm_head.weight: must be lora_A"),
        (lambda t: t.update({"elsewhere.lora_A.weight": torch.zeros(1)}), "elsewhere.lora_A.weight: must be lora_A"),
        (
            lambda t: t.update({key.replace("layers.0", "layers.9"): value.clone() for key, value in list(t.items())}),
            "model.layers.9.self_attn.q_proj: cannot be adapted in",
        ),
        (dict.clear, "has no tensors"),
    ],
)
def test_tensors(good, lora, change, message):
    change_tensors(lora, change)
    assert message in refusal(good, lora)


def test_targets_that_are_no_linears_are_named_with_those_that_are(tmp_path, good):
    save_tiny_checkpoint("mixtral", tmp_path / "checkpoint")
    export(tmp_path / "checkpoint", tmp_path / "base.mote", recipe="none", check="off")
    save_lora(tmp_path / "checkpoint", tmp_path / "lora", targets=("q_proj",))
    name = "base_model.model.model.layers.0.mlp.experts.gate_up_proj"
    matrices = {f"{name}.lora_A.weight": torch.zeros(4, 8), f"{name}.lora_B.weight": torch.zeros(8, 4)}
    change_tensors(tmp_path / "lora", lambda t: t.update(matrices))
    said = refusal(tmp_path, tmp_path / "lora")
    assert "experts.gate_up_proj: cannot be adapted" in said and "k_proj, lm_head, o_proj, q_proj, v_proj" in said


def test_what_a_latent_is_multiplied_with_in_attention_is_no_linear(tmp_path):
    """Its matrices are in the file as those of heads, one of which is multiplied with queries."""
    save_tiny_checkpoint("minicpm3", tmp_path / "checkpoint")
    export(tmp_path / "checkpoint", tmp_path / "base.mote", recipe="none", check="off")
    save_lora(tmp_path / "checkpoint", tmp_path / "lora", targets=("kv_b_proj", "o_proj"))
    assert re.search(
        r"^model\.layers\.\d\.self_attn\.kv_b_proj: cannot be adapted in .*base\.mote: its weight is stored as a stack "
        r"of matrices, read by mote\.head_linear there; must be one of the linears [^.]*kv_a_proj_with_mqa[^.]*q_b",
        refusal(tmp_path, tmp_path / "lora"),
    )


def test_files_that_are_missing_or_damaged(good, lora):
    (lora / TENSORS).write_bytes((lora / TENSORS).read_bytes()[:-5])
    assert "not a whole safetensors file" in refusal(good, lora, FileError)
    (lora / TENSORS).unlink()
    assert f"has no {TENSORS}" in refusal(good, lora, FileError)
    (lora / CONFIG).write_text("[")
    (lora / TENSORS).touch()
    assert "is no JSON" in refusal(good, lora)
    (lora / CONFIG).unlink()
    assert f"has no {CONFIG}" in refusal(good, lora, FileError)


def test_dora_and_its_checkpoint_belong_together(good, lora, tmp_path):
    assert "only DoRA needs it" in refusal(good, lora, ArgumentError, checkpoint=good / "checkpoint")
    save_lora(good / "checkpoint", tmp_path / "dora", use_dora=True)
    assert "give the checkpoint that it was exported from with --checkpoint" in refusal(
        good, tmp_path / "dora", ArgumentError
    )


def test_the_command_says_one_sentence(good, lora, tmp_path, capfd, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def status_of(*words) -> int:
        with pytest.raises(SystemExit) as caught:
            main(["adapter", *map(str, words)])
        return caught.value.code

    assert status_of(lora, "--base", good / "base.mote") == 0
    assert "lora.mote-adapter: " in capfd.readouterr().out
    assert status_of(lora, "--base", good / "base.mote", "--json") == 0
    about = json.loads(capfd.readouterr().out)
    assert about["num_modules"] == 4 and about["ranks"] == [4] and about["method"] == "lora"
    change_config(lora, peft_type="IA3")
    assert status_of(lora, "--base", good / "base.mote") == 2
    # Where the message is wrapped depends on the folder's name.
    said = "".join(capfd.readouterr().err.split())
    assert said.startswith(f"error:{lora / CONFIG}:peft_type=IA3:mustbeLORA")


def test_an_adapter_of_another_base_is_refused(good, lora, tmp_path):
    make_adapter(lora, good / "base.mote", tmp_path / "x.mote-adapter")
    export(good / "checkpoint", tmp_path / "other.mote", recipe="8w", check="off")
    with Model.load(tmp_path / "other.mote") as model:
        with pytest.raises(ArgumentError, match=r"x\.mote-adapter: base = weights \w+ of checkpoint: .*other\.mote"):
            model.load_adapter(tmp_path / "x.mote-adapter")
        with pytest.raises(ArgumentError, match="make the adapter for it with"):
            model.session(adapters=[tmp_path / "x.mote-adapter"])


def test_mutated_folders_are_errors_or_files(good, tmp_path):
    """Whatever bytes the two files have, there is an error of Mote's or an adapter that loads."""
    dice = random.Random(1)
    originals = {name: (good / "lora" / name).read_bytes() for name in (CONFIG, TENSORS)}
    folder = tmp_path / "lora"
    folder.mkdir()
    outcomes = {"made": 0, "refused": 0}
    with Model.load(good / "base.mote") as model:
        for _ in range(120):
            for name, data in originals.items():
                changed = bytearray(data)
                for _ in range(dice.randrange(3)):
                    changed[dice.randrange(min(len(changed), 1500))] = dice.randrange(256)
                (folder / name).write_bytes(changed[: dice.randrange(len(data))] if dice.randrange(8) == 0 else changed)
            try:
                make_adapter(folder, good / "base.mote", tmp_path / "x.mote-adapter")
                model.load_adapter(tmp_path / "x.mote-adapter").close()
                outcomes["made"] += 1
            except MoteError:
                outcomes["refused"] += 1
    assert min(outcomes.values()) > 5, outcomes
