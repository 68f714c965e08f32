"""Files with an asset beside them, made by the plain command: samples replayed, assets moved and changed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from llm_runner import BackendError, Model
from mote.cli import main
from tests.backends.tensor_ops.sessions import installed, refusal


@pytest.fixture(scope="module", params=["coreai", "coreml"])
def backend(request):
    return installed(request.param)


@pytest.fixture(scope="module")
def demo(backend, demo_files) -> Path:
    """Checked against PyTorch on the interpreter."""
    return demo_files.path("4w", backend.name)


def test_verify_replays_the_samples(demo, backend, capfd):
    with pytest.raises(SystemExit) as ended:
        main(["verify", str(demo), "--backend", backend.name, "--json"])
    report = json.loads(capfd.readouterr().out)
    assert ended.value.code == 0 and report["passed"] and report["target"] == backend.name
    assert len(report["samples"]) == 2 and all(sample["passed"] for sample in report["samples"])


def test_the_runner_says_that_it_has_no_such_backend(demo, backend):
    with pytest.raises(BackendError, match=f"{backend.name}: this build has no such backend"):
        Model.load(demo)


def test_an_asset_that_was_changed_or_moved_is_refused(demo, backend, tmp_path, capfd):
    file, suffix = shutil.copy(demo, tmp_path / "demo.mote"), backend.asset.suffix
    asset = shutil.copytree(demo.with_suffix(suffix), tmp_path / f"demo{suffix}")
    for name in backend.asset.files:
        content = (asset / name).read_bytes()
        half = len(content) // 2
        (asset / name).write_bytes(content[:half] + bytes([content[half] ^ 1]) + content[half + 1 :])
        assert refusal(main, capfd, "verify", file, "--backend", backend.name).endswith(
            "is not the one that it was exported with: export again, or put the right one there"
        )
        (asset / name).write_bytes(content)
    shutil.move(asset, tmp_path / f"other{suffix}")
    assert refusal(main, capfd, "verify", file, "--backend", backend.name).endswith(
        f"demo{suffix} is not there: keep it beside the file, under this name"
    )
