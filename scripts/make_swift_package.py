#!/usr/bin/env python3
"""Assembles the Swift package: apps/ios/Mote with the C++ core, generated headers and libraries.

    scripts/make_swift_package.py OUT --dependencies FOLDER
    scripts/make_swift_package.py OUT --binary URL CHECKSUM
    scripts/make_swift_package.py OUT --installed

FOLDER is what `UNPACK=1 scripts/build_dependencies.sh FOLDER pcre2 utf8proc flatbuffers nlohmann_json` makes. With
--binary the core is what scripts/build_xcframework.sh has built, with --installed a libmote that linkers find. Files
that have not changed are left as they are, so that a build of OUT compiles only what has.
docs/decisions/0020-swift-package.md says why.
"""

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DELEGATES = "backends/proof", "backends/assets", "backends/coreai", "backends/coreml"
ROOMS = "base", "kernels", "tokenizer", "runner", *DELEGATES
LEFT_OUT = re.compile(
    r"_windows\.cpp$|^base/windows\.|^kernels/vendor/|^(tokenizer|runner)/python/|^tokenizer/capi/|^runner/cli/|/cpus_other\.cpp$"
    r"|/of_swift\.cpp$"
)
APPLE = "defined(__APPLE__)"
OF_SYSTEM = {
    "runner/program/cpus_apple.cpp": APPLE,
    "runner/program/cpus_unbound.cpp": APPLE,
    "runner/program/cpus_linux.cpp": "defined(__linux__)",
    "backends/coreai/backend.cpp": APPLE,
}
SCHEMAS = {
    "schema": "llm_export/program/schema.fbs",
    "adapter": "llm_export/program/adapter.fbs",
    "session_file": "runner/session/state/session_file.fbs",
    "segment": "tokenizer/segment/segment.fbs",
}
FLATC_OPTIONS = ("--cpp", "--cpp-std", "c++17", "--scoped-enums", "--gen-object-api")
# Those that PCRE2's own build lists; other files are included by these.
PCRE2 = """auto_possess chartables compile config context convert dfa_match error extuni find_bracket jit_compile
maketables match match_data newline ord2utf pattern_info script_run serialize string_utils study substitute substring
tables ucd valid_utf xclass"""
PCRE2_MACROS = "HAVE_CONFIG_H 1", "SUPPORT_UNICODE 1", "PCRE2_CODE_UNIT_WIDTH 8"
PCRE2_RENAMED = {
    "config.h": "config.h.generic",
    "pcre2.h": "pcre2.h.generic",
    "pcre2_chartables.c": "pcre2_chartables.c.dist",
}
ARCHITECTURE = {"x86_64": "defined(__x86_64__)", "aarch64": "defined(__aarch64__)"}
# What the compiler defines for a feature of its command line, and an attribute does not.
MACROS = {
    "avx2": "__AVX__ __AVX2__",
    "fma": "__FMA__",
    "f16c": "__F16C__",
    "avxvnni": "__AVXVNNI__",
    "avx512f": "__AVX512F__",
    "avx512bw": "__AVX512BW__",
    "avx512dq": "__AVX512DQ__",
    "avx512vl": "__AVX512VL__",
    "avx512vnni": "__AVX512VNNI__",
    "dotprod": "__ARM_FEATURE_DOTPROD",
    "i8mm": "__ARM_FEATURE_MATMUL_INT8",
}
# A file of these needs more than the target of its functions: a state of the system's, a mode of the CPU.
WITHOUT_ATTRIBUTES = {"amx", "sme"}
INTRINSICS = """#if defined(__x86_64__)
#include <immintrin.h>
#else
#include <arm_neon.h>
#endif"""
MODULE_MAP = b'module CMote {\n  header "mote.h"\n  header "mote_coreai.h"\n  export *\n}\n'


@dataclass
class InstructionSet:
    """A row of cmake/MoteIsa.cmake."""

    name: str
    condition: str
    suffixes: list[str]
    features: list[str]

    def compiles(self, path: str) -> bool:
        return any(path.endswith(f"_{suffix}.cpp") for suffix in self.suffixes)


