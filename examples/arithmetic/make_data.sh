#!/bin/sh
# Makes arithmetic questions as JSON lines, for training and for validation.
#   examples/arithmetic/make_data.sh FOLDER [ROWS] [LARGEST] [SEED]     default 2000 rows, numbers up to 9, seed 1
# Writes FOLDER/train.jsonl and FOLDER/test.jsonl (a tenth as many rows). The same arguments give the same files.
set -eu
case "${1:-}" in
  -h | --help) sed -n '2,4s/^# \{0,1\}//p' "$0"; exit 0 ;;
  "") echo "error: name a folder" >&2; exit 2 ;;
esac
folder=$1 rows=${2:-2000} largest=${3:-9} seed=${4:-1}
mkdir -p "$folder"

# A generator of our own: awk's rand() differs between awks. Park and Miller 1988, exact in double precision.
questions() {
  awk -v rows="$1" -v largest="$largest" -v state="$2" '
    function below(n) { state = (state * 16807) % 2147483647; return state % n }
    BEGIN {
      for (i = 0; i < 8; ++i) below(2)
      for (i = 0; i < rows; ++i) {
        a = below(largest + 1); b = below(largest + 1)
        if (below(2)) { sign = "+"; answer = a + b }
        else { if (a < b) { t = a; a = b; b = t } sign = "-"; answer = a - b }
        printf "{\"data_source\": \"arithmetic\", \"prompt\": [{\"role\": \"user\", \"content\": \"What is %d %s %d? Answer with the number only.\"}], ", a, sign, b
        printf "\"reward_model\": {\"style\": \"rule\", \"ground_truth\": \"%d\"}, \"response\": \"%d\", \"extra_info\": {\"index\": %d}}\n", answer, answer, i
      }
    }'
}
questions "$rows" "$((seed * 2 + 1))" > "$folder/train.jsonl"
questions "$(((rows + 9) / 10))" "$((seed * 2 + 1000002))" > "$folder/test.jsonl"
echo "$folder/train.jsonl $folder/test.jsonl"
