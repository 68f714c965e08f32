"""The pure parts of the attention benchmark: its command line and its table."""

import pytest

from benchmarks import attention
from benchmarks.kernels.cases import COLD_BYTES, Case


def case(runtime: str, us: float, **other) -> dict:
    return {"runtime": runtime, "shape": "qwen", "tokens": 1, "type": "int8", "context": 256, "us": us} | other


def test_table_has_medians_side_by_side():
    cases = [case("mote", us) for us in (30, 10, 20)] + [case("llama.cpp", 99), case("mote", 5, type="float32")]
    rows = attention.table(cases).splitlines()
    assert rows[0] == "| shape | tokens | cache | context | mote, us | llama.cpp, us |"
    assert rows[2:] == ["| qwen | 1 | float32 | 256 | 5 |  |", "| qwen | 1 | int8 | 256 | 20 | 99 |"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--contexts", "128", "--tokens", "256"], "--tokens: must be at most the shortest of --contexts"),
        (["--contexts", "0"], "--contexts: must be at least 1"),
        (["--bench", "nothing-here"], "--bench nothing-here: no such file; build it with: cmake --preset release"),
    ],
)
def test_refuses(arguments, says, capsys):
    with pytest.raises(SystemExit):
        attention.parse(arguments)
    assert says in capsys.readouterr().err


def test_one_token_reads_more_than_caches_hold_and_a_prompt_a_few_layers():
    one = Case(16, 8, 128, "float16", 1024, 1, 2)
    assert one.layers(2.0) * 2 * 1024 * 8 * 128 * 2 > COLD_BYTES * 0.9
    assert Case(16, 8, 128, "float16", 1024, 256, 2).layers(2.0) == 4
