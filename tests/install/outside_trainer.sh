#!/usr/bin/env bash
# Installs both components to a prefix, moves the prefix, and builds and runs a project outside this tree that trains with rl::Trainer.
set -euo pipefail
source_dir=${1:?source folder} build_dir=${2:?build folder} version=${3:?version}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
fail() { echo "error: $*" >&2; exit 1; }

cmake --install "$build_dir" --component runtime --prefix "$folder/first" >"$folder/install.log"
prefix=$folder/prefix
mv "$folder/first" "$prefix"
cp -r "$source_dir/tests/install/rl_project" "$folder/project"
configure() { cmake -G Ninja -S "$folder/project" -B "$1" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_BUILD_TYPE=Release -DWANTED_VERSION="$version"; }
if configure "$folder/without" >"$folder/without.log" 2>&1; then fail "find_package(Starling COMPONENTS rl) was content with the runtime alone"; fi
grep -q "component 'rl' is not in" "$folder/without.log" || { cat "$folder/without.log"; fail "not refused for the component that is missing"; }

cmake --install "$build_dir" --component rl --prefix "$folder/second" >>"$folder/install.log"
cp -rl "$folder/second/." "$prefix" && rm -rf "$folder/second"
text=("$prefix/include" "$prefix/lib/cmake")
for path in "$source_dir" "$build_dir" "$folder"; do
  found=$(grep -rF "$path" "${text[@]}" || true)
  [ -z "$found" ] || fail "a path of this machine was installed: $found"
done
configure "$folder/build" >"$folder/configure.log" 2>&1 || { cat "$folder/configure.log"; fail "the project did not configure"; }
cmake --build "$folder/build" >"$folder/build.log" 2>&1 || { tail -n 40 "$folder/build.log"; fail "the project did not build"; }

mkdir "$folder/sessions"
# train RUN [KEY=VALUE...]: the last line that the driver says.
train() {
  (cd "$folder" && env -u STARLING_ADDRESS PATH="$prefix/bin:$PATH" STARLING_SESSION_ROOT="$folder/sessions/s" timeout 120 "$folder/build/trainer" \
    data.dataset_name=toy data.toy.letters=4 data.toy.length=2 actor_rollout_ref.model.path=toy data.train_batch_size=4 actor_rollout_ref.rollout.n=8 data.max_response_length=8 \
    data.max_prompt_length=32 trainer.total_training_steps=8 trainer.save_freq=0 trainer.test_freq=-1 trainer.logger=[] trainer.default_local_dir="$folder/$1" "${@:2}" 2>"$folder/errors.log" | tail -n 1)
}
said=$(train run) || { cat "$folder/errors.log"; fail "the driver failed"; }
[[ "$said" == "steps 4 again equal clipped 0.00 gradient "* ]] || { cat "$folder/errors.log"; fail "the driver said '$said'"; }

# A loss and advantages of the project's own. Advantages of half the size and a loss four times as large: the first gradient is twice that of GRPO.
loss=actor_rollout_ref.actor.policy_loss
own=$(train own algorithm.adv_estimator=halved $loss.loss_mode=band $loss.band_scale=4) || { cat "$folder/errors.log"; fail "the driver failed with a custom loss"; }
[[ "$own" == "steps 4 again equal clipped 1.00 gradient "* ]] || { cat "$folder/errors.log"; fail "the driver said '$own' with a custom loss"; }
awk -v grpo="${said##* }" -v own="${own##* }" 'BEGIN { exit !(grpo > 0 && own > 1.999999 * grpo && own < 2.000001 * grpo) }' || fail "the gradient is ${own##* } with a custom loss, ${said##* } without"
# Divergence ends a loop over step(), too; what was counted before a checkpoint was loaded, which is of step 2, does not count.
if train lost trainer.total_training_steps=20 $loss.loss_mode=band $loss.band_scale=1e300 >/dev/null; then fail "it trained on without a finite gradient"; fi
grep -q "step 12: the actor had no finite gradient in 10 consecutive steps" "$folder/errors.log" || { cat "$folder/errors.log"; fail "divergence was not reported after step 12"; }
if train refused $loss.loss_mode=hand >/dev/null; then fail "a loss that was not registered was trained with"; fi
grep -q "sapo or band, got the string 'hand'" "$folder/errors.log" || { cat "$folder/errors.log"; fail "not refused by the list of losses"; }
if "$prefix/bin/starling" train --check $loss.loss_mode=band >"$folder/check.log" 2>&1; then fail "starling train knows a loss of the project's"; fi
grep -q "sapo, got the string 'band'" "$folder/check.log" || { cat "$folder/check.log"; fail "starling train did not refuse the loss by its list"; }
