"""Constants are found in the file of an asset by what they hold."""

from __future__ import annotations

import numpy as np
import pytest

from backends.tensor_ops.weights import AssetFile

ZEROS = np.zeros(1 << 22, np.uint8)
CODES = np.random.default_rng(1).integers(0, 256, 1 << 16, dtype=np.uint8)
LAST = np.concatenate([ZEROS[: 1 << 20], [np.uint8(1)]]).astype(np.uint8)


@pytest.mark.parametrize(
    ("parts", "wanted", "places"),
    [
        ((CODES, CODES[::-1]), (CODES, CODES[::-1]), (0, len(CODES))),
        ((CODES, ZEROS[:2000], CODES[::-1], ZEROS), (CODES[::-1], ZEROS), (len(CODES) + 2000, 2 * len(CODES) + 2000)),
        # Zeros before what begins with some, and runs of them that are too short.
        ((ZEROS, LAST), (LAST,), (len(ZEROS),)),
        ((ZEROS[: 1 << 21], CODES, ZEROS), (ZEROS,), ((1 << 21) + len(CODES),)),
        ((ZEROS[: 1 << 21], CODES), (ZEROS,), (None,)),
    ],
)
def test_places(parts, wanted, places, tmp_path):
    path = tmp_path / "asset"
    path.write_bytes(b"".join(part.tobytes() for part in parts))
    file = AssetFile(path)
    assert tuple(file.find(data) for data in wanted) == places
