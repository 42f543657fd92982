#!/usr/bin/env bash
# Makes the curves of docs/results.md again: the toy task (four letters to put in order) by PPO, GRPO, DAPO and RLOO, with several seeds.
#   examples/results.sh FOLDER [SEEDS]     default: seeds "1 2 3"; 150 steps, about a minute a run on two cores.
# Writes FOLDER/ALGORITHM_SEED (runs). Prints a row per run: the mean score of the first and the last five steps, and of held-out prompts before and after.
# A run that is there already is not made again.
set -euo pipefail
case ${1:-} in -h | --help) sed -n '2,5s/^# \{0,1\}//p' "$0"; exit 0 ;; esac
folder=${1:?usage: examples/results.sh FOLDER [SEEDS]} seeds=${2:-1 2 3}
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$folder"

options() {
  case $1 in
    grpo) ;;
    rloo) echo algorithm.adv_estimator=rloo ;;
    dapo) echo actor_rollout_ref.actor.clip_ratio_high=0.28 algorithm.filter_groups.enable=true actor_rollout_ref.actor.loss_agg_mode=token-mean algorithm.mask_truncated=true ;;
    ppo) echo algorithm.adv_estimator=gae algorithm.lam=0.95 critic.optim.lr=1e-3 ;;
  esac
}

row() {  # ALGORITHM SEED FILE
  awk -v algorithm="$1" -v seed="$2" '
    function field(line, key,    at, rest) {
      at = index(line, "\"" key "\":")
      if (!at) return ""
      rest = substr(line, at + length(key) + 3)
      return match(rest, /^ *-?[0-9.]+([eE][-+]?[0-9]+)?/) ? substr(rest, 1, RLENGTH) + 0 : ""
    }
    {
      score = field($0, "critic/score/mean")
      if (score != "") scores[++n] = score
      if (match($0, /"val-core[^"]*mean@1":/)) {
        held = field($0, substr($0, RSTART + 1, RLENGTH - 3))
        if (before == "") before = held
        after = held
      }
    }
    END {
      for (i = 1; i <= 5; ++i) { first += scores[i] / 5; last += scores[n - 5 + i] / 5 }
      printf "| %s | %s | %.2f | %.2f | %.2f | %.2f |\n", algorithm, seed, first, last, before, after
    }' "$3"
}

echo "| algorithm | seed | first five steps | last five steps | held out, before | held out, after |"
echo "|---|---|---|---|---|---|"
for seed in $seeds; do
  for algorithm in grpo rloo dapo ppo; do
    run=$folder/${algorithm}_$seed
    if [ ! -e "$run/done" ]; then
      rm -rf "$run"
      # shellcheck disable=SC2046
      starling train --config "$here/toy/grpo.yaml" $(options "$algorithm") trainer.seed="$seed" trainer.total_training_steps=150 trainer.test_freq=150 trainer.experiment_name="$algorithm" trainer.save_freq=0 trainer.default_local_dir="$run" > "$run.log" 2>&1 ||
        { echo "results.sh: $algorithm with seed $seed failed; see $run.log" >&2; exit 1; }
      touch "$run/done"
    fi
    row "$algorithm" "$seed" "$run/metrics.jsonl"
  done
done
