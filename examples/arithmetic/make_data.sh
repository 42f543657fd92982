#!/bin/sh
# Makes arithmetic questions as JSON lines, for training and for validation.
#   examples/arithmetic/make_data.sh FOLDER [ROWS] [LARGEST] [SEED] [FORM]     default 2000 rows, numbers up to 9, seed 1, form number.
# The form is what questions ask for and demonstrations show: `number` or `equation`. The latter repeats the question and goes on ("12 + 7 = 19").
# Writes FOLDER/train.jsonl and FOLDER/test.jsonl (a tenth as many rows, fewer where there are fewer questions: each is there once). No question of the one is in the other; a tenth of
# all questions is held out. The same arguments give the same files.
set -eu
case "${1:-}" in
  -h | --help) sed -n '2,6s/^# \{0,1\}//p' "$0"; exit 0 ;;
  "") echo "error: name a folder" >&2; exit 2 ;;
esac
folder=$1 rows=${2:-2000} largest=${3:-9} seed=${4:-1} form=${5:-number}
case "$form" in
  number | equation) ;;
  *) echo "error: the form is number or equation, not '$form'" >&2; exit 2 ;;
esac
mkdir -p "$folder"

# A separate generator: awk's rand() differs between awks. Park and Miller 1988, exact in double precision.
questions() {
  awk -v rows="$1" -v largest="$largest" -v state="$2" -v test="$3" -v form="$form" '
    function next_of(state) { return (state * 16807) % 2147483647 }
    function below(n) { state = next_of(state); return state % n }
    function held_out(a, sign, b) { return next_of(next_of((a * 10007 + b) * 2 + (sign == "+") + 1)) % 10 == 0 }
    BEGIN {
      for (i = 0; i < 8; ++i) below(2)
      for (tries = 0; row < rows && tries < 1000 * rows; ++tries) {
        a = below(largest + 1); b = below(largest + 1)
        if (below(2)) { sign = "+"; answer = a + b }
        else { if (a < b) { t = a; a = b; b = t } sign = "-"; answer = a - b }
        if (held_out(a, sign, b) != test || (test && (a, sign, b) in seen)) continue
        seen[a, sign, b] = 1
        sum = a " " sign " " b
        shown = form == "equation" ? sum " = " answer : answer
        printf "{\"data_source\": \"arithmetic\", \"prompt\": [{\"role\": \"user\", \"content\": \"What is %s?%s\"}], ", sum, form == "number" ? " Answer with the number only." : ""
        printf "\"reward_model\": {\"style\": \"rule\", \"ground_truth\": \"%d\"}, \"response\": \"%s\", \"extra_info\": {\"index\": %d}}\n", answer, shown, row++
      }
    }'
}
questions "$rows" "$((seed * 2 + 1))" 0 > "$folder/train.jsonl"
questions "$(((rows + 9) / 10))" "$((seed * 2 + 1000002))" 1 > "$folder/test.jsonl"
echo "$folder/train.jsonl $folder/test.jsonl"
