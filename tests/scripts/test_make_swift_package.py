"""The Swift package has every header that its files include: `make test-ios`, which builds it, takes long."""

import re

import pytest

from scripts import make_swift_package


@pytest.fixture(scope="module")
def core(tmp_path_factory):
    package = make_swift_package.Folder(tmp_path_factory.mktemp("package"))
    make_swift_package.write_core(package)
    return package.path / "Sources/CMote"


def test_every_include_is_there(core):
    generated = {f"{name}_generated.h" for name in make_swift_package.SCHEMAS}
    folders = core / "core", core / "generated"
    missing = set()
    for path in [*core.rglob("*.cpp"), *core.rglob("*.h")]:
        for name in re.findall(r'^#include "([^"]+)"', path.read_text(), re.MULTILINE):
            if name not in generated and not any((folder / name).is_file() for folder in folders):
                missing.add(f"{path.relative_to(core)}: {name}")
    assert missing == set()


def test_every_registered_kernel_is_named(core):
    anchors = re.findall(r'extern "C" \{ extern const char (\w+);', "".join(p.read_text() for p in core.rglob("*.cpp")))
    table = (core / "units/runner/capi/build.cpp").read_text()
    assert len(anchors) > 40 and all(f"&{anchor}," in table for anchor in anchors)
