#!/bin/sh
# Makes questions of how often a letter occurs in a word that is made up.
#   examples/letter_counting/make_data.sh FOLDER [ROWS] [SEED] [FORM]     default 2000 rows, seed 1, counted
# Writes FOLDER/train.jsonl and FOLDER/test.jsonl (a tenth as many rows). The same arguments give the same files.
# FORM: "counted" spells the word, and answers go through it and count along; "number" has the word as it is, and the number alone.
set -eu
case "${1:-}" in
  -h | --help) sed -n '2,5s/^# \{0,1\}//p' "$0"; exit 0 ;;
  "") echo "error: name a folder" >&2; exit 2 ;;
esac
folder=$1 rows=${2:-2000} seed=${3:-1} form=${4:-counted}
case "$form" in
  counted | number) ;;
  *) echo "error: FORM is counted or number, not '$form'" >&2; exit 2 ;;
esac
mkdir -p "$folder"
questions() {
  awk -v rows="$1" -v state="$2" -v form="$form" '
    function below(n) { state = (state * 16807) % 2147483647; return state % n }
    BEGIN {
      letters = "abcdefghijklmnopqrstuvwxyz"
      for (i = 0; i < 8; ++i) below(2)
      for (i = 0; i < rows; ++i) {
        letter = substr(letters, 1 + below(26), 1); length_of = 4 + below(5); word = ""; answer = 0; along = ""; spelled = ""
        for (j = 0; j < length_of; ++j) {
          c = below(3) == 0 ? letter : substr(letters, 1 + below(26), 1)
          word = word c; answer += c == letter; spelled = spelled (j ? " " : "") c; along = along (j ? ", " : "") c " " answer
        }
        printf "{\"data_source\": \"letter_counting\", \"prompt\": [{\"role\": \"user\", \"content\": \"How often is the letter %s in \\\"%s\\\"? %s.\"}], ", letter, form == "counted" ? spelled : word, form == "counted" ? "Go through it letter by letter and count along, then give the number" : "Answer with the number only"
        printf "\"reward_model\": {\"style\": \"rule\", \"ground_truth\": \"%d\"}, \"response\": \"%s%d\"}\n", answer, form == "counted" ? along " = " : "", answer
      }
    }'
}
questions "$rows" "$((seed * 2 + 1))" > "$folder/train.jsonl"
questions "$(((rows + 9) / 10))" "$((seed * 2 + 1000002))" > "$folder/test.jsonl"
echo "$folder/train.jsonl $folder/test.jsonl"
