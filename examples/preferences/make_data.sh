#!/bin/sh
# Makes pairs of answers to sums and differences: the right number, and one that is off by one to three.
#   examples/preferences/make_data.sh FOLDER [ROWS] [LARGEST] [SEED]     default 2000 rows, numbers up to 9, seed 1.
# Writes FOLDER/train.jsonl and FOLDER/test.jsonl (the same sums as examples/arithmetic: none of them is in both). The same arguments give the same files.
set -eu
case "${1:-}" in
  -h | --help) sed -n '2,4s/^# \{0,1\}//p' "$0"; exit 0 ;;
  "") echo "error: name a folder" >&2; exit 2 ;;
esac
folder=$1
"$(dirname "$0")/../arithmetic/make_data.sh" "$@" > /dev/null
for split in train test; do
  awk -v state="${4:-1}" '
    function below(n) { state = (state * 16807) % 2147483647; return state % n }
    {
      match($0, /"response": "[0-9]+"/); answer = substr($0, RSTART + 13, RLENGTH - 14) + 0
      match($0, /"prompt": \[[^]]*\]/); prompt = substr($0, RSTART, RLENGTH)
      off = 1 + below(3); wrong = answer >= off && below(2) ? answer - off : answer + off
      printf "{%s, \"chosen\": \"%d\", \"rejected\": \"%d\"}\n", prompt, answer, wrong
    }' "$folder/$split.jsonl" > "$folder/$split.pairs"
  mv "$folder/$split.pairs" "$folder/$split.jsonl"
done
echo "$folder/train.jsonl $folder/test.jsonl"
