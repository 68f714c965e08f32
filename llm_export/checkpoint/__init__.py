"""Opens a checkpoint: a Hugging Face folder, a hub id or a GGUF file."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch
from transformers import AutoConfig, PretrainedConfig

from llm_export.checkpoint import eagle3, model_types
from llm_export.checkpoint.embedding import EmbeddingSetup, default_setup, is_base_model, read_setup
from llm_export.checkpoint.files import open_tensors, read_text
from llm_export.checkpoint.gguf import find_gguf, read_gguf
from llm_export.checkpoint.other_formats import refuse_file, refuse_folder
from llm_export.checkpoint.quantized import quantized_files
from llm_export.checkpoint.tokenizer import TokenizerFile
from llm_export.checkpoint.weights import SafetensorsFiles, Shapes, TensorFiles, WeightReader
from llm_export.errors import ArgumentError, FileError, UnsupportedError

TOKENIZER_FILES = ("tokenizer.json", "tekken.json", "tokenizer.model", "spiece.model")
DOWNLOADED = ["*.json", "*.safetensors", "*.jinja", "LICENSE*", "tokenizer*", "*.model", "*.txt"]
SHARD_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*\.safetensors")
MAX_JSON_BYTES = 256 << 20
CONVERT_MODEL = (
    "from transformers import AutoModelForCausalLM as M; M.from_pretrained('OLD').save_pretrained('NEW')"
)
CONVERT_TENSORS = (
    "import torch, safetensors.torch as s; s.save_file(torch.load('FILE', weights_only=True), 'model.safetensors')"
)
ASSISTANT_PREFIX = "assistant."  # of the names that its tensors have beside those of the model


@dataclass(frozen=True)
class AssistantSource:
    """A checkpoint that drafts for a model. Its tensors are among the model's, behind ASSISTANT_PREFIX."""

    source: str
    config: PretrainedConfig  # of an EAGLE-3 head, that of its layers
    eagle: eagle3.Eagle3 | None = None  # None: it is of the model types of DRAFTERS

    @property
    def reads_caches(self) -> bool:
        """Whether it attends to keys and values of the model, and has none of its own."""
        return self.eagle is None


@dataclass
class Checkpoint:
    """What an export reads. `config` is the text model's; weights stay in their files."""

    model_id: str
    revision: str  # commit on the hub, "" for a folder
    folder: Path  # or the GGUF file
    config: PretrainedConfig
    weights: WeightReader
    generation_config: dict = field(default_factory=dict)
    tokenizer_config: dict = field(default_factory=dict)
    tokenizer: TokenizerFile | None = None  # the first of TOKENIZER_FILES that is there
    chat_template: str = ""
    license: str = ""  # text of the licence file
    trust_remote_code: bool = False
    generates: bool = True  # False: a model without an output head, or with no use for one
    embedding: EmbeddingSetup | None = None  # how it makes embeddings; None: it shall not
    assistant: AssistantSource | None = None  # what drafts for it
    without_head: str = ""  # why a head for multi-token prediction that it has is left out; "": it is not


