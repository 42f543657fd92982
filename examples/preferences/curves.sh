#!/usr/bin/env bash
# Makes the table of preferences in docs/results.md again: the toy task's pairs (letters in order against one wrong letter) by each loss, with several seeds.
#   examples/preferences/curves.sh FOLDER [SEEDS]     default: seeds "1 2 3"; 150 steps of 32 pairs, ten seconds a run on two cores.
# All runs of a seed begin with the same twenty supervised steps. Prints a row per run: the share of held-out pairs that are told apart after
# 5, 30, 75 and 150 steps. A run that is there already is not made again.
set -euo pipefail
case ${1:-} in -h | --help) sed -n '2,5s/^# \{0,1\}//p' "$0"; exit 0 ;; esac
folder=${1:?usage: examples/preferences/curves.sh FOLDER [SEEDS]} seeds=${2:-1 2 3}
mkdir -p "$folder"

stage() {  # FOLDER of the run, then the command's arguments
  local run=$1; shift
  [ ! -e "$run/done" ] || return 0
  rm -rf "$run"
  starling "$@" data.dataset_name=toy data.train_batch_size=32 data.max_length=64 trainer.seed="$seed" trainer.save_freq=-1 \
    trainer.default_local_dir="$run" > "$run.log" 2>&1 || { echo "curves.sh: $run failed; see $run.log" >&2; exit 1; }
  touch "$run/done"
}

echo "| loss | seed | 5 steps | 30 | 75 | 150 |"
echo "|---|---|---|---|---|---|"
for seed in $seeds; do
  begin=$folder/sft_$seed
  stage "$begin" sft model.path=toy optim.lr=1e-3 trainer.total_training_steps=20
  for loss in sigmoid ipo hinge sppo simpo orpo kto rm; do
    run=$folder/${loss}_$seed
    case $loss in kto | rm) command=$loss ;; *) command="dpo preference.loss=$loss" ;; esac
    # shellcheck disable=SC2086
    stage "$run" $command model.path="$begin/global_step_20/huggingface" optim.lr=3e-4 trainer.total_training_steps=150 trainer.test_freq=5 'trainer.logger=[console,file]'
    awk -v loss="$loss" -v seed="$seed" '
      match($0, /"val\/(rewards\/accuracies|accuracy)":[0-9.]+/) { text = substr($0, RSTART, RLENGTH); sub(/.*:/, "", text); at[++n] = text }
      END { printf "| %s | %s | %.2f | %.2f | %.2f | %.2f |\n", loss, seed, at[1], at[6], at[15], at[30] }' "$run/metrics.jsonl"
  done
done
