"""The check tells a file from checkpoints whose experts or router differ from its own in one thing."""

import pytest
import torch

from llm_export import api
from llm_export.capture.latent_attention import absorb
from llm_export.check import check_targets
from llm_export.check.golden import make_prompts
from llm_export.check.oracle import Oracle
from llm_export.checkpoint import open_checkpoint
from llm_export.errors import CheckError
from llm_export.quantize import Recipe, quantize
from tests.captures import captured
from tests.contracts.architectures import find, tiny_model


def swap_experts(model):
    for name, stack in model.named_parameters():
        if ".experts." in name:
            stack.copy_(stack.roll(1, 0))


def damage_one_expert(model):
    next(stack for name, stack in model.named_parameters() if ".experts." in name)[1].mul_(-1)


def drop_the_bias(model):
    for name, bias in model.named_buffers():
        if name.endswith("e_score_correction_bias"):
            bias.zero_()


def damage_the_router(model):
    for name, weight in model.named_parameters():
        if name.endswith((".gate.weight", ".router.weight")):
            weight.copy_(weight.roll(1, 0))


def configured(**fields):
    def change(model):
        for name, value in fields.items():
            assert getattr(model.config, name) != value
            setattr(model.config, name, value)

    return change


CHANGES = {
    "swapped experts": swap_experts,
    "a damaged expert": damage_one_expert,
    "a damaged router": damage_the_router,
    "no correction of scores": drop_the_bias,
    "another scale": configured(routed_scaling_factor=1.25),
    "fewer experts": configured(num_experts_per_tok=1),
    "weights that do not add up to 1": configured(norm_topk_prob=False),
    "other groups": configured(topk_group=2),
}
CASES = [("deepseek_v3", change) for change in CHANGES] + [
    ("mixtral", change) for change in ("swapped experts", "a damaged expert", "a damaged router", "fewer experts")
]


def saved(model, folder):
    model.save_pretrained(folder)
    return open_checkpoint(folder)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The file and the formats of its weights, by model type."""
    made = {}
    for name in ("deepseek_v3", "mixtral"):
        folder = tmp_path_factory.mktemp(name)
        checkpoint = saved(tiny_model(find(name)), folder / "checkpoint")
        api.export(folder / "checkpoint", folder / "model.mote", check="off")
        made[name] = folder / "model.mote", quantize(absorb(captured(checkpoint)), Recipe("8da4w")).weights
    return made


def check(file, weights, checkpoint):
    prompts = make_prompts(checkpoint, checkpoint.config.vocab_size, 64)
    return check_targets(file, ["cpu"], Oracle(checkpoint, weights, keep=True), prompts, "full", 64)


@pytest.mark.parametrize(("name", "change"), CASES)
@torch.no_grad()
def test_one_difference_in_the_routing_is_refused(name, change, files, tmp_path):
    model = tiny_model(find(name))
    CHANGES[change](model)
    with pytest.raises(CheckError, match="disagrees with the Hugging Face module"):
        check(*files[name], saved(model, tmp_path))


@pytest.mark.parametrize("name", ["deepseek_v3", "mixtral"])
def test_the_same_routing_is_accepted(name, files, tmp_path):
    (result, _) = check(*files[name], saved(tiny_model(find(name)), tmp_path))
    assert result.median_relative_error < 1e-5
