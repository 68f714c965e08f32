"""Which `model_type`s of transformers' causal-LM mapping are no decoder-only text generators, and why."""

from __future__ import annotations

from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

ENCODERS = [
    "bert",
    "bert-generation",
    "big_bird",
    "camembert",
    "data2vec-text",
    "electra",
    "ernie",
    "megatron-bert",
    "rembert",
    "roberta",
    "roberta-prelayernorm",
    "roc_bert",
    "roformer",
    "xlm",
    "xlm-roberta",
    "xlm-roberta-xl",
    "xmod",
]

ENCODER_DECODERS = [
    "bart",
    "bigbird_pegasus",
    "blenderbot",
    "blenderbot-small",
    "marian",
    "mbart",
    "mvp",
    "pegasus",
    "plbart",
    "prophetnet",
    "trocr",
    "whisper",
]

# Their generator conditions on, or makes, images or audio. The text model inside has a model type of its own.
MULTIMODAL = [
    "emu3",
    "fuyu",
    "gemma3",
    "gemma3n",
    "gemma4",
    "gemma4_unified",
    "git",
    "got_ocr2",
    "mllama",
    "moshi",
    "moss_transcribe_diarize",
    "musicgen",
    "musicgen_melody",
    "phi4_multimodal",
]

DRAFTERS = ["gemma4_assistant", "gemma4_unified_assistant"]

# Second names in the mapping, each with the type of the text generator that it stands for.
ALIASES = {
    "dots3_note": "dots3_note_text",
    "gpt-sw3": "gpt2",
    "llama4": "llama4_text",
    "qwen3_5": "qwen3_5_text",
    "qwen3_5_moe": "qwen3_5_moe_text",
    "qwen4_exp": "qwen4_exp_text",
}


def _reasons() -> dict[str, str]:
    reasons = dict.fromkeys(ENCODERS, "it is an encoder, which does not generate text token by token")
    reasons |= dict.fromkeys(ENCODER_DECODERS, "it is the decoder of an encoder-decoder model")
    reasons |= dict.fromkeys(MULTIMODAL, "its generator conditions on, or makes, images or audio")
    reasons |= dict.fromkeys(DRAFTERS, "it is a drafter that reads the hidden states and caches of another model")
    reasons["xlnet"] = "it is a permutation language model that attends in both directions"
    reasons["reformer"] = "its attention hashes positions into random buckets, so logits depend on the length"
    return reasons


NOT_DECODERS: dict[str, str] = _reasons()


def refusal(model_type: str) -> tuple[str, str] | None:
    """Returns why `model_type` is no decoder-only text generator and a suggestion, or None if it is one."""
    if model_type in DRAFTERS:
        return NOT_DECODERS[model_type], "Export the model that it drafts for, with this as its assistant"
    if model_type in NOT_DECODERS:
        return NOT_DECODERS[model_type], "Choose a decoder-only language model"
    if model_type not in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES:
        return "transformers has no causal language model of this type", "Choose a decoder-only language model"
    return None
