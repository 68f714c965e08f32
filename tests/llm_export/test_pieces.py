"""Files are written in large pieces, and hold what was written however writing ends."""

import pytest

from llm_export.pieces import PIECE_BYTES, PieceWriter


class Recorded:
    """A file that takes at most `most` bytes at once, and remembers where each write began and ended."""

    def __init__(self, file, most: int):
        self._file, self._most, self.writes = file, most, []

    def write(self, data: memoryview) -> int:
        begin = self._file.tell()
        self._file.write(data[: self._most])
        self.writes.append((begin, self._file.tell()))
        return self._file.tell() - begin

    def __enter__(self):
        return self._file.__enter__()

    def __exit__(self, *error):
        return self._file.__exit__(*error)


def test_pieces_lie_at_multiples_of_their_size(tmp_path):
    path = tmp_path / "file"
    data = bytes(range(256)) * (10 * PIECE_BYTES // 1024)  # two pieces and a half
    path.write_bytes(data[:1000])
    with PieceWriter(path, "ab") as file:
        file._file = recorded = Recorded(file._file, PIECE_BYTES)
        assert file.tell() == 1000
        position = 1000
        for size in (1, PIECE_BYTES - 1001, 70_000, 0, PIECE_BYTES + 5, len(data)):
            file.write(memoryview(data)[position : position + size])
            position = min(position + size, len(data))
            assert file.tell() == position
    assert path.read_bytes() == data
    ends = [end for _, end in recorded.writes]
    assert ends == [PIECE_BYTES, 2 * PIECE_BYTES, len(data)]


def test_a_write_that_takes_less_goes_on(tmp_path):
    with PieceWriter(tmp_path / "file") as file:
        file._file = Recorded(file._file, 1 << 20)
        file.write(bytes(PIECE_BYTES) + b"end")
    assert (tmp_path / "file").read_bytes() == bytes(PIECE_BYTES) + b"end"


def test_what_came_before_an_exception_is_kept(tmp_path):
    with pytest.raises(KeyError), PieceWriter(tmp_path / "file") as file:
        file.write(b"some")
        raise KeyError
    assert (tmp_path / "file").read_bytes() == b"some"
