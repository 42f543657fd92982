#!/bin/sh
# Makes word problems of one and two steps in the form in which GSM8K is published, for trying the recipe without a network.
#   examples/gsm8k/make_sample.sh FOLDER [ROWS] [SEED]     default 400 rows, seed 1
# Writes FOLDER/train.jsonl and FOLDER/test.jsonl (a tenth as many rows): {"question": ..., "answer": "steps\n#### number"}.
set -eu
case "${1:-}" in
  -h | --help) sed -n '2,4s/^# \{0,1\}//p' "$0"; exit 0 ;;
  "") echo "error: name a folder" >&2; exit 2 ;;
esac
folder=$1 rows=${2:-400} seed=${3:-1}
mkdir -p "$folder"
problems() {
  awk -v rows="$1" -v state="$2" '
    function below(n) { state = (state * 16807) % 2147483647; return state % n }
    BEGIN {
      split("Ada Ben Cleo Dan Eve Finn Gus Hana", names, " "); split("apples pens books shells coins cards", things, " ")
      for (i = 0; i < 8; ++i) below(2)
      for (i = 0; i < rows; ++i) {
        name = names[1 + below(8)]; thing = things[1 + below(6)]; a = 2 + below(8); b = 2 + below(8); c = 1 + below(a * b - 1)
        if (below(2)) printf "{\"question\": \"%s has %d boxes with %d %s each and gives %d away. How many %s are left?\", \"answer\": \"There are %d * %d = <<%d*%d=%d>>%d %s.\\nThen %d - %d = <<%d-%d=%d>>%d are left.\\n#### %d\"}\n", name, a, b, thing, c, thing, a, b, a, b, a * b, a * b, thing, a * b, c, a * b, c, a * b - c, a * b - c, a * b - c
        else printf "{\"question\": \"%s finds %d %s on Monday and %d on Tuesday. How many is that?\", \"answer\": \"That is %d + %d = <<%d+%d=%d>>%d.\\n#### %d\"}\n", name, a, thing, b, a, b, a, b, a + b, a + b, a + b
      }
    }'
}
problems "$rows" "$((seed * 2 + 1))" > "$folder/train.jsonl"
problems "$(((rows + 9) / 10))" "$((seed * 2 + 1000002))" > "$folder/test.jsonl"
echo "$folder/train.jsonl $folder/test.jsonl"
