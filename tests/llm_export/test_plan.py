import torch
from hypothesis import given
from hypothesis import strategies as st

from llm_export.instructions.dims import constant
from llm_export.plan import ALIGNMENT, Storage, place, plan_method
from llm_export.program.instructions import Dim, Instruction, LoweredMethod, Value

storages = st.lists(
    st.tuples(st.integers(0, 40), st.integers(0, 30), st.integers(0, 12)).map(
        lambda t: Storage(bytes=t[0] * ALIGNMENT, first=t[1], last=t[1] + t[2])
    ),
    max_size=40,
)


@given(storages)
def test_storages_that_live_together_do_not_overlap(items):
    offsets, total = place(items)
    for i, (a, a_offset) in enumerate(zip(items, offsets, strict=True)):
        assert a_offset % ALIGNMENT == 0
        assert a_offset >= 0 and a_offset + a.bytes <= total
        for b, b_offset in zip(items[:i], offsets[:i], strict=True):
            if a.first <= b.last and b.first <= a.last:
                assert a_offset + a.bytes <= b_offset or b_offset + b.bytes <= a_offset


@given(storages)
def test_no_more_than_the_storages_take_and_no_less_than_what_lives_at_once(items):
    _, total = place(items)
    assert total <= sum(item.bytes for item in items)
    assert total >= max((sum(i.bytes for i in items if i.first <= t <= i.last) for t in range(45)), default=0)


@given(st.lists(st.integers(1, 40), min_size=1, max_size=20))
def test_storages_that_follow_each_other_take_the_room_of_the_largest(sizes):
    _, total = place([Storage(size * ALIGNMENT, 2 * i, 2 * i + 1) for i, size in enumerate(sizes)])
    assert total == max(sizes) * ALIGNMENT


def test_the_tightest_gap_is_taken():
    throughout, early, late = (0, 9), (0, 4), (5, 9)
    lives = [(10, throughout), (8, early), (6, throughout), (5, early), (4, throughout), (3, late)]
    offsets, total = place([Storage(size * ALIGNMENT, *life) for size, life in lives])
    assert [offset // ALIGNMENT for offset in offsets] == [0, 10, 18, 24, 29, 24]
    assert total == 33 * ALIGNMENT


def chain(*shapes):
    """x0 -> neg -> x1 -> neg -> x2 ..."""
    values = [Value("input" if i == 0 else "activation", torch.float32, shape) for i, shape in enumerate(shapes)]
    instructions = [Instruction("aten.neg", [i], [i + 1]) for i in range(len(shapes) - 1)]
    return LoweredMethod("verify", values, [0], ["x"], [len(shapes) - 1], instructions)


def test_a_chain_needs_two_buffers():
    tokens = (Dim(1, 0), constant(16))  # 64 bytes a token
    planned = plan_method(chain(*[tokens] * 6))
    assert (planned.per_token_bytes, planned.fixed_bytes) == (128, 0)


def test_sizes_with_a_constant_part_are_rounded_up_to_whole_tokens():
    planned = plan_method(chain((Dim(1, 3), constant(16)), (constant(5),)))
    assert planned.placements[0].arena == "per_token"
    assert all(planned.placements[0].bytes * tokens >= (tokens + 3) * 64 for tokens in (1, 2, 50))
    assert (planned.placements[1].arena, planned.placements[1].bytes) == ("fixed", 64)


def test_a_view_keeps_its_storage_alive():
    method = chain((constant(16),), (constant(16),), (constant(16),), (constant(16),))
    view = Value("activation", torch.float32, (constant(4), constant(4)), alias_of=1)
    method.values.append(view)
    method.instructions.insert(1, Instruction("aten.view", [1], [4]))
    method.instructions.append(Instruction("aten.add", [3, 4], [5]))
    method.values.append(Value("activation", torch.float32, (constant(4), constant(4))))
    method.outputs = [5]
    planned = plan_method(method)
    assert planned.placements[4] == planned.placements[1]
    assert len({planned.placements[i].offset for i in (1, 3, 5)}) == 3


def test_weights_have_no_place():
    method = chain((constant(16),), (constant(16),))
    method.values.append(Value("weight", torch.float32, (constant(16),), weight=0))
    method.instructions.append(Instruction("aten.add", [1, 2], [3]))
    method.values.append(Value("activation", torch.float32, (constant(16),)))
    method.outputs = [3]
    assert plan_method(method).placements[2] is None
