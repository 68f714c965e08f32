"""A program file as lm-eval sees a model; what it is asked is answered as lm-eval's own class for transformers does."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lm_eval.api.instance import Instance
from lm_eval.api.model import TemplateLM
from lm_eval.defaults import DEFAULT_MAX_GEN_TOKS, DEFAULT_OTHER_SEED
from lm_eval.models.utils import (
    handle_stop_sequences,
    has_bos_prefix,
    normalize_gen_kwargs,
    postprocess_generated_text,
)
from lm_eval.utils import get_rolling_token_windows, make_disjoint_window

from llm_export.progress import Progress
from llm_runner import Model
from llm_runner.errors import ArgumentError, TemplateError
from mote.harness.generating import continue_all
from mote.harness.scoring import score_pairs


class ProgramLM(TemplateLM):
    """Answers the requests of tasks with a loaded model.

    max_length: tokens that the model may see; None: all that it has positions for
    prefix_token_id: what a text without a context follows; None: what the tokenizer begins texts with, or the file's
        BOS, or its EOS
    num_truncated: requests so far that lost the left end of their context
    Errors: ArgumentError if a number is out of its range, or no prefix can be found
    Source: lm_eval models/huggingface.py HFLM
    """

    def __init__(
        self,
        model: Model,
        max_length: int | None = None,
        prefix_token_id: int | None = None,
        progress: Progress | None = None,
        **session_options: Any,
    ):
        super().__init__()
        largest = model.info["max_position_embeddings"]
        if max_length is not None and not 2 <= max_length <= largest:
            raise ArgumentError(f"context = {max_length}: must be in 2..{largest} (the model's positions)")
        vocab_size = model.info["vocab_size"]
        if prefix_token_id is not None and not 0 <= prefix_token_id < vocab_size:
            raise ArgumentError(f"prefix_token_id = {prefix_token_id}: must be in 0..{vocab_size - 1}")
        self.model = model
        self.max_length = largest if max_length is None else max_length
        self.num_truncated = 0
        self._eos: list[int] = model.describe()["eos_token_ids"]
        self._prefix = _prefix_of(model, self._eos) if prefix_token_id is None else prefix_token_id
        self._prefix_text = model.detokenize([self._prefix])
        self._progress = progress or Progress(show=False)
        self._session_options = session_options | {"context_length": self.max_length}

    @property
    def eot_token_id(self) -> int:
        return self._eos[0] if self._eos else self._prefix

    @property
    def prefix_token_id(self) -> int:
        return self._prefix

    @property
    def tokenizer_name(self) -> str:
        return Path(self.model.path).name

    def tok_encode(self, string: str, add_special_tokens: bool | None = None, **ignored: Any) -> list[int]:
        if add_special_tokens is None:
            add_special_tokens = not has_bos_prefix(string, self._prefix_text)
        return self.model.tokenize(string, add_special_tokens=add_special_tokens)

    def loglikelihood(self, requests: list[Instance], disable_tqdm: bool = True) -> list[tuple[float, bool]]:
        return super().loglikelihood(requests, disable_tqdm=disable_tqdm)

    def _loglikelihood_tokens(
        self, requests: list[tuple[Any, list[int], list[int]]], disable_tqdm: bool = True, **ignored: Any
    ) -> list[tuple[float, bool]]:
        for texts, _, continuation in requests:
            if not 1 <= len(continuation) <= self.max_length:
                raise ArgumentError(
                    f"a continuation of {len(continuation)} tokens, {_shortened(texts)}: must have 1..{self.max_length}"
                )
        pairs = [(context, continuation) for _, context, continuation in requests]
        self.num_truncated += sum(len(a) + len(b) > self.max_length + 1 for a, b in pairs)
        with (
            self._progress.stage("scoring", len(pairs), "requests") as bar,
            self.model.session(**self._session_options) as session,
        ):
            return score_pairs(session, pairs, bar.update)

    def loglikelihood_rolling(self, requests: list[Instance], disable_tqdm: bool = True) -> list[float]:
        windows: list[tuple[Any, list[int], list[int]]] = []
        owners: list[int] = []
        for index, request in enumerate(requests):
            ids = self.tok_encode(request.args[0])
            for window in get_rolling_token_windows(ids, self.prefix_token_id, self.max_length, context_len=1):
                windows.append((None, *make_disjoint_window(window)))
                owners.append(index)
        totals = [0.0] * len(requests)
        for index, (logprob, _) in zip(owners, self._loglikelihood_tokens(windows), strict=True):
            totals[index] += logprob
        return totals

    def generate_until(self, requests: list[Instance], disable_tqdm: bool = True) -> list[str]:
        prepared = [self._generation_of(request, seed) for seed, request in enumerate(requests, DEFAULT_OTHER_SEED)]
        with self._progress.stage("generating", len(prepared), "requests") as bar:
            found = continue_all(self.model, prepared, self._session_options, bar.update)
        return [
            postprocess_generated_text(
                self.model.detokenize(ids, skip_special_tokens=True), options["stop_strings"], None
            )
            for ids, (_, options) in zip(found, prepared, strict=True)
        ]

    def _generation_of(self, request: Instance, seed: int) -> tuple[list[int], dict[str, Any]]:
        """Returns the ids of the prompt, and what the request's arguments are as options of a generation."""
        text, given = request.args
        options: dict[str, Any] = dict(normalize_gen_kwargs(given, DEFAULT_MAX_GEN_TOKS))
        count = options.pop("max_gen_toks")
        room = self.max_length - count
        if room <= 0:
            raise ArgumentError(f"max_gen_toks = {count}: must be less than the context of {self.max_length} tokens")
        stops = handle_stop_sequences(options.pop("until", None), eos=self.model.detokenize(self._eos[:1]))
        if not options["do_sample"]:
            options.pop("temperature", None)
        else:
            options["seed"] = seed
        if options.get("num_beams") == 1:
            del options["num_beams"]
        ids = self.tok_encode(text)
        self.num_truncated += len(ids) > room
        # Stop strings may spell special tokens, which are taken out of the text afterwards.
        options |= {"max_new_tokens": count, "skip_special_tokens": False, "stop_strings": [*filter(None, stops)]}
        return ids[-room:], options

    def chat_template(self, chat_template: bool | str = False) -> str | None:
        return self.model.chat_template if chat_template else None

    def apply_chat_template(self, chat_history: list[dict[str, str]], add_generation_prompt: bool = True) -> str:
        def rendered(messages: Sequence[dict[str, str]]) -> str:
            return str(
                self.model.apply_chat_template(
                    messages, tokenize=False,
                    add_generation_prompt=add_generation_prompt, continue_final_message=not add_generation_prompt,
                )
            )  # fmt: skip

        try:
            return rendered(chat_history)
        except TemplateError:  # some templates know no system messages
            without = [message for message in chat_history if message["role"] != "system"]
            if len(without) == len(chat_history):
                raise
            return rendered(without)


def _prefix_of(model: Model, eos: Sequence[int]) -> int:
    begun, plain = model.tokenize("a"), model.tokenize("a", add_special_tokens=False)
    if begun[:1] != plain[:1]:
        return begun[0]
    bos = model.info["bos_token_id"]
    if bos is None and not eos:
        raise ArgumentError(f"{model.path}: has neither BOS nor EOS: say which token texts follow by --prefix-token-id")
    return eos[0] if bos is None else bos


def _shortened(texts: Any) -> str:
    return repr(texts[1][:40]) if texts else "of a text"
