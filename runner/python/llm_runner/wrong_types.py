"""Arguments of a wrong type are an ArgumentError that names them, whatever the call did with them.

Calls are not slower for it: only where one fails with a TypeError or an AttributeError are its arguments compared with
its annotations.
"""

from __future__ import annotations

import functools
import inspect
import re
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import NoneType, UnionType
from typing import IO, Any, Literal, Union, Unpack, get_args, get_origin

import numpy as np

from llm_runner.errors import ArgumentError

MAX_SHOWN = 60


def name_wrong_types_in(module: dict[str, Any], names: Iterable[str]) -> None:
    """Does so for the functions and classes of a module that have these names."""
    package = module["__name__"]
    classes: dict[type, None] = {}  # with those that they inherit from, each once
    for name in names:
        public = module[name]
        if not isinstance(public, type):
            module[name] = name_wrong_types(public) if callable(public) else public
        elif not issubclass(public, (BaseException, tuple, dict)) and not getattr(public, "_is_protocol", False):
            classes |= dict.fromkeys(each for each in public.__mro__ if each.__module__.startswith(package))
    for each in classes:
        name_wrong_types_of(each)


def name_wrong_types(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a function that raises ArgumentError for an argument that its annotations do not allow."""

    @functools.wraps(function)
    def called(*arguments: Any, **options: Any) -> Any:
        try:
            return function(*arguments, **options)
        except (TypeError, AttributeError):
            wrong = _wrong_argument(function, arguments, options)
            if wrong is None:
                raise
        raise wrong

    return called


def name_wrong_types_of(public: type) -> None:
    """Does so for the methods of a class that are its interface."""
    for name, member in list(vars(public).items()):
        if name.startswith("_") and name != "__init__":
            continue
        wraps = type(member) if isinstance(member, (classmethod, staticmethod)) else None
        function = member.__func__ if wraps else member
        if inspect.isfunction(function) and len(inspect.signature(function).parameters) > (wraps is not staticmethod):
            wrapped = name_wrong_types(function)
            setattr(public, name, wraps(wrapped) if wraps else wrapped)


def _wrong_argument(function: Callable[..., Any], arguments: Sequence[Any], options: Mapping) -> ArgumentError | None:
    try:
        signature, hints = inspect.signature(function), typing.get_type_hints(function)
        given = signature.bind(*arguments, **options).arguments
    except (TypeError, NameError):
        return None  # too many, too few or unknown ones: Python's own message says so
    for name, value in given.items():
        if signature.parameters[name].kind is inspect.Parameter.VAR_KEYWORD:
            row = next(iter(get_args(hints[name])), None) if get_origin(hints.get(name)) is Unpack else None
            fields = typing.get_type_hints(row) if row is not None else {}
            for option, item in value.items():
                if not _fits(item, fields.get(option, Any)):
                    return _error(option, item, fields[option])
        elif not _fits(value, hints.get(name, Any)):
            return _error(name, value, signature.parameters[name].annotation)
    return None


def _error(name: str, value: Any, annotation: Any) -> ArgumentError:
    shown = repr(value)
    if len(shown) > MAX_SHOWN:
        shown = shown[: MAX_SHOWN - 3] + "..."
    wanted = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    wanted = re.sub(r"\b(?:llm_runner|collections|typing)\.(?:\w+\.)?", "", wanted)
    return ArgumentError(f"{name} = {shown}: must be {wanted}, not {type(value).__name__}")


_PLAIN: dict[Any, Callable[[Any], bool]] = {
    Any: lambda value: True,
    object: lambda value: True,
    None: lambda value: value is None,
    NoneType: lambda value: value is None,
    bool: lambda value: isinstance(value, (bool, np.bool_)),
    int: lambda value: hasattr(value, "__index__"),
    float: lambda value: hasattr(value, "__float__") or hasattr(value, "__index__"),
    np.ndarray: lambda value: hasattr(value, "__array__") or _fits(value, Sequence[float | Sequence[float]]),
}


def _fits(value: Any, hint: Any) -> bool:
    """Returns whether an annotation allows a value, and True where that cannot be told."""
    if (check := _PLAIN.get(hint) if isinstance(hint, typing.Hashable) else None) is not None:
        return check(value)
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return any(_fits(value, each) for each in inner)
    if origin is Literal:
        return value in inner
    if hint is IO or origin is IO:
        return hasattr(value, "fileno") or hasattr(value, "read")
    return _fits_container(value, origin or hint, inner)


def _fits_container(value: Any, kind: Any, inner: tuple[Any, ...]) -> bool:
    if kind is Callable:
        return callable(value)
    if not isinstance(kind, type):
        return True
    if typing.is_typeddict(kind):
        fields = typing.get_type_hints(kind)
        return isinstance(value, Mapping) and all(_fits(item, fields.get(name, Any)) for name, item in value.items())
    if getattr(kind, "_is_protocol", False) and kind.__module__ != "collections.abc":
        return all(hasattr(value, name) for name in typing.cast(Iterable[str], vars(kind)) if _is_member(name, kind))
    if issubclass(kind, Mapping):
        keys, values = inner or (Any, Any)
        return isinstance(value, Mapping) and all(_fits(k, keys) and _fits(v, values) for k, v in value.items())
    if issubclass(kind, (Sequence, list, tuple)) and not issubclass(kind, (str, bytes, bytearray, memoryview)):
        has_items = hasattr(value, "__len__") and hasattr(value, "__iter__") and not isinstance(value, (str, bytes))
        return has_items and (not inner or all(_fits(item, inner[0]) for item in value))
    if issubclass(kind, (Iterable, Iterator)) and kind.__module__ == "collections.abc":
        return hasattr(value, "__iter__")
    return isinstance(value, kind)


def _is_member(name: str, kind: type) -> bool:
    return (
        not name.startswith("__")
        and name not in ("_abc_impl", "_is_protocol", "_is_runtime_protocol")
        and (callable(getattr(kind, name)) or isinstance(vars(kind)[name], property))
    )
