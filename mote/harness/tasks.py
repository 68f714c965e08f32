"""Finds lm-eval's tasks by name and runs them."""

from __future__ import annotations

import difflib
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fnmatch import filter as matching
from pathlib import Path
from typing import Any

import datasets
import numpy as np
from huggingface_hub import errors
from lm_eval.api.model import LM
from lm_eval.defaults import DEFAULT_OTHER_SEED, DEFAULT_RANDOM_SEED
from lm_eval.evaluator import evaluate
from lm_eval.tasks import TaskManager
from lm_eval.tasks.manager import TaskDict

from llm_runner.errors import ArgumentError, FileError, MoteError

NO_ANSWER = (ConnectionError, errors.HTTPError, errors.LocalEntryNotFoundError)


def find_tasks(names: Sequence[str], folders: Sequence[str] = ()) -> tuple[TaskManager, list[str]]:
    """Finds tasks, groups and tags by names, which may have wildcards, or by YAML files.

    folders: of tasks of one's own
    Returns: what loads them, their names   Errors: ArgumentError naming the field, with the closest names
    """
    if not names:
        raise ArgumentError("tasks = '': must be names with commas between them; --tasks list shows all")
    for folder in folders:
        if not Path(folder).is_dir():
            raise ArgumentError(f"include_path = '{folder}': there is no such folder")
    if folders:
        own = TaskManager(include_path=list(folders), include_defaults=False)
        if set(names) <= set(own.all_subtasks):
            return own, list(names)  # without a look at the thousands that lm-eval brings
    manager = TaskManager(include_path=list(folders))
    return manager, [found for name in names for found in _matches(name, manager.all_tasks)]


def list_tasks(folders: Sequence[str] = ()) -> list[str]:
    """Returns the names of all tasks, groups and tags."""
    return TaskManager(include_path=list(folders)).all_tasks


def _matches(name: str, known: Sequence[str]) -> Sequence[str]:
    if name.endswith(".yaml") and Path(name).is_file():
        return [name]
    found = matching(known, name)
    if not found:
        close = difflib.get_close_matches(name, known, n=3)
        hint = f": did you mean {' or '.join(map(repr, close))}?" if close else "."
        raise ArgumentError(f"tasks = '{name}': there is no such task{hint} --tasks list shows all")
    return found


def load_tasks(manager: TaskManager, names: Sequence[str], num_fewshot: int | None = None) -> TaskDict:
    """Loads tasks with their data sets, which may come from the hub.

    num_fewshot: examples before a question; None: as the task says. Tasks that say 0 stay without
    Errors: FileError if a data set cannot be had; ArgumentError with what lm-eval says
    Source: lm_eval evaluator.py simple_evaluate
    """
    datasets.disable_progress_bars()
    with _plain_errors(names):
        loaded = manager.load(list(names))
        for task in loaded["tasks"].values():
            own = task.get_config("num_fewshot")
            if own is None or (own != 0 and num_fewshot is not None):
                task.set_config(key="num_fewshot", value=num_fewshot or 0)
            task.set_fewshot_seed(seed=DEFAULT_OTHER_SEED)
        return loaded


def run_tasks(lm: LM, loaded: TaskDict, **options: Any) -> dict[str, Any]:
    """Returns what lm-eval's `evaluate` does, with the seeds of its command line.

    options: those of `evaluate`   Errors: ArgumentError with what lm-eval says
    """
    random.seed(DEFAULT_RANDOM_SEED)
    np.random.seed(DEFAULT_OTHER_SEED)
    with _plain_errors(list(loaded["tasks"])):
        return dict(evaluate(lm=lm, task_dict=loaded, log_samples=False, **options) or {})


@contextmanager
def _plain_errors(names: Sequence[str]) -> Iterator[None]:
    """Inside, what lm-eval raises becomes one paragraph."""
    tasks = f"tasks = '{','.join(names)}'"
    try:
        yield
    except MoteError:
        raise
    except Exception as error:
        said = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
        if any(isinstance(cause, NO_ANSWER) for cause in _causes(error)):
            raise FileError(
                f"{tasks}: a data set is neither here nor can it be had from the hub ({said}); "
                f"tasks of --include-path with data of your own need no network"
            ) from error
        raise ArgumentError(f"{tasks}: lm-eval says: {type(error).__name__}: {said}; --debug shows where") from error


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