def open_checkpoint(
    source: str | Path,
    *,
    revision: str | None = None,
    subfolder: str = "",
    token: str | bool | None = None,
    cache_dir: str | Path | None = None,
    local_files_only: bool = False,
    trust_remote_code: bool = False,
    embed: bool | None = None,
    tokenizer: bool | str | Path = True,
    weights: bool = True,
) -> Checkpoint:
    """Opens a local folder or GGUF file, or downloads a hub id's files; the arguments are those of `from_pretrained`.

    embed: whether it is to give embeddings; None: if it is made for that
    tokenizer: whether tokenizer and chat template are wanted, or the folder that has them
    weights: False: of a folder or hub id the config is enough, and their values cannot be read
    Errors: FileError if files are missing or malformed; UnsupportedError if it is not a decoder-only language model.
    Cost: reads headers only.
    """
    folder = Path(source)
    if (path := find_gguf(folder)) is not None:
        return _with_tokenizer(_open_gguf(path, embed, tokenizer is True), tokenizer)
    commit = ""
    if folder.exists() and not folder.is_dir():
        refuse_file(folder)
    if not folder.is_dir():
        patterns = DOWNLOADED if weights else ["*.json"]
        folder = _download(str(source), patterns, revision, subfolder, token, cache_dir, local_files_only)
        commit = folder.name if re.fullmatch(r"[0-9a-f]{40}", folder.name) else (revision or "")
    folder = folder / subfolder if subfolder else folder
    config = _config(folder, trust_remote_code)
    tokenizer_config = _read_json(folder / "tokenizer_config.json") or {}
    setup = None if embed is False else read_setup(folder, config, tokenizer_config, _read_json)
    embeds_only = embed is not False and (setup is not None or is_base_model(config))
    if setup is None and (embed or embeds_only):
        setup = default_setup(config)
    checkpoint = Checkpoint(
        model_id=str(source) if not Path(source).is_dir() else folder.resolve().name,
        revision=commit,
        folder=folder,
        config=config,
        weights=WeightReader(_open_tensors(folder, config)) if weights else Shapes(_dtype_of(config)),
        generation_config=_read_json(folder / "generation_config.json") or {},
        tokenizer_config=tokenizer_config,
        tokenizer=_tokenizer(folder),
        chat_template=_chat_template(folder, tokenizer_config),
        license=_license(folder),
        trust_remote_code=trust_remote_code,
        generates=not embeds_only,
        embedding=setup,
    )
    return _with_tokenizer(checkpoint, tokenizer)


def _open_gguf(path: Path, embed: bool | None, tokenizer: bool) -> Checkpoint:
    contents = read_gguf(path, tokenizer=tokenizer)
    path = contents.model.path
    return Checkpoint(
        model_id=contents.model.name,
        revision="",
        folder=path,
        config=contents.config,
        weights=WeightReader(contents.tensors),
        generation_config=contents.generation_config,
        tokenizer_config=contents.tokenizer_config,
        tokenizer=TokenizerFile(path, "tokenizer.json", contents.tokenizer_json) if tokenizer else None,
        chat_template=contents.chat_template,
        license=contents.license,
        embedding=default_setup(contents.config) if embed else None,
    )


def _dtype_of(config: PretrainedConfig) -> torch.dtype:
    return config.dtype if isinstance(getattr(config, "dtype", None), torch.dtype) else torch.bfloat16


def _open_tensors(folder: Path, config: PretrainedConfig) -> TensorFiles:
    files = SafetensorsFiles(_tensor_files(folder))
    fields = _read_json(folder / "config.json") or {}
    text = fields.get("text_config")
    found = fields.get("quantization_config", text.get("quantization_config") if isinstance(text, dict) else None)
    if found is None:
        return files
    if not isinstance(found, dict):
        raise FileError(f"{folder}/config.json: quantization_config = {found!r}: must be an object")
    return quantized_files(files, found, config.model_type)


def _with_tokenizer(checkpoint: Checkpoint, tokenizer: bool | str | Path) -> Checkpoint:
    """Takes tokenizer and chat template away, or those of another folder."""
    if tokenizer is True:
        return checkpoint
    if tokenizer is False:
        return replace(checkpoint, tokenizer=None, chat_template="")
    folder = Path(tokenizer)
    file = _tokenizer(folder)
    if file is None:
        raise FileError(f"{folder}: has no tokenizer: must be a folder with one of {', '.join(TOKENIZER_FILES)}")
    config = _read_json(folder / "tokenizer_config.json") or {}
    template = _chat_template(folder, config) or checkpoint.chat_template
    return replace(checkpoint, tokenizer=file, tokenizer_config=config, chat_template=template)


