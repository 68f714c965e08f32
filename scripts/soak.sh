#!/bin/sh
# Runs for a long time what the tests run for seconds: scripts/soak.sh SECONDS, for each program of build/asan/tests/fuzz that
# mutates inputs. A finding ends it with the input's seed and number, by which it can be repeated.
set -eu

seconds=$1
programs=build/asan/tests/fuzz
for name in template reply grammar; do
  echo "== $name, $seconds s"
  "$programs/${name}_mutations" --seconds "$seconds" --seed "$(date +%s)"
done
for target in tokenizer_json sentencepiece ranks segment encode decode; do
  echo "== $target, $seconds s"
  "$programs/tokenizer_mutations" --seconds "$seconds" --seed "$(date +%s)" "$target"
done
for target in options_json option_text; do
  echo "== $target, $seconds s"
  "$programs/options_mutations" --seconds "$seconds" --seed "$(date +%s)" "$target"
done
echo "== program files"
end=$(($(date +%s) + seconds))
while [ "$(date +%s)" -lt "$end" ]; do
  "$programs/program_mutations" --iterations 100000 --seed "$(date +%s)" out/demo.mote
done
