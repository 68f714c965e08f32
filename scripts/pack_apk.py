"""Copies an unsigned .apk with its data aligned: libraries, which are mapped from the package, to 16 KiB, others to 4.

  scripts/pack_apk.py FROM.apk TO.apk

zipalign aligns too, but does not note to what, without which apksigner moves libraries to multiples of 4096.
"""

from __future__ import annotations

import struct
import sys
import zipfile

# The extra field of an entry in which apksigner finds what its data must be a multiple of.
ALIGNMENT_FIELD = 0xD935
HEADER = struct.Struct("<HHH")
LOCAL_HEADER_BYTES = 30
PAGE_BYTES = 16384


def main(source: str, target: str) -> None:
    with zipfile.ZipFile(source) as unsigned, zipfile.ZipFile(target, "w") as packed:
        for name in unsigned.namelist():
            if name.endswith("/"):
                continue
            entry = zipfile.ZipInfo(name)
            entry.compress_type = unsigned.getinfo(name).compress_type
            if entry.compress_type == zipfile.ZIP_STORED:
                multiple = PAGE_BYTES if name.endswith(".so") else 4
                data_at = packed.fp.tell() + LOCAL_HEADER_BYTES + len(name.encode()) + HEADER.size
                padding = -data_at % multiple
                entry.extra = HEADER.pack(ALIGNMENT_FIELD, 2 + padding, multiple) + bytes(padding)
            packed.writestr(entry, unsigned.read(name))


if __name__ == "__main__":
    main(*sys.argv[1:])
