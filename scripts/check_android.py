"""Checks what scripts/build_aar.sh and scripts/build_apk.sh made, as far as that can be seen without a device.

cd build/android && python ../../scripts/check_android.py mote-android.aar mote-android-native.aar [mote-chat.apk]

Prints sizes. Fails if a native library has other alignment, needs other libraries or more of Android's C library than
API 26 has, if parts of the archive are missing, or if the app is not one that Android would install.
"""

from __future__ import annotations

import re
import struct
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from size import MOST_MB

ABIS = ("arm64-v8a", "x86_64")
PAGE = 16384
NAMES = frozenset((Path(__file__).parent.parent / "tests/android/bionic.txt").read_text().splitlines())
MOST_LIBRARY_BYTES = {"arm64-v8a": int(MOST_MB["everything"] * 1_000_000)}
MOST_ARCHIVE_BYTES = 6_000_000
NEEDED = {"libc.so", "libm.so", "libdl.so"}
PARTS = {"AndroidManifest.xml", "R.txt", "classes.jar", "proguard.txt"}
NATIVE_PARTS = {
    "AndroidManifest.xml", "prefab/prefab.json", "prefab/modules/mote/module.json",
    "prefab/modules/mote/include/mote.h",
}  # fmt: skip
PERMISSIONS = {
    "INTERNET", "ACCESS_NETWORK_STATE", "FOREGROUND_SERVICE", "FOREGROUND_SERVICE_DATA_SYNC", "POST_NOTIFICATIONS",
}  # fmt: skip
CLASSES = ("ai/mote/Model.class", "ai/mote/blocking/Model.class", "ai/mote/android/ModelFiles.class")
# A library that was compiled for Linux (scripts/build_android_library.sh without the NDK) has other names for what
# Android's headers and compilers have: glibc's by these beginnings, and what gcc's own libraries need, which Android's
# replace.
BEGINNINGS_OF_GLIBC = ("__isoc99_", "__isoc23_", "__")
OF_GCC = {
    "__assert_fail", "__ctype_b_loc", "__ctype_tolower_loc", "__ctype_toupper_loc", "__errno_location",
    "__libc_single_threaded", "__tls_get_addr", "_dl_find_object", "aligned_alloc", "bind_textdomain_codeset",
    "bindtextdomain", "dgettext", "getentropy", "gettext", "iconv", "iconv_close", "iconv_open",
    "bcmp",  # where clang calls memcmp for Android
    "pthread_cond_clockwait",  # where the NDK's library has pthread_cond_timedwait
}  # fmt: skip
LIBRARIES_OF_GLIBC = {"libc.so.6", "libm.so.6", "ld-linux-aarch64.so.1", "ld-linux-x86-64.so.2"}


class Wrong(Exception):
    """What is found to be wrong, as a sentence."""


