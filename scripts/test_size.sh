#!/bin/sh
# Builds for one file alone, runs what was built, and wants of it one sentence for all that it leaves out:
#   scripts/test_size.sh DEMO OTHER MOTE_RUNNER      DEMO: out/demo.mote; OTHER: a file that needs parts that DEMO does not
set -eu
demo="$(realpath "$1")" other="$(realpath "$2")" runner="$(realpath "$3")"
: "${CMAKE:=cmake}" "${JOBS:=$(getconf _NPROCESSORS_ONLN)}"

"$CMAKE" --preset release -B build/for-demo -DMOTE_FOR="$demo" -DMOTE_RUNNER="$runner"
"$CMAKE" --build build/for-demo --parallel "$JOBS" --target mote-runner
built=build/for-demo/runner/cli/mote-runner

# same ARGUMENTS...: both runners write the same
same() {
  "$runner" "$@" >build/for-demo/expected
  "$built" "$@" >build/for-demo/found
  cmp build/for-demo/expected build/for-demo/found
}
# refuses PART ARGUMENTS...: the built runner fails and names the part
refuses() {
  part="$1"; shift
  if "$built" "$@" >build/for-demo/found 2>&1; then echo "$*: was not refused" >&2; exit 1; fi
  grep -q "this build leaves out $part (built with MOTE_FOR=demo.mote); build with" build/for-demo/found || {
    echo "$*: does not say that $part was left out:" >&2; cat build/for-demo/found >&2; exit 1
  }
}

"$built" verify "$demo"
same run "$demo" "def main(" --raw --seed 3 --max-new-tokens 24
same inspect "$demo" --parts
refuses "[a-z_.0-9]*" run "$other" "def main(" --raw
refuses grammars.json_schema run "$demo" "def main(" --raw --json-schema '{"type": "integer"}'
refuses grammars.regex run "$demo" "def main(" --raw --regex '[0-9]+'
echo 'root ::= "a"' >build/for-demo/a.gbnf
refuses grammars.gbnf run "$demo" "def main(" --raw --grammar build/for-demo/a.gbnf
refuses sessions.files run "$demo" "def main(" --raw --max-new-tokens 1 --save-session build/for-demo/a.session
refuses adapters run "$demo" "def main(" --raw --adapter build/for-demo/a.gbnf
echo "The runner for $demo alone: $(stat -c %s "$built") bytes"
