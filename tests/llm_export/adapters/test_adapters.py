"""Adapters in the runner give the logits that PEFT gives on the Hugging Face module."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from llm_export.adapters import make_adapter
from llm_export.api import export
from llm_runner import Model
from tests.adapters import ATTENTION, MLP, peft_logits, save_lora
from tests.contracts.architectures import save_tiny_checkpoint
from tests.contracts.tokenizer import save_tiny_tokenizer

IDS = torch.randint(3, 120, (20,), generator=torch.Generator().manual_seed(1)).tolist()
PREFILL, CHUNK = 9, 4
MAX_RELATIVE_ERROR = 1e-4


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


class Files:
    """A tiny checkpoint, its .mote file and adapters for it."""

    def __init__(self, folder, row: str, **how):
        self.folder, self.checkpoint, self.base = folder, folder / "checkpoint", folder / "model.mote"
        save_tiny_checkpoint(row, self.checkpoint)
        save_tiny_tokenizer(self.checkpoint)
        export(self.checkpoint, self.base, **({"recipe": "none", "check": "off"} | how))

    def lora(self, name: str, **config):
        return save_lora(self.checkpoint, self.folder / name, **config)

    def adapter(self, folder, **how):
        path = folder.with_suffix(".mote-adapter")
        make_adapter(folder, self.base, path, **how)
        return path


@pytest.fixture(scope="module")
def llama(tmp_path_factory):
    return Files(tmp_path_factory.mktemp("llama"), "llama")


def runner_logits(base, adapters, threads: int = 1) -> np.ndarray:
    """Returns the logits of the positions from PREFILL - 1 on: by chunks, one by one and together."""
    options = {"context_length": len(IDS), "threads": threads, "prefill_chunk": CHUNK, "adapters": adapters}
    options["kv_dtype"] = "float32"
    with Model.load(base) as model, model.session(**options) as session:
        rows = [session.prefill(IDS[:PREFILL])]
        rows += [session.decode(id) for id in IDS[PREFILL:-4]]
        rows += list(session.verify(IDS[-4:]))
    return np.stack(rows)


def relative_error(logits: np.ndarray, expected: np.ndarray) -> float:
    return np.abs(logits - expected).max() / np.abs(expected).max()


def check(files: Files, mix: dict, **how) -> None:
    adapters = [(files.adapter(folder, **how), weight) for folder, weight in mix.items()]
    expected = peft_logits(files.checkpoint, mix, IDS)[PREFILL - 1 :]
    plain = peft_logits(files.checkpoint, {}, IDS)[PREFILL - 1 :]
    assert relative_error(plain, expected) > 0.05  # the adapter does something
    found = runner_logits(files.base, adapters)
    assert relative_error(found, expected) <= MAX_RELATIVE_ERROR
    assert relative_error(runner_logits(files.base, []), plain) <= MAX_RELATIVE_ERROR
    assert (runner_logits(files.base, adapters, threads=3) == found).all()


# Fewer targets than were merged: their rows must be found within q, k and v, and within gate and up.
@pytest.mark.parametrize(
    "targets",
    [ATTENTION + MLP, ("q_proj", "v_proj"), ("k_proj",), ("v_proj", "up_proj"), ("gate_proj", "o_proj"), ("lm_head",)],
    ids="-".join,
)
def test_lora_on_any_linears(llama, targets):
    check(llama, {llama.lora("-".join(targets), targets=targets): 1.0})


@pytest.mark.parametrize(
    "config",
    [
        {"use_rslora": True},
        {"r": 17, "lora_alpha": 5},
        {"rank_pattern": {"q_proj": 7, "layers.1.self_attn.v_proj": 3}, "alpha_pattern": {"down_proj": 2}},
        {"dtype": torch.bfloat16},
        {"dtype": torch.float16},
    ],
    ids=["rslora", "odd-rank", "patterns", "bfloat16", "float16"],
)
def test_what_a_config_may_say(llama, request, config):
    check(llama, {llama.lora(request.node.callspec.id, **config): 1.0})


def test_dora_with_the_checkpoint(llama):
    check(llama, {llama.lora("dora", use_dora=True): 1.0}, checkpoint=llama.checkpoint)


def test_several_adapters_are_mixed_by_weight(llama):
    style, tone = llama.lora("style", seed=1), llama.lora("tone", seed=2, targets=("q_proj", "down_proj"), r=3)
    check(llama, {style: 0.5, tone: -1.25})


# q, k and v in one module; a mixture of experts; keys and values of one head; Conv1D; biases; around a latent
@pytest.mark.parametrize(
    ("row", "targets"),
    [
        ("phi3", ("qkv_proj", "gate_up_proj", "down_proj")),
        ("mixtral", ATTENTION),
        ("qwen3_moe", ATTENTION),
        ("gemma2", ATTENTION + MLP),
        ("gpt2", ("c_attn", "c_proj", "c_fc")),
        ("llama-yarn-bias", ATTENTION + MLP),
        ("granite", ATTENTION + MLP),
        ("minicpm3", ("q_b_proj", "kv_a_proj_with_mqa", "o_proj")),  # attention over a latent
    ],
)
def test_other_architectures(tmp_path, row, targets):
    files = Files(tmp_path, row)
    check(files, {files.lora("lora", targets=targets, fan_in_fan_out=row == "gpt2"): 1.0})


SENTENCES = [IDS[:9], IDS[4:5], IDS[2:14], IDS[7:10], IDS[:9], IDS[1:8], IDS[3:12], IDS[5:6]]
NEW = {"max_new_tokens": 6, "do_sample": False, "ignore_eos": True}


def test_sequences_with_different_adapters_decode_together(llama):
    paths = [llama.adapter(llama.lora(f"of-{seed}", seed=seed, r=seed + 1)) for seed in (1, 2, 3)]
    mixes = [[paths[0]], [], [paths[1]], [(paths[0], 0.5), paths[2]], [paths[2]], [paths[0]], [], [(paths[1], -2.0)]]
    with Model.load(llama.base) as model:
        options = NEW | {"top_logprobs": model.info["vocab_size"]}
        adapters = [model.load_adapter(path) for path in paths]
        assert [adapter.name for adapter in adapters] == ["of-1", "of-2", "of-3"]
        found: dict[int, list] = {}
        sessions = [model.session(context_length=32, prefill_chunk=CHUNK, adapters=mix) for mix in mixes]
        with model.batch(8, context_length=32, threads=2, prefill_chunk=CHUNK) as batch:
            numbers = [batch.add(ids, session=s, **options) for ids, s in zip(SENTENCES, sessions, strict=True)]
            while len(batch):
                for piece in batch.step():
                    found.setdefault(piece.sequence, []).append((piece.token_id, piece.logprob.top))
        texts = set()
        for number, ids, mix in zip(numbers, SENTENCES, mixes, strict=True):
            alone = model.generate(ids, context_length=32, threads=1, adapters=mix, **options)
            pieces = [(piece.token_id, piece.logprob.top) for piece in alone.pieces()]
            assert found[number] == pieces, f"sequence {number}"
            texts.add(tuple(id for id, _ in pieces))
        assert len(texts) == len(SENTENCES)  # of each prompt and mix another


def ids_of(generation) -> list[int]:
    list(generation.pieces())
    return generation.token_ids


def test_speculation_forks_and_beams_keep_to_the_adapters(llama):
    path = llama.adapter(llama.lora("spoken", seed=5))
    with Model.load(llama.base) as model, Model.load(llama.base) as draft:
        plain = ids_of(model.generate(IDS, speculative="off", adapters=path, **NEW | {"max_new_tokens": 12}))
        with model.session(adapters=path, draft_model=draft) as session:
            generation = session.generate(IDS, **NEW | {"max_new_tokens": 12})
            assert ids_of(generation) == plain
            assert generation.statistics["proposed_tokens"] > 0
        with model.session(adapters=path) as session:
            session.append(IDS)
            with session.fork() as fork:
                assert (fork.logits() == session.logits()).all()
                assert ids_of(fork.generate(**NEW | {"max_new_tokens": 12})) == plain
            best = session.beam_search(num_beams=2, **{"max_new_tokens": 5, "ignore_eos": True})[0]
            with model.session(adapters=path) as other:
                scores = other.score([*IDS, *best.token_ids])[len(IDS) - 1 :]
        assert sum(scores) / len(scores) == pytest.approx(best.score, abs=1e-4)


def test_a_session_takes_other_adapters_on_the_way(llama):
    first, second = (llama.adapter(llama.lora(f"way-{seed}", seed=seed)) for seed in (6, 7))
    with Model.load(llama.base) as model, model.session(adapters=first) as session:
        session.append(IDS[:9])
        session.set_adapters([(second, 0.5)])
        with model.session(adapters=f"{second}=0.5") as other:
            assert (session.prefill(IDS[9:]) == other.prefill(IDS)).all()
        session.set_adapters([])
        with model.session() as other:
            assert (session.logits() == other.prefill(IDS)).all()
