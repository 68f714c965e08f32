"""`Session.record`: what every instruction computes."""

from __future__ import annotations

import numpy as np
import pytest

from llm_runner import Model
from llm_runner.errors import ArgumentError, CancelledError


@pytest.fixture(scope="module")
def demo(demo_files) -> Model:
    return Model.load(demo_files.path())


@pytest.fixture
def session(demo):
    return demo.session(context_length=32, threads=1)


def recorded(session, call) -> tuple[list[tuple[int, int, int, np.ndarray]], np.ndarray]:
    values = []
    with session.record(lambda *value: values.append(value)):
        logits = call()
    return values, logits


def sizes(shape: list[str], tokens: int) -> tuple[int, ...]:
    return tuple(tokens if size == "T" else int(size) for size in shape)


def test_every_output_of_every_instruction_comes_once_and_in_order(demo, session):
    values, logits = recorded(session, lambda: session.verify([1, 2, 3, 4, 5]))
    methods = demo.describe()["methods"]
    (place,) = {method for method, *_ in values}
    assert methods[place]["name"] == "verify"
    expected = [
        (index, number, output["dtype"], sizes(output["shape"], 5))
        for index, instruction in enumerate(methods[place]["instructions"])
        for number, output in enumerate(instruction["outputs"])
    ]
    assert [(i, o, value.dtype.name, value.shape) for _, i, o, value in values] == expected
    np.testing.assert_array_equal(values[-1][3].reshape(5, -1), logits)


def test_views_are_given_as_they_read_what_they_share(demo, session):
    values, _ = recorded(session, lambda: session.verify([1, 2, 3]))
    of = {(instruction, output): value for _, instruction, output, value in values}
    method = demo.describe()["methods"][values[0][0]]
    makers = {
        output["value"]: (index, number)
        for index, each in enumerate(method["instructions"])
        for number, output in enumerate(each["outputs"])
    }
    permutes = [(i, each) for i, each in enumerate(method["instructions"]) if each["op"] == "aten.permute"]
    assert permutes
    for index, each in permutes:
        order = [int(dim) for dim in next(iter(each["attributes"].values()))]
        np.testing.assert_array_equal(of[index, 0], of[makers[each["inputs"][0]]].transpose(order))


def test_recording_changes_no_result_and_ends_with_its_block(session):
    expected = session.prefill([1, 2, 3])
    session.reset()
    values, logits = recorded(session, lambda: session.prefill([1, 2, 3]))
    np.testing.assert_array_equal(logits, expected)
    count = len(values)
    session.decode(4)
    assert len(values) == count


def test_an_array_that_is_returned_takes_the_place_of_the_value(session):
    expected, _ = recorded(session, lambda: session.verify([5, 6, 7]))
    of = {(instruction, output): value for _, instruction, output, value in expected}
    session.reset()
    with session.record(lambda method, instruction, output, value: of[instruction, output]):
        logits = session.verify([1, 2, 3])
    np.testing.assert_array_equal(logits, expected[-1][3][0])
    session.reset()
    (first, *_), _ = recorded(session, lambda: session.verify([1, 2, 3]))
    session.reset()
    with session.record(lambda m, i, o, value: np.zeros_like(value) if i == first[1] else None):
        assert not np.array_equal(session.verify([1, 2, 3]), logits)


@pytest.mark.parametrize("other", [np.zeros(3, np.float32), np.zeros((1, 1, 256), np.float64)])
def test_an_array_of_another_kind_is_refused(session, other):
    with pytest.raises(ArgumentError, match=r"must be float32 \[1, 1, 256\]"), session.record(lambda *value: other):
        session.decode(1)


def test_what_the_taker_raises_comes_out_of_the_block(session):
    seen = []

    def take(method, instruction, output, value):
        seen.append(instruction)
        if len(seen) == 3:
            raise KeyError("enough")

    with pytest.raises(KeyError, match="enough"), session.record(take):
        session.prefill([1, 2, 3])
    assert len(seen) == 3
    assert session.prefill([1, 2, 3]).size


def test_a_cancel_is_still_one(session):
    def take(*value):
        session.cancel()

    with pytest.raises(CancelledError), session.record(take):
        session.prefill([1, 2, 3])
