#!/bin/sh
# Makes countdown tasks: numbers and a target that can be reached with +, - and *, each number at most once.
#   examples/countdown/make_data.sh FOLDER [ROWS] [NUMBERS] [LARGEST] [SEED]     default 2000 rows, 3 numbers up to 20, seed 1
# Writes FOLDER/train.jsonl and FOLDER/test.jsonl (a tenth as many rows). The same arguments give the same files.
set -eu
case "${1:-}" in
  -h | --help) sed -n '2,4s/^# \{0,1\}//p' "$0"; exit 0 ;;
  "") echo "error: name a folder" >&2; exit 2 ;;
esac
folder=$1 rows=${2:-2000} numbers=${3:-3} largest=${4:-20} seed=${5:-1}
mkdir -p "$folder"
tasks() {
  awk -v rows="$1" -v count="$numbers" -v largest="$largest" -v state="$2" '
    function below(n) { state = (state * 16807) % 2147483647; return state % n }
    BEGIN {
      for (i = 0; i < 8; ++i) below(2)
      while (made < rows) {
        list = ""; shown = ""
        for (i = 1; i <= count; ++i) {
          x = 1 + below(largest); list = list (i > 1 ? ", " : "") x; shown = shown (i > 1 ? " " : "") x
          if (i == 1) { target = x; way = x; continue }
          op = below(3)
          if (op == 0) { target += x; way = "(" way " + " x ")" }
          else if (op == 1) { target -= x; way = "(" way " - " x ")" }
          else { target *= x; way = "(" way " * " x ")" }
        }
        if (target < 1 || target > 100) continue
        ++made
        printf "{\"data_source\": \"countdown\", \"prompt\": [{\"role\": \"user\", \"content\": \"Use the numbers %s, each at most once, with +, -, * and / to make %d. Give the formula in <answer> </answer>, for example <answer>(1 + 2) * 3</answer>.\"}], ", shown, target
        printf "\"reward_model\": {\"style\": \"rule\", \"ground_truth\": {\"target\": %d, \"numbers\": [%s]}}, \"response\": \"<answer>%s</answer>\"}\n", target, list, way
      }
    }'
}
tasks "$rows" "$((seed * 2 + 1))" > "$folder/train.jsonl"
tasks "$(((rows + 9) / 10))" "$((seed * 2 + 1000002))" > "$folder/test.jsonl"
echo "$folder/train.jsonl $folder/test.jsonl"