def with_assistant(
    checkpoint: Checkpoint,
    source: str | Path,
    *,
    token: str | bool | None = None,
    cache_dir: str | Path | None = None,
    local_files_only: bool = False,
) -> Checkpoint:
    """Adds a folder or hub id with what drafts for a model; the arguments are those of `from_pretrained`.

    Errors: ArgumentError if that is no assistant, those of open_checkpoint. Cost: reads headers only
    """
    if not checkpoint.generates:
        raise ArgumentError(f"assistant = {source}: {checkpoint.model_id} generates no text: must be absent")
    folder = Path(source)
    if not folder.is_dir():
        folder = _download(str(source), ["*.json", "*.safetensors"], None, "", token, cache_dir, local_files_only)
    fields = _read_json(folder / "config.json") or {}
    if fields.get("model_type") in model_types.DRAFTERS:
        found = AssistantSource(str(source), _load_config(folder, trust_remote_code=False))
    else:
        found = _eagle_head(str(source), folder, fields)
    weights = checkpoint.weights.beside(ASSISTANT_PREFIX, _open_tensors(folder, found.config))
    return replace(checkpoint, weights=weights, assistant=found)


def _eagle_head(source: str, folder: Path, fields: dict) -> AssistantSource:
    names = _tensor_files(folder, CONVERT_TENSORS)
    if not eagle3.is_head(names):
        kinds = " or ".join(model_types.DRAFTERS)
        what = f"model_type is {fields.get('model_type')!r}"
        if "fc.weight" in names:
            what = "tensors are those of an EAGLE head before version 3"
        raise ArgumentError(f"assistant = {source}: its {what}: must be {kinds}, or an EAGLE-3 head")
    eagle = eagle3.read(source, folder / "config.json", fields, names)
    return AssistantSource(source, eagle.layers, eagle)


def _tokenizer(folder: Path) -> TokenizerFile | None:
    path = next((folder / name for name in TOKENIZER_FILES if (folder / name).is_file()), None)
    return TokenizerFile.at(path) if path is not None else None


def _download(source, patterns, revision, subfolder, token, cache_dir, local_files_only) -> Path:
    if not re.fullmatch(r"[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)?", source) or source.startswith("."):
        raise FileError(f"{source}: no such folder, and not a hub id (owner/name)")
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    patterns = [f"{subfolder}/{pattern}" if subfolder else pattern for pattern in patterns]
    try:
        path = snapshot_download(
            source, revision=revision, token=token, cache_dir=cache_dir, local_files_only=local_files_only,
            allow_patterns=patterns,
        )  # fmt: skip
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise FileError(f"{source}: no such folder, and it cannot be downloaded from the hub: {reason}") from error
    return Path(path)


def _read_json(path: Path) -> dict | None:
    """Returns the object in a JSON file, or None where there is no such file."""
    if not path.is_file():
        return None
    if path.stat().st_size > MAX_JSON_BYTES:
        raise FileError(f"{path}: {path.stat().st_size} bytes: must be at most {MAX_JSON_BYTES}")
    text = read_text(path)
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FileError(f"{path}: not valid JSON: {error}") from error
    if not isinstance(value, dict):
        raise FileError(f"{path}: holds a {type(value).__name__}: must be a JSON object")
    return value


def _config(folder: Path, trust_remote_code: bool) -> PretrainedConfig:
    fields = _read_json(folder / "config.json")
    if fields is None:
        refuse_folder(folder)
    model_type = fields.get("model_type")
    if not isinstance(model_type, str):
        raise FileError(f"{folder}/config.json: model_type = {model_type!r}: must be the name of a transformers model")
    text_type = _text_type(fields)
    refusal = model_types.refusal(text_type or model_type)
    if refusal and not (trust_remote_code and "auto_map" in fields):
        raise UnsupportedError(model_type, *refusal)
    config = _load_config(folder, trust_remote_code)
    config = _text_config(config, fields) if text_type else config
    if hasattr(config, "quantization_config"):  # modules would look for packed parameters
        del config.quantization_config
    return config


