#!/usr/bin/env bash
# Workers that share one GPU: runs of the toy task, and what is refused on a device. The runs' numbers must not depend on what is kept
# once, what is offloaded, or where a run was interrupted. For a machine with a GPU; `cpu` tries the script itself.
#   check_on_gpu.sh FOLDER_OF_PROGRAMS OUT [cuda|cpu]     a line a check; OUT has logs and metrics; exit code 1: a check failed.
# On the CPU nothing is refused, so these checks are left out.
set -uo pipefail
bin=$(cd "$1" && pwd) out=$2 device=${3:-cuda}
mkdir -p "$out"; out=$(cd "$out" && pwd)
export OMP_WAIT_POLICY=PASSIVE
failed=0 address=

stop() { [ -z "$address" ] || timeout 60 "$bin/starling" stop --address "$address" >"$out/stop.log" 2>&1; }
trap stop EXIT
report() { printf '%-7s %s\n' "$1" "$2"; [ "$1" != FAILED ] || failed=1; }

base=(data.dataset_name=toy data.toy.task=sort data.train_batch_size=8 data.max_prompt_length=32 data.max_response_length=8
  actor_rollout_ref.model.path=toy actor_rollout_ref.rollout.n=4 actor_rollout_ref.rollout.gpu_memory_utilization=0.2
  actor_rollout_ref.actor.ppo_mini_batch_size=4 actor_rollout_ref.actor.optim.lr=1e-3)
rows=(data.dataset_name=toy data.toy.task=sort data.train_batch_size=8 data.max_length=64 model.path=toy optim.lr=1e-3)
common=("trainer.device=$device" trainer.nnodes=1 trainer.cpus_per_worker=1 trainer.seed=1 trainer.total_training_steps=3 trainer.save_freq=1
  trainer.max_actor_ckpt_to_keep=1 'trainer.logger=[file]')
two=(trainer.n_gpus_per_node=2)
fp32=(actor_rollout_ref.actor.fsdp_config.dtype=float32)
policy_level=actor_rollout_ref.actor.fsdp_config.zero_level

run() {  # NAME COMMAND KEYS...: a run in OUT/NAME; with the folder of an earlier run of that name it goes on
  local name=$1 command=$2 begin=$EPOCHREALTIME; shift 2
  if timeout 90 "$bin/starling" "$command" --address "$address" "$@" "trainer.default_local_dir=$out/$name" >>"$out/$name.log" 2>&1; then
    report ok "$name ($(awk "BEGIN { printf \"%.1f\", $EPOCHREALTIME - $begin }") s)"
  else
    report FAILED "$name: $(grep -vE '^ *$' "$out/$name.log" | tail -n 1 | cut -c1-300)"
  fi
}
train() { local name=$1; shift; run "$name" train "${base[@]}" "${common[@]}" "$@"; }
stage() { local name=$1 command=$2; shift 2; run "$name" "$command" "${rows[@]}" "${common[@]}" "$@"; }
grpo_refuses() { refuses "$1" train "${base[@]}" "${common[@]}" "${two[@]}"; }
refuses() {  # KEY COMMAND KEYS...: the message of a dry run with them
  local key=$1 command=$2 said; shift 2
  if said=$("$bin/starling" "$command" --dry-run --private "$@" "$key" 2>&1); then
    report FAILED "$command takes $key"
  else
    report refused "$(tail -n 1 <<<"$said")"
  fi
}

