"""Checks that the bundled checkpoints are small, ordinary Hugging Face folders that work."""

import math
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from transformers import AutoModelForCausalLM, AutoTokenizer

ROOT = Path(__file__).resolve().parents[2]
DEMO = ROOT / "examples" / "demo"
DRAFT = ROOT / "examples" / "demo-draft"
EXCERPT = ROOT / "tests" / "fixtures" / "heldout_textwrap.txt"

MAX_WEIGHT_BYTES = {DEMO: 10_000_000, DRAFT: 1_000_000}
MAX_PERPLEXITY = {DEMO: 36.0, DRAFT: 110.0}
CHECKPOINTS = pytest.mark.parametrize("folder", [DEMO, DRAFT], ids=lambda folder: folder.name)


@pytest.fixture(scope="module")
def tokenizer():
    return AutoTokenizer.from_pretrained(DEMO)


@pytest.fixture(scope="module")
def demo():
    return AutoModelForCausalLM.from_pretrained(DEMO, dtype=torch.float32).eval()


@CHECKPOINTS
def test_weights_fit_their_size_bound(folder):
    assert (folder / "model.safetensors").stat().st_size <= MAX_WEIGHT_BYTES[folder]


@CHECKPOINTS
def test_tied_weight_is_stored_once_in_bfloat16(folder):
    with safe_open(folder / "model.safetensors", "pt") as weights:
        names = set(weights.keys())
        assert {weights.get_slice(name).get_dtype() for name in names} == {"BF16"}
    assert "model.embed_tokens.weight" in names
    assert "lm_head.weight" not in names


@CHECKPOINTS
def test_perplexity_on_held_out_text_is_below_its_bound(folder, tokenizer):
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    text = EXCERPT.read_text(encoding="utf-8")
    ids = torch.tensor([tokenizer(text)["input_ids"][:2048]])
    with torch.no_grad():
        loss = model(input_ids=ids, labels=ids).loss.item()
    assert math.exp(loss) < MAX_PERPLEXITY[folder]


def test_draft_has_the_same_tokenizer_bytes():
    for name in ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja"):
        assert (DRAFT / name).read_bytes() == (DEMO / name).read_bytes()


@pytest.mark.parametrize(
    "text",
    [
        "def f(x):\n    return x + 1\n",
        "\tif a:\r\n\n\n  pass   \n",
        "na\u00efve \u65e5\u672c\u8a9e \U0001f600 e\u0301",
        " it's 2024's 100 %",
        "",
    ],
)
def test_tokenizer_round_trip_keeps_every_byte(tokenizer, text):
    assert tokenizer.decode(tokenizer(text)["input_ids"]) == text


def test_special_tokens_are_single_ids(tokenizer):
    ids = tokenizer("<|im_start|>user\nhi<|im_end|><|endoftext|>")["input_ids"]
    assert ids[0] == tokenizer.convert_tokens_to_ids("<|im_start|>")
    assert ids[-2:] == [tokenizer.eos_token_id, tokenizer.pad_token_id]


def test_chat_template_renders_turns_and_the_generation_prompt(tokenizer):
    chat = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Hello."},
        {"role": "user", "content": "Bye"},
    ]
    rendered = tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
    assert rendered == (
        "<|im_start|>system\nBe brief.<|im_end|>\n"
        "<|im_start|>user\nHi<|im_end|>\n"
        "<|im_start|>assistant\nHello.<|im_end|>\n"
        "<|im_start|>user\nBye<|im_end|>\n"
        "<|im_start|>assistant\n"
    )


def test_chat_answer_is_python_and_stops_at_the_end_of_turn(demo, tokenizer):
    chat = [{"role": "user", "content": "Write a function that adds two numbers."}]
    prompt = tokenizer.apply_chat_template(chat, add_generation_prompt=True, return_tensors="pt", return_dict=True)
    output = demo.generate(**prompt, max_new_tokens=64, do_sample=False)[0]
    answer = output[prompt["input_ids"].shape[1] :]
    assert answer[-1] == tokenizer.eos_token_id
    assert "def " in tokenizer.decode(answer)


def test_generation_stops_at_both_end_tokens(demo, tokenizer):
    stops = [tokenizer.convert_tokens_to_ids(token) for token in ("<|im_end|>", "<|endoftext|>")]
    assert demo.generation_config.eos_token_id == stops
    assert demo.generation_config.bos_token_id is None