def _load_config(folder: Path, trust_remote_code: bool) -> PretrainedConfig:
    try:
        return AutoConfig.from_pretrained(folder, trust_remote_code=trust_remote_code)
    except Exception as error:  # transformers validates configs with many exception types
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise FileError(f"{folder}/config.json: transformers refuses it: {reason}") from error


def _text_type(fields: dict) -> str | None:
    """Returns the model_type of the text part of a multimodal wrapper, None where there is none of its own."""
    if fields["model_type"] in model_types.DRAFTERS:  # whose text part is no model without its own
        return None
    text = fields.get("text_config")
    text_type = text.get("model_type") if isinstance(text, dict) else None
    return text_type if isinstance(text_type, str) and model_types.refusal(text_type) is None else None


def _text_config(config: PretrainedConfig, fields: dict) -> PretrainedConfig:
    text = config.text_config
    tied = fields.get("tie_word_embeddings")
    if tied is not None and "tie_word_embeddings" not in fields["text_config"]:
        text.tie_word_embeddings = tied
    return text


def _tensor_files(folder: Path, convert: str = CONVERT_MODEL) -> dict[str, Path]:
    """Returns tensor name -> safetensors file. convert: code that makes such a file of OLD, for messages"""
    index_path = folder / "model.safetensors.index.json"
    index = _read_json(index_path)
    if index is not None:
        return _sharded(folder, index_path, index)
    path = folder / "model.safetensors"
    if not path.is_file():
        _refuse_other_formats(folder, convert)
    return dict.fromkeys(_names(path), path)


def _sharded(folder: Path, index_path: Path, index: dict) -> dict[str, Path]:
    weight_map = index.get("weight_map")
    if not isinstance(weight_map, dict) or not weight_map:
        raise FileError(f"{index_path}: weight_map is missing or empty: must map tensor names to files")
    for file in sorted({str(file) for file in weight_map.values()}):
        if not SHARD_NAME.fullmatch(file):
            raise FileError(f"{index_path}: weight_map names '{file}': must be a .safetensors file beside it")
        if not (folder / file).is_file():
            raise FileError(f"{index_path}: weight_map names '{file}', which is not there. Download it")
    present = {file: set(_names(folder / file)) for file in set(weight_map.values())}
    for name, file in weight_map.items():
        if name not in present[file]:
            raise FileError(f"{folder / file}: lacks tensor '{name}' that {index_path.name} places there")
    return {name: folder / file for name, file in weight_map.items()}


def _names(path: Path) -> list[str]:
    with open_tensors(path) as file:
        return list(file.keys())


def _refuse_other_formats(folder: Path, convert: str) -> None:
    others = sorted(path.name for path in folder.glob("*") if path.suffix in (".bin", ".pt", ".pth"))
    if others:
        raise FileError(
            f"{folder}: has {others[0]} but no model.safetensors; pickled weights are not read. "
            f'If you trust them, convert: python -c "{convert.replace("FILE", others[0])}"'
        )
    raise FileError(f"{folder}: has neither model.safetensors nor model.safetensors.index.json")


def _chat_template(folder: Path, tokenizer_config: dict) -> str:
    path = folder / "chat_template.jinja"
    if path.is_file():
        return read_text(path)
    template = (_read_json(folder / "chat_template.json") or tokenizer_config).get("chat_template")
    if isinstance(template, list):  # several templates with names
        named = {entry.get("name"): entry.get("template") for entry in template if isinstance(entry, dict)}
        template = named.get("default") or next(iter(named.values()), None)
    return template if isinstance(template, str) else ""


def _license(folder: Path) -> str:
    paths = sorted(path for path in folder.glob("LICENSE*") if path.is_file())
    return read_text(paths[0]) if paths else ""
