"""`export` with a calibration: the file agrees with PyTorch on the same codes, says what it is, and is nearer."""

import pytest
import torch

from llm_export import calibrate as calibration
from llm_export.api import export
from llm_export.calibrate import text
from llm_export.errors import ArgumentError, FileError
from llm_runner import Model
from tests.demo import CHECKPOINT


@pytest.fixture(autouse=True)
def short(tmp_path, monkeypatch):
    """Sequences that take seconds, and a cache of the test's own."""
    torch.set_num_threads(1)
    monkeypatch.setattr(text, "NUM_SEQUENCES", 4)
    monkeypatch.setattr(text, "LENGTH", 128)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.mark.parametrize(("check", "recipe"), [("full", "8da4w"), ("layers", "3w")])
def test_the_check_takes_the_codes_of_the_file(tmp_path, check, recipe):
    report = export(CHECKPOINT, tmp_path / "x.mote", recipe=recipe, calibration="default", check=check)
    assert report.check.max_relative_error <= report.check.tolerance
    assert report.stage_seconds["calibrate"] > 0
    with Model.load(report.path) as model, model.session() as session:
        assert model.describe()["provenance"]["recipe"].endswith(" calibration=default")
        assert session.check_golden()["passed"]
    assert not list((tmp_path / "cache" / "mote" / "calibration").iterdir())


def test_an_interrupted_export_goes_on(tmp_path, monkeypatch):
    source = tmp_path / "my.txt"
    source.write_text("def f(x):\n    return x + 1\n\n\n" * 400)
    made, gptq = [], calibration.gptq

    def interrupted(rows, spec, inputs):
        if len(made) == 5:
            raise KeyboardInterrupt
        made.append(spec.name)
        return gptq(rows, spec, inputs)

    monkeypatch.setattr(calibration, "gptq", interrupted)
    with pytest.raises(KeyboardInterrupt):
        export(CHECKPOINT, tmp_path / "x.mote", calibration=source, check="off")
    assert not list(tmp_path.glob("x.mote*"))
    monkeypatch.setattr(calibration, "gptq", lambda *given: made.append(given[1].name) or gptq(*given))
    export(CHECKPOINT, tmp_path / "x.mote", calibration=source, check="off")
    assert len(made) == len(set(made))
    monkeypatch.setattr(calibration, "gptq", gptq)
    export(CHECKPOINT, tmp_path / "y.mote", calibration=source, check="off")
    assert (tmp_path / "x.mote").read_bytes() == (tmp_path / "y.mote").read_bytes()


def test_target_bits_are_kept(tmp_path):
    report = export(CHECKPOINT, tmp_path / "x.mote", target_bits=4.6, check="full")
    with Model.load(report.path) as model:
        tensors = [t for t in model.describe()["weights"]["tensors"] if len(t["shape"]) > 1]
        recipe = model.describe()["provenance"]["recipe"]
    assert 8 * sum(t["bytes"] for t in tensors) / sum(t["shape"][0] * t["shape"][1] for t in tensors) <= 4.61
    assert "override model.layers.0." in recipe


@pytest.mark.parametrize(
    ("options", "error", "expected"),
    [
        ({"calibration": "default", "recipe": "none"}, ArgumentError, "calibration = default: recipe = 'none' rounds"),
        ({"target_bits": 4.5, "recipe": "none"}, ArgumentError, "target_bits = 4.5: recipe = 'none' rounds"),
        ({"target_bits": 1.0}, ArgumentError, "target_bits = 1.0: must be at least"),
        ({"calibration": "no such file"}, FileError, "no such file: cannot be read"),
        ({"calibration": "default", "tokenizer": False}, ArgumentError, "has no tokenizer"),
    ],
)
def test_refuses(tmp_path, options, error, expected):
    with pytest.raises(error, match=expected):
        export(CHECKPOINT, tmp_path / "x.mote", check="off", **options)
    assert not list(tmp_path.glob("x.mote*"))