weights() { find "$out/$1" -name model.safetensors -path '*global_step_3*' | head -n 1; }
same() {  # A B [near]: equal weights, bit for bit, and equal numbers of all steps; near: only says how far they are apart
  local a b; a=$(weights "$1") b=$(weights "$2")
  if [ -z "$a" ] || [ -z "$b" ]; then report FAILED "$1 and $2: no weights to compare"; return; fi
  local bits=different; ! cmp -s "$a" "$b" || bits=equal
  local apart; apart=$(python3 - "$out/$1/metrics.jsonl" "$out/$2/metrics.jsonl" <<'PY'
import json, sys
def numbers(path):
    of = {}
    for line in open(path):
        record = json.loads(line)
        for key, value in record["data"].items():
            if key.split("/")[0] in ("actor", "critic", "train", "response_length") and isinstance(value, (int, float)):
                of[record["step"], key] = value
    return of
a, b = (numbers(path) for path in sys.argv[1:])
apart = {at: abs(a[at] - b[at]) for at in a.keys() & b.keys() if a[at] != b[at]}
print(f"{len(a.keys() & b.keys())} numbers, {len(apart)} differ" + "".join(f"; step {s} {k} {a[s, k]:.9g} {b[s, k]:.9g}" for s, k in sorted(apart)[:3]))
PY
  ) || apart="no metrics"
  if [ "$bits $apart" = "equal ${apart%% *} numbers, 0 differ" ] || [ "${3:-}" = near ]; then
    report "$bits" "$1 and $2: weights $bits, $apart"
  else
    report FAILED "$1 and $2: weights $bits, $apart"
  fi
}

if [ "$device" = cpu ]; then gpus=(); else gpus=(--gpus 2); export CUDA_VISIBLE_DEVICES=0,0; fi  # one GPU, named twice
address=$("$bin/starling" start --head --port 0 --cpus 4 --object-store-memory 1GiB "${gpus[@]}" 2>"$out/start.log" | tail -n 1)
[ -n "$address" ] || { report FAILED "no cluster: $(tail -n 1 "$out/start.log")"; exit 1; }

train one
train two "${two[@]}"
train two_again "${two[@]}"
train two_level1 "${two[@]}" "$policy_level=1"
same two two_again
same two two_level1
for level in 2 3; do
  train "two_level$level" "${two[@]}" "$policy_level=$level"
  same two "two_level$level"
done
same one two near

train interrupted "${two[@]}" "$policy_level=1" trainer.total_training_steps=2
train interrupted "${two[@]}"
same two interrupted

train fp16 "${two[@]}" trainer.gradient_compression=fp16
train fp16_again "${two[@]}" trainer.gradient_compression=fp16
train topk "${two[@]}" trainer.gradient_compression=topk trainer.gradient_topk_ratio=0.1 "$policy_level=1"
same fp16 fp16_again
same two fp16 near
same two topk near

leaves=(trainer.gradient_leaves=2 "${fp32[@]}")
train one_leaves "${leaves[@]}"
train two_leaves "${leaves[@]}" "${two[@]}"
train two_leaves_level1 "${leaves[@]}" "${two[@]}" "$policy_level=1"
same one_leaves two_leaves near
same two_leaves two_leaves_level1

ppo=(algorithm.adv_estimator=gae critic.optim.lr=1e-3 actor_rollout_ref.actor.use_kl_loss=true "${two[@]}")
train ppo "${ppo[@]}"
train ppo_offload_level1 "${ppo[@]}" "$policy_level=1" critic.fsdp.zero_level=1 actor_rollout_ref.actor.fsdp_config.offload_policy=true \
  actor_rollout_ref.ref.fsdp_config.param_offload=true critic.fsdp.offload_policy=true
same ppo ppo_offload_level1
train ppo_level3 "${ppo[@]}" "$policy_level=3" critic.fsdp.zero_level=3 actor_rollout_ref.ref.fsdp_config.zero_level=3
same ppo ppo_level3

train ahead actor_rollout_ref.hybrid_engine=false rollout.n_gpus_per_node=1

for command in sft dpo rm; do
  stage "$command" "$command" "${two[@]}"
  stage "${command}_level1" "$command" "${two[@]}" engine.zero_level=1
  same "$command" "${command}_level1"
  stage "${command}_level3" "$command" "${two[@]}" engine.zero_level=3
  same "$command" "${command}_level3"
done

if [ "$device" != cpu ]; then
  for key in parallel_config.tensor_parallel_size=2 parallel_config.pipeline_parallel_size=2 \
    actor_rollout_ref.actor.ulysses_sequence_parallel_size=2; do
    grpo_refuses "$key"
  done
fi
exit "$failed"
