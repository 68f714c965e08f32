"""Files with an asset, opened before the asset has its name."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from llm_export.program.instructions import CPU, Program


@contextlib.contextmanager
def opened_by_asset(path: Path, asset: Any, names: Sequence[str], program: Program) -> Iterator[dict[str, Any]]:
    """Yields models of the targets that need an asset, by their names.

    asset: an Asset of llm_export/partition, which is not yet where the file says; None: there is none
    """
    from llm_runner import Model

    with contextlib.ExitStack() as stack:
        models: dict[str, Any] = {}
        if asset is not None and asset.maker.name in names:
            model = asset.maker.open_model(path, asset.folder)
            models[asset.maker.name] = stack.enter_context(contextlib.closing(model))
        if program.asset is not None and CPU in names:
            weights = asset.folder / Path(program.asset.file).relative_to(asset.path.name)
            # What is kept of the unfinished file goes with it: `replacing` removes it.
            model = Model.load(path, backend=CPU, cache_dir=path.parent, weights_file=weights)
            models[CPU] = stack.enter_context(model)
        yield models
