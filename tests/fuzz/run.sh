#!/usr/bin/env bash
# Runs every libFuzzer program of a folder for a bounded time: run.sh FOLDER SECONDS [KEEP]
# Each starts from tests/fuzz/corpus/<name>.tar.gz. What it finds on the way stays in FOLDER/corpus; with KEEP=1 the inputs that reach new code are
# packed with the others. An input that fails is put in FOLDER/failures, and into the corpus once it is fixed (unpack, add, tests/fuzz/pack.sh).
set -uo pipefail
folder=$(realpath "$1") seconds=$2 keep=${3:-0}
cd "$(dirname "$0")/../.." || exit 1
mkdir -p "$folder/failures"
failed=()
for program in "$folder"/*_fuzz; do
  name=$(basename "$program" _fuzz)
  seeds=$folder/seeds/$name work=$folder/corpus/$name log=$folder/$name.log
  rm -rf "$seeds"
  mkdir -p "$work" "$seeds"
  packed=tests/fuzz/corpus/$name.tar.gz
  [ -f "$packed" ] && tar --extract --gzip --file "$packed" --directory "$seeds"
  if "$program" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
      -artifact_prefix="$folder/failures/$name-" "$work" "$seeds" >"$log" 2>&1; then
    runs=$(awk '/stat::number_of_executed_units/ {print $2}' "$log")
    printf '%-18s %12s runs, %s inputs\n' "$name" "$runs" "$(find "$work" -type f | wc -l)"
    [ "$keep" = 1 ] && "$program" -merge=1 "$seeds" "$work" >>"$log" 2>&1 && tests/fuzz/pack.sh "$seeds" "$name"
  else
    failed+=("$name")
    printf '%-18s FAILED, see %s\n' "$name" "$log"
    grep -m 3 -E 'ERROR|runtime error|SUMMARY' "$log"
  fi
done
[ ${#failed[@]} = 0 ]
