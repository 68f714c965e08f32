"""What a repository of the hub has, and sentences for what can go wrong there."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

from llm_runner.errors import ArgumentError, FileError
from mote.store.names import Name


@dataclass(frozen=True)
class Repository:
    """A repository at one commit. files: bytes by path"""

    name: Name
    commit: str
    files: dict[str, int] = field(repr=False)
    license: str = ""
    model_type: str = ""
    num_parameters: int = 0  # 0: the hub does not say
    quantization: str = ""  # the method by which a checkpoint was quantized already

    @property
    def is_checkpoint(self) -> bool:
        """Whether it is what `mote export` reads."""
        return "config.json" in self.files and any(path.endswith(".safetensors") for path in self.files)

    @property
    def checkpoint_bytes(self) -> int:
        """Bytes of the weights of a checkpoint."""
        return sum(count for path, count in self.files.items() if path.endswith(".safetensors") and "/" not in path)

    @staticmethod
    def of(name: Name, answer: Mapping[str, Any]) -> Repository:
        """Reads what the hub answers about a repository."""
        siblings = answer.get("siblings") or []
        config, card = answer.get("config") or {}, answer.get("cardData") or {}
        weights, gguf = answer.get("safetensors") or {}, answer.get("gguf") or {}  # read from the files' metadata
        about = config.get("quantization_config")
        return Repository(
            name=name,
            commit=answer.get("sha") or "",
            files={each["rfilename"]: (each.get("lfs") or each).get("size") or 0 for each in siblings},
            license=str(card.get("license") or ""),
            model_type=str(config.get("model_type") or gguf.get("architecture") or ""),
            num_parameters=int(weights.get("total") or gguf.get("total") or 0),
            quantization=str(about.get("quant_method") or "unnamed") if isinstance(about, dict) else "",
        )


def client() -> Any:
    """Returns the hub's client, of the endpoint and with the token that its environment and files name.

    Errors: ArgumentError with the line to type if it is not installed
    """
    if find_spec("huggingface_hub") is None:
        raise ArgumentError("the hub needs huggingface_hub, which is not installed: pip install huggingface_hub")
    from huggingface_hub import HfApi

    return HfApi(endpoint=os.environ.get("HF_ENDPOINT") or None, library_name="mote")


def read_text(name: Name, path: str) -> str:
    """Returns a small file of a repository, "" if it has none. Errors: those of the hub's client"""
    from huggingface_hub import hf_hub_url
    from huggingface_hub.errors import RemoteEntryNotFoundError
    from huggingface_hub.utils import build_hf_headers, get_session, hf_raise_for_status

    api = client()
    url = hf_hub_url(name.repo, path, revision=name.revision or None, endpoint=api.endpoint)
    response = get_session().get(url, headers=build_hf_headers(token=api.token, library_name="mote"), timeout=30)
    try:
        hf_raise_for_status(response)
    except RemoteEntryNotFoundError:
        return ""
    return response.text


@contextlib.contextmanager
def plain_errors(name: Name) -> Iterator[None]:
    """Inside, what the hub's client raises becomes a FileError that says what to do."""
    from huggingface_hub import errors

    try:
        yield
    except errors.GatedRepoError as error:
        raise FileError(
            f"{name.repo}: is gated: accept its terms on its page of the hub, then give your token in HF_TOKEN "
            f"or by 'hf auth login'"
        ) from error
    except errors.RevisionNotFoundError as error:
        raise FileError(f"{name.repo}: has no revision '{name.revision}'") from error
    except errors.RepositoryNotFoundError as error:
        raise FileError(
            f"the hub has no model '{name.repo}'. If it is private, give your token in HF_TOKEN or by 'hf auth login'"
        ) from error
    except errors.OfflineModeIsEnabled as error:
        raise FileError(f"{name}: HF_HUB_OFFLINE forbids to ask the hub; 'mote list' shows what is here") from error
    except errors.HfHubHTTPError as error:
        status = error.response.status_code if error.response is not None else "no status"
        hints = {401: ": give a token in HF_TOKEN or by 'hf auth login'", 403: ": the token has no right to it"}
        hint = hints.get(status, "")
        raise FileError(f"{name.repo}: the hub refuses it with status {status}{hint}") from error
    except errors.HTTPError as error:
        raise FileError(
            f"{name}: the hub at {client().endpoint} cannot be reached ({first_line(error)}); models that 'mote list' "
            f"shows need no network"
        ) from error
    except errors.HFValidationError as error:
        raise ArgumentError(f"{name.repo}: not a name of the hub: {first_line(error)}") from error


def first_line(error: BaseException) -> str:
    """Returns the first line of what an exception says, or else its type."""
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)


def is_safe(path: str) -> bool:
    """Whether a repository's path stays inside of a folder."""
    return "\\" not in path and all(part not in ("", ".", "..") for part in path.split("/"))