def instruction_sets() -> list[InstructionSet]:
    text = (ROOT / "cmake/MoteIsa.cmake").read_text()
    variables: dict[str, str] = {}

    def expand(value: str) -> str:
        return re.sub(r"\$\{(\w+)\}", lambda match: variables[match.group(1)], value)

    for name, value in re.findall(r'^set\((\w+_flags) "(.*)"\)$', text, re.MULTILINE):
        variables[name] = expand(value)
    sets = []
    for name, architecture, shared, flags in re.findall(r'^  "(\w+)\|(\w+)\|([\w ]+)\|([^"]*)"', text, re.MULTILINE):
        features = re.findall(r"-m(?!arch|prefer)(\w+)|\+(\w+)", expand(flags))
        suffixes = [name, *(word for word in shared.split() if word != "none")]
        sets.append(InstructionSet(name, ARCHITECTURE[architecture], suffixes, [a or b for a, b in features]))
    return sets


class Folder:
    """Writes files where they differ, and removes at the end what it was not told of."""

    def __init__(self, path: Path):
        self.path = path
        self.written: set[Path] = set()

    def write(self, name: str, content: bytes) -> None:
        path = self.path / name
        self.written.add(path)
        if path.is_file() and path.read_bytes() == content:
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)

    def copy(self, source: Path, name: str) -> None:
        self.write(name, source.read_bytes())

    def copy_tree(self, source: Path, name: str, pattern: str = "*") -> None:
        for path in sorted(source.rglob(pattern)):
            if path.is_file():
                self.copy(path, f"{name}/{path.relative_to(source).as_posix()}")

    def remove_others(self) -> None:
        for path in sorted(self.path.rglob("*"), reverse=True):
            if path.relative_to(self.path).parts[0] in (".build", ".swiftpm", ".git", "Package.resolved"):
                continue
            if path.is_dir() and not any(path.iterdir()):
                path.rmdir()
            elif not path.is_dir() and path not in self.written:
                path.unlink()


class Includes:
    """Which headers of the core stand outside of what is compiled for an instruction set."""

    def __init__(self) -> None:
        self.known: dict[str, bool] = {}

    def of(self, name: str) -> list[str]:
        return re.findall(r'^#include "([^"]+)"', (ROOT / name).read_text(), re.MULTILINE)

    def knows_instructions(self, name: str) -> bool:
        if not (ROOT / name).exists():  # a generated one
            return False
        if name not in self.known:
            is_one = "MOTE_ISA" in (ROOT / name).read_text()
            self.known[name] = is_one or any(map(self.knows_instructions, self.of(name)))
        return self.known[name]

    def common(self, name: str) -> list[str]:
        """What a file includes by any way and that knows no instruction set, the system's headers too."""
        found: set[str] = set()
        waiting, seen = [name], set()
        while waiting:
            file = waiting.pop()
            if file in seen:
                continue
            seen.add(file)
            found.update(re.findall(r"^#include (<[^>]+>)", (ROOT / file).read_text(), re.MULTILINE))
            headers = self.of(file)
            waiting += filter(self.knows_instructions, headers)
            found.update(f'"{header}"' for header in headers if not self.knows_instructions(header))
        return sorted(header for header in found if "intrin" not in header and "arm_neon" not in header)


def anchor_of(name: str) -> str:
    return "mote_anchor_" + re.sub(r"\W", "_", name)


def anchor_definition(name: str) -> str:
    return f'extern "C" {{ extern const char {anchor_of(name)}; const char {anchor_of(name)} = 0; }}\n'


def unit(path: str, condition: str = "") -> str:
    text = f'#pragma clang fp contract(off)\n#include "{path}"\n'
    return f"#if {condition}\n{text}#endif\n" if condition else text


def unit_for(path: str, isa: InstructionSet, includes: Includes, name: str) -> str:
    """A file compiled for an instruction set: what it shares with others comes first, for every CPU."""
    lines = [f"#if {isa.condition}", "#pragma clang fp contract(off)", INTRINSICS]
    lines += [f"#include {header}" for header in includes.common(path)]
    for feature in isa.features:
        for macro in MACROS[feature].split():
            lines += [f"#ifndef {macro}", f"#define {macro} 1", "#endif"]
    target = f'__attribute__((target("{",".join(isa.features)}")))'
    lines += [f"#define MOTE_ISA {isa.name}", f"#pragma clang attribute push({target}, apply_to = function)"]
    lines += [f'#include "{path}"', "#pragma clang attribute pop", anchor_definition(name) + "#endif\n"]
    return "\n".join(lines)