def output(*command: str | Path) -> str:
    """Returns what a command prints. Errors: Wrong with it if it fails."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode != 0:
        raise Wrong(f"{command[0]} refuses: {(done.stderr or done.stdout).strip()}")
    return done.stdout


def require(holds: bool, sentence: str) -> None:
    """Errors: Wrong unless it holds."""
    if not holds:
        raise Wrong(sentence)


def check_library(path: Path, name: str) -> None:
    """Checks alignment, what is needed of other libraries, and what is exported."""
    load = re.findall(r"^  LOAD .*(0x[0-9a-f]+)$", output("readelf", "-lW", path), re.MULTILINE)
    require(bool(load) and all(int(align, 16) % PAGE == 0 for align in load), f"{name}: segments are aligned to {load}")
    needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", output("readelf", "-dW", path)))
    is_of_glibc = "libc.so.6" in needed
    allowed = LIBRARIES_OF_GLIBC if is_of_glibc else NEEDED
    require(needed <= allowed, f"{name}: needs {sorted(needed - allowed)}")
    symbols = [line.split() for line in output("readelf", "--dyn-syms", "-W", path).splitlines()[3:]]
    rows = [row for row in symbols if len(row) >= 8]
    wanted = {row[7].split("@")[0] for row in rows if row[6] == "UND" and row[4] == "GLOBAL"}
    missing = sorted(symbol for symbol in wanted if not is_in_bionic(symbol, is_of_glibc))
    require(not missing, f"{name}: needs what Android's C library has not: {' '.join(missing)}")
    exported = {row[7].split("@")[0] for row in rows if row[6] != "UND" and row[4] != "LOCAL"}
    others = sorted(symbol for symbol in exported if not symbol.startswith("mote_") and symbol != "JNI_OnLoad")
    require(not others and "JNI_OnLoad" in exported, f"{name}: exports {others[:5]}")


def is_in_bionic(name: str, is_of_glibc: bool) -> bool:
    """Says whether a library may need a name."""
    if name in NAMES or (is_of_glibc and name in OF_GCC):
        return True
    return is_of_glibc and any(name.startswith(start) and name[len(start) :] in NAMES for start in BEGINNINGS_OF_GLIBC)


def check_archive(path: Path) -> None:
    """Checks the library for Android."""
    with zipfile.ZipFile(path) as archive, tempfile.TemporaryDirectory() as folder:
        check_parts(archive, PARTS | {f"jni/{abi}/libmote.so" for abi in ABIS})
        archive.extractall(folder)
        with zipfile.ZipFile(Path(folder) / "classes.jar") as classes:
            missing = [name for name in CLASSES if name not in classes.namelist()]
            require(not missing, f"{path.name}: classes.jar lacks {missing}")
            check_class_versions(classes)
        for abi in ABIS:
            library = Path(folder) / "jni" / abi / "libmote.so"
            size = library.stat().st_size
            print(f"{abi}/libmote.so: {size / 1e6:.2f} MB")
            require(size <= MOST_LIBRARY_BYTES.get(abi, size), f"{abi}/libmote.so: is larger than it may be")
            check_library(library, f"{abi}/libmote.so")
    check_size(path)


def check_native_archive(path: Path, library_archive: Path) -> None:
    """Checks the library for C and C++: it is the same one."""
    with zipfile.ZipFile(path) as archive, zipfile.ZipFile(library_archive) as library:
        libraries = {f"prefab/modules/mote/libs/android.{abi}/libmote.so": f"jni/{abi}/libmote.so" for abi in ABIS}
        check_parts(archive, NATIVE_PARTS | libraries.keys())
        for name, same in libraries.items():
            require(archive.read(name) == library.read(same), f"{path.name}: {name} is another one")
    check_size(path)


def check_parts(archive: zipfile.ZipFile, parts: set[str]) -> None:
    missing = sorted(parts - set(archive.namelist()))
    require(not missing, f"{archive.filename}: lacks {missing}")


def check_size(path: Path) -> None:
    size = path.stat().st_size
    print(f"{path.name}: {size / 1e6:.2f} MB")
    require(size <= MOST_ARCHIVE_BYTES, f"{path.name}: is larger than {MOST_ARCHIVE_BYTES / 1e6} MB")


def check_class_versions(classes: zipfile.ZipFile) -> None:
    """Checks that all is of Java 8, which every Android takes."""
    for name in classes.namelist():
        if name.endswith(".class"):
            (version,) = struct.unpack(">H", classes.read(name)[6:8])
            require(version <= 52, f"{name}: is of Java {version - 44}")


def data_offset(path: Path, entry: zipfile.ZipInfo) -> int:
    """Where the data of an entry begin in the file."""
    with path.open("rb") as file:
        file.seek(entry.header_offset + 26)
        name_bytes, extra_bytes = struct.unpack("<HH", file.read(4))
    return entry.header_offset + 30 + name_bytes + extra_bytes


def check_app(path: Path) -> None:
    """Checks the app: its signature, manifest, classes and libraries."""
    output("apksigner", "verify", "--min-sdk-version", "26", path)
    output("zipalign", "-c", "4", path)
    badging = output("aapt2", "dump", "badging", path)
    require("launchable-activity: name='ai.mote.chat.ui.ChatsActivity'" in badging, f"{path.name}: has no first screen")
    require("sdkVersion:'26'" in badging, f"{path.name}: {badging[:200]}")
    permissions = set(re.findall(r"^uses-permission: name='android\.permission\.(.*?)'", badging, re.MULTILINE))
    require(permissions == PERMISSIONS, f"{path.name}: asks for {sorted(permissions ^ PERMISSIONS)}")
    classes = output("dexdump", path)
    found = set(re.findall(r"Class descriptor  : 'L(.*);'", classes))
    wanted = {"ai/mote/chat/ui/ChatActivity", "ai/mote/chat/Conversation", "ai/mote/blocking/Model", "kotlin/Unit"}
    require(wanted <= found, f"{path.name}: lacks {sorted(wanted - found)}")
    with zipfile.ZipFile(path) as app:
        for abi in ABIS:
            library = app.getinfo(f"lib/{abi}/libmote.so")
            require(library.compress_type == 0, f"{path.name}: its libraries are compressed")
            begin = data_offset(path, library)
            require(begin % PAGE == 0, f"{path.name}: {library.filename} is at {begin}: must be a multiple of {PAGE}")
    print(f"{path.name}: {path.stat().st_size / 1e6:.2f} MB, {len(found)} classes")


def main() -> int:
    archive, native, *apps = (Path(argument) for argument in sys.argv[1:])
    try:
        check_archive(archive)
        check_native_archive(native, archive)
        for app in apps:
            check_app(app)
    except Wrong as wrong:
        print(wrong, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
