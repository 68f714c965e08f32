#!/bin/sh
# Tests of exporting with the oldest versions of what the extra `export` allows, in build/lowest: PyTorch stays as pinned.
# scripts/test_lowest.sh [PYTEST ARGUMENTS]
set -eu
cd "$(dirname "$0")/.."
venv="build/lowest"
python=".venv/bin/python"
# name==lowest for each requirement with a lower bound
lowest="$("$python" - <<'PY'
import re, tomllib
extra = tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["export"]
bounds = [re.match(r"([\w.-]+)\s*(>=|==)\s*([\d.]+)", text) for text in extra]
print(*(f"{m[1]}=={m[3].rstrip('.')}" + (".*" if m[2] == "==" else "") for m in bounds))
PY
)"
echo "$lowest"
if [ ! -x "$venv/bin/python" ]; then
  # What the tests use comes from the environment that make builds; what is installed here comes before it.
  "$python" -m venv "$venv"
  "$python" -c 'import site; print(f"import site; site.addsitedir({site.getsitepackages()[0]!r})")' >"$("$venv/bin/python" -c 'import site; print(site.getsitepackages()[0])')/zz_base.pth"
fi
# shellcheck disable=SC2086
"$venv/bin/pip" -q --disable-pip-version-check install $(printf '%s\n' $lowest | grep -v '^torch==')
"$venv/bin/python" -m pytest -x -p no:cacheprovider "${@:-tests/llm_export}"
