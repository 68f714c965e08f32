#!/bin/sh
# Runs the coverage-guided fuzz targets of build/fuzz one after another: scripts/fuzz.sh SECONDS [TARGET ...]
# What they find worth keeping is in build/fuzz/corpus/TARGET, inputs that fail in build/fuzz/findings.
set -eu

seconds=$1
shift
programs=build/fuzz/tests/fuzz
targets=${*:-tokenizer_json sentencepiece ranks segment encode decode options_json option_text store_listing store_answer store_name template reply grammar program}
mkdir -p build/fuzz/seeds build/fuzz/findings
"$programs/tokenizer_mutations" --write-seeds build/fuzz/seeds
"$programs/options_mutations" --write-seeds build/fuzz/seeds
"$programs/store_mutations" --write-seeds build/fuzz/seeds
"$programs/template_mutations" --write-seeds build/fuzz/seeds
"$programs/reply_mutations" --write-seeds build/fuzz/seeds
"$programs/grammar_mutations" --write-seeds build/fuzz/seeds
for target in $targets; do
  mkdir -p "build/fuzz/corpus/$target" "build/fuzz/seeds/$target"
  "$programs/${target}_fuzz" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=4096 -print_final_stats=1 \
    -artifact_prefix="build/fuzz/findings/$target-" "build/fuzz/corpus/$target" "build/fuzz/seeds/$target"
done
