#!/usr/bin/env bash
# Runs the runtime's tests of the folders that a change touches under the sanitizers: sanitize_change.sh [BASE]. BASE is the commit
# before the change (default: the parent of the present one). Of more than SANITIZE_FOLDERS (3) folders it takes those with the
# most files that differ, and names the others. `make asan tsan` runs the tests of all.
set -euo pipefail
cd "$(dirname "$0")/.."
base=${1:-HEAD^}
git rev-parse -q --verify "$base" >/dev/null || { echo "sanitize_change: there is no $base; nothing to compare with"; exit 0; }
mapfile -t folders < <(git diff --name-only --diff-filter=d "$base" -- runtime placement tests/runtime tests/placement |
  sed -nE 's#^(tests/)?((runtime|placement)/[a-z_]+)/[^/]+\.(cpp|h)$#\2#p' | sort | uniq -c | sort -rn | awk '{print $2}')
programs=() pattern='' left=()
for folder in "${folders[@]}"; do
  compgen -G "tests/$folder/*_test.cpp" >/dev/null || continue  # its tests are elsewhere
  if [ ${#programs[@]} -ge "${SANITIZE_FOLDERS:-3}" ]; then left+=("$folder"); continue; fi
  programs+=("test_${folder//\//_}")
  pattern+="${pattern:+|}$folder"
done
[ ${#programs[@]} -gt 0 ] || { echo "sanitize_change: no folder of the runtime with tests differs from $base"; exit 0; }
[ ${#left[@]} -eq 0 ] || echo "sanitize_change: left to \`make asan tsan\`: ${left[*]}"
for preset in asan tsan; do
  echo "sanitize_change: $preset: ${programs[*]}"
  cmake --preset $preset --log-level=WARNING
  cmake --build build/$preset --target starling "${programs[@]}"
  .ci/run_tests.sh ctest --test-dir build/$preset --output-on-failure --timeout 600 --repeat until-pass:2 -LE 'slow|timing' -j 2 -R "^($pattern)/"
done
