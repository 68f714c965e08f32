"""Refuses what a trace would otherwise get silently wrong, in a sentence with its place in the Hugging Face source."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable
from pathlib import Path

from torch import nn
from torch.export import ExportedProgram
from transformers import PretrainedConfig, PreTrainedModel

from llm_export.capture import index_scores
from llm_export.errors import MoteError, UnsupportedError

CACHED_LAYERS = {"attention", "chunked_attention", "full_attention", "indexed_attention", "sliding_attention"}
RECURRENT_LAYERS = {"conv", "hybrid", "hybrid_sliding", "linear_attention", "mamba"}
STATELESS_LAYERS = {"mlp", "moe"}  # layer types that mix no tokens


def check_layer_types(config: PretrainedConfig, model_type: str) -> None:
    """Refuses layers that keep a recurrent state or choose their keys, before the (long) trace of such a model.

    Errors: UnsupportedError
    """
    unknown = sorted(set(_layer_types(config)) - CACHED_LAYERS - RECURRENT_LAYERS - STATELESS_LAYERS)
    if unknown:
        place = _mention(config, unknown[0])
        raise UnsupportedError(model_type, f"Mote has no op for its layers of type '{unknown[0]}' ({place})", _ADD)


def _mention(config: PretrainedConfig, word: str) -> str:
    """Returns the line of the type's modeling file, or else of its config's, that has `word` as a text."""
    path = Path(inspect.getsourcefile(type(config)))
    modeling = path.with_name(path.name.replace("configuration_", "modeling_"))
    for source in filter(Path.exists, (modeling, path)):
        for number, line in enumerate(source.read_text(encoding="utf-8").splitlines(), 1):
            if f'"{word}"' in line:
                return f"{source.name}:{number}"
    return path.name


def place_of(function: Callable) -> str:
    """Returns the file and line of a function in the Hugging Face source; of a module, those of its forward."""
    function = inspect.unwrap(type(function).forward if isinstance(function, nn.Module) else function)
    return f"{Path(inspect.getsourcefile(function)).name}:{inspect.getsourcelines(function)[1]}"


def check_layers(model: PreTrainedModel, model_type: str, touched: set[str]) -> None:
    """Checks that each decoder layer read a state, because a layer that mixes tokens without one forgets the past.

    touched: module paths that used a state. Some classes accept an attention implementation by name and never call it.
    Errors: UnsupportedError
    """
    if not touched:
        raise UnsupportedError(model_type, f"{_mixer(model)} computes attention itself, where no cache is seen", _ADD)
    types = _layer_types(model.config)
    for path, module in model.named_modules():
        if not isinstance(module, nn.ModuleList) or len(module) != model.config.num_hidden_layers:
            continue
        if not any(name.startswith(f"{path}.") for name in touched):
            continue
        for index, layer in enumerate(module):
            stateless = index < len(types) and types[index] in STATELESS_LAYERS
            if not stateless and not any(name.startswith(f"{path}.{index}.") for name in touched):
                what = f"{_mixer(layer)} in layer {index} mixes tokens without a state that Mote knows"
                raise UnsupportedError(model_type, what, _ADD)


def check_graph(program: ExportedProgram, model_type: str) -> None:
    """Checks that no convolution over tokens is left, because it would see the tokens of one call only."""
    for node in program.graph.nodes:
        if node.op == "call_function" and "conv" in str(node.target) and "mote" not in str(node.target):
            modules = list((node.meta.get("nn_module_stack") or {}).values())
            owner = str(modules[-2][1]).rpartition(".")[2] if len(modules) > 1 else "a module"
            what = f"{owner} convolves over tokens without a state that Mote knows"
            raise UnsupportedError(model_type, what, _ADD)


def check_indexers(program: ExportedProgram, model: PreTrainedModel, model_type: str) -> None:
    """Checks that attention reads what indexers choose, because the graph would attend to all keys otherwise.

    Errors: UnsupportedError
    """
    if not index_scores.chooses_keys(model.config):
        return
    calls = [node for node in program.graph.nodes if str(node.target) == "mote.indexer.default"]
    modules = index_scores.indexers(model)
    if not modules or len(calls) < len(modules):
        mixer = type(modules[0]).__name__ if modules else _mixer(model)
        raise UnsupportedError(model_type, f"{mixer} chooses keys in a way that mote::indexer does not offer", _ADD)


_ADD = "Give it a file in llm_export/capture/architectures (docs/adding-a-model.md)"
_MIXERS = ("attention", "attn", "mixer", "mamba", "conv", "delta", "recurrent", "rwkv", "lstm")


def _mixer(module: nn.Module) -> str:
    """Returns the class name of the module's token mixer, as far as names tell."""
    classes = [type(child).__name__ for child in module.modules()]
    named = [name for name in classes if any(word in name.lower() for word in _MIXERS) and not name.startswith("Conv")]
    return next((name for name in named if "ForCausalLM" not in name and "Model" not in name), type(module).__name__)


def _layer_types(config) -> list[str]:
    types = getattr(config, "layer_types", None) or getattr(config, "layers_block_type", None) or []
    return [str(kind) for kind in types]


def explain(error: Exception, model_type: str) -> MoteError:
    """Turns an exception out of torch.export into one sentence with the line of transformers that caused it."""
    if isinstance(error, MoteError):
        return error
    frames = traceback.extract_tb(error.__traceback__)
    inside = [frame for frame in frames if "transformers" in Path(frame.filename).parts]
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    reason = (lines[0] if lines else type(error).__name__).rstrip(".")
    place = ""
    if inside:
        place = f" at {Path(inside[-1].filename).name}:{inside[-1].lineno} (`{inside[-1].line}`)"
    elif "Constraints violated" in reason:
        reason = "its module fixes the number of tokens, usually by a loop over them"
    return UnsupportedError(model_type, f"torch.export stops{place}: {reason}", _ADD)