def core_files(*endings: str) -> list[str]:
    paths = (path for room in ROOMS for path in (ROOT / room).rglob("*") if path.suffix in endings)
    names = (path.relative_to(ROOT).as_posix() for path in paths)
    return sorted(name for name in names if not LEFT_OUT.search(name))


def write_core(package: Folder) -> None:
    for path in core_files(".h", ".cpp", ".mm"):
        package.copy(ROOT / path, f"Sources/CMote/core/{path}")
    rows = instruction_sets()
    sets = [isa for isa in rows if isa.name not in WITHOUT_ATTRIBUTES]
    includes = Includes()
    anchors: list[tuple[str, str]] = []

    def write(name: str, text: str) -> None:
        package.write(f"Sources/CMote/units/{name}.cpp", text.encode())

    for path in core_files(".cpp"):
        name = path.removesuffix(".cpp")
        is_kernel = path.startswith("kernels/")
        for isa in sets:
            if is_kernel and isa.compiles(path):
                name_for = f"{name}_for_{isa.name}"
                write(name_for, unit_for(path, isa, includes, name_for))
                anchors.append((isa.condition, anchor_of(name_for)))
        if path == "runner/capi/build.cpp" or (is_kernel and any(path.endswith(f"_{row.name}.cpp") for row in rows)):
            continue
        text = unit(path, OF_SYSTEM.get(path, ""))
        if is_kernel and "MOTE_REGISTER" in (ROOT / path).read_text():
            text += anchor_definition(name)
            anchors.append(("1", anchor_of(name)))
        write(name, text)
    for path in core_files(".mm"):
        name, text = path.removesuffix(".mm"), unit(path, APPLE)
        if "BackendRegistration" in (ROOT / path).read_text():
            text += f"#if {APPLE}\n{anchor_definition(name)}#endif\n"
            anchors.append((APPLE, anchor_of(name)))
        package.write(f"Sources/CMote/units/{name}.mm", text.encode())
    version, commit = version_and_commit()
    write("runner/capi/build", build_unit(version, anchors, sets))
    parts = re.sub(r"@\w+@", "", (ROOT / "base/built_parts.h.in").read_text())  # nothing is left out
    package.write("Sources/CMote/generated/built_parts.h", parts.encode())
    package.write("Sources/CMote/generated/commit.h", f'#define MOTE_COMMIT "{commit}"\n'.encode())


def build_unit(version: str, anchors: list[tuple[str, str]], sets: list[InstructionSet]) -> str:
    """The file that knows what the library is built from. It names those whose static objects nothing else names."""
    lines = [f'#define MOTE_VERSION "{version}"', '#define MOTE_COMPILER "Clang " __clang_version__']
    lines += ["#if defined(__APPLE__)", '#define MOTE_SYSTEM "Apple"', "#else", '#define MOTE_SYSTEM "Linux"', "#endif"]
    for architecture, condition in ARCHITECTURE.items():
        names = " ".join(isa.name for isa in sets if isa.condition == condition)
        lines += [f"#if {condition}", f'#define MOTE_ARCHITECTURE "{architecture}"']
        lines += [f'#define MOTE_INSTRUCTION_SETS "{names}"', "#endif"]
    lines += ['#include "runner/capi/build.cpp"', 'extern "C" {']
    lines += [f"#if {condition}\nextern const char {name};\n#endif" for condition, name in anchors]
    lines += ["__attribute__((used)) extern const char* const mote_anchors[];", "const char* const mote_anchors[] = {"]
    lines += [f"#if {condition}\n    &{name},\n#endif" for condition, name in anchors]
    return "\n".join([*lines, "};", "}", ""])


def write_schemas(package: Folder, flatc: str) -> None:
    with tempfile.TemporaryDirectory() as work:
        for name, schema in SCHEMAS.items():
            subprocess.run([flatc, *FLATC_OPTIONS, "-o", f"{work}/{name}", ROOT / schema], check=True)
            (header,) = Path(work, name).iterdir()
            package.copy(header, f"Sources/CMote/generated/{name}_generated.h")


def write_libraries(package: Folder, folder: Path) -> None:
    there = "Sources/CMote/libraries"
    package.copy_tree(folder / "flatbuffers/include/flatbuffers", f"{there}/flatbuffers", "*.h")
    package.copy_tree(folder / "nlohmann_json/include/nlohmann", f"{there}/nlohmann", "*.hpp")
    for pattern in ("pcre2_*.c", "pcre2_*.h"):
        package.copy_tree(folder / "pcre2/src", f"{there}/pcre2", pattern)
    for name, source in PCRE2_RENAMED.items():
        package.copy(folder / "pcre2/src" / source, f"{there}/pcre2/{name}")
    for name in ("utf8proc.c", "utf8proc_data.c", "utf8proc.h"):
        package.copy(folder / "utf8proc" / name, f"{there}/utf8proc/{name}")
    for name in PCRE2.split():
        text = "".join(f"#define {macro}\n" for macro in PCRE2_MACROS) + f'#include "pcre2_{name}.c"\n'
        package.write(f"Sources/CMote/units/pcre2/{name}.c", text.encode())
    package.write("Sources/CMote/units/utf8proc/utf8proc.c", b'#include "../../libraries/utf8proc/utf8proc.c"\n')
    for library in ("flatbuffers", "nlohmann_json", "pcre2", "utf8proc"):
        (licence, *_) = sorted((folder / library).glob("LICEN[CS]E*"))
        package.copy(licence, f"Licences/{library}.txt")


def write_headers(package: Folder, there: str) -> None:
    package.copy(ROOT / "runner/capi/mote.h", f"{there}/mote.h")
    package.copy(ROOT / "backends/coreai/runtime.h", f"{there}/mote_coreai.h")


def version_and_commit() -> tuple[str, str]:
    def describe(*arguments: str) -> str:
        done = subprocess.run(["git", "-C", ROOT, "describe", *arguments], capture_output=True, text=True, check=False)
        return done.stdout.strip() if done.returncode == 0 else ""

    found = re.search(r'^fallback_version = "(.*)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    tag = describe("--tags", "--abbrev=0", "--match", "v[0-9]*").removeprefix("v")
    return tag or found.group(1), describe("--always", "--dirty=-dirty", "--exclude", "*", "--abbrev=7")


def manifest_with(core: str) -> str:
    manifest = (ROOT / "apps/ios/Mote/Package.swift").read_text()
    line = f"let core: Target = {core}\n\n"
    return re.sub(r"// Beside this file.*?(?=// With MOTE_TEST_SHAPES)", lambda _: line, manifest, flags=re.DOTALL)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    core = parser.add_mutually_exclusive_group(required=True)
    core.add_argument("--dependencies", type=Path, metavar="FOLDER")
    core.add_argument("--binary", nargs=2, metavar=("URL", "CHECKSUM"))
    core.add_argument("--installed", action="store_true")
    parser.add_argument("--flatc", default="flatc", metavar="PROGRAM", help="flatbuffers' compiler")
    arguments = parser.parse_args()
    package = Folder(arguments.out)
    package.copy_tree(ROOT / "apps/ios/Mote", ".")
    package.copy(ROOT / "LICENSE", "LICENSE")
    package.copy(ROOT / "backends/coreai/runtime.swift", "Sources/MoteCoreAI/runtime.swift")
    if arguments.binary:
        url, checksum = arguments.binary
        target = f'.binaryTarget(name: "CMote", url: "{url}", checksum: "{checksum}")'
        package.write("Package.swift", manifest_with(target).encode())
    elif arguments.installed:
        package.write("Package.swift", manifest_with('.systemLibrary(name: "CMote")').encode())
        write_headers(package, "Sources/CMote")
        package.write("Sources/CMote/module.modulemap", MODULE_MAP.replace(b"  export", b'  link "mote"\n  export'))
    else:
        if shutil.which(arguments.flatc) is None:
            sys.exit(f"{arguments.flatc}: is missing: install flatbuffers-compiler, or name another one by --flatc")
        write_core(package)
        write_schemas(package, arguments.flatc)
        write_libraries(package, arguments.dependencies)
        write_headers(package, "Sources/CMote/include")
        package.write("Sources/CMote/include/module.modulemap", MODULE_MAP)
    package.remove_others()


if __name__ == "__main__":
    main()
