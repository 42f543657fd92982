#!/usr/bin/env bash
# Includes point down only: rl -> placement -> runtime; torch nowhere outside rl; asio only through runtime/core/asio.h (its TLS: runtime/metrics alone).
set -uo pipefail
cd "${1:?source folder}" || exit 1
bad=0
refuse() {  # folders pattern reason
  local found; found=$(grep -rnE --include='*.h' --include='*.cpp' --include='*.cu' "$2" $1 2>/dev/null)
  [ -z "$found" ] || { echo "$found"; echo "  ^ $3"; bad=1; }
}
refuse runtime '#include "(placement|rl|bench|examples|tests)/' 'runtime includes nothing above it'
refuse placement '#include "(rl|bench|examples|tests)/' 'placement includes runtime only'
refuse rl '#include "(bench|examples|tests)/' 'rl includes placement and runtime only'
refuse "runtime placement" '#include [<"](torch|ATen|c10)/' 'torch appears in rl only'
refuse "rl/template rl/tokenizer rl/weights rl/hub rl/config rl/app/check rl/data rl/reward rl/metrics rl/report rl/kernel rl/profile" '#include [<"](torch|ATen|c10)/' 'this part of rl loads without torch'
found=$(grep -rnE --include='*.h' --include='*.cpp' '#include <boost/asio' runtime placement rl examples | grep -vE '^runtime/core/asio\.(h|cpp):|^runtime/metrics/(tls|http_stream)\.(h|cpp):[0-9]+:#include <boost/asio/ssl/')
[ -z "$found" ] || { echo "$found"; echo '  ^ include runtime/core/asio.h instead'; bad=1; }
# Own header first, so that each is proven self-contained.
while IFS= read -r source; do
  header=${source%.cpp}.h
  [ -e "$header" ] || continue
  first=$(grep -m1 -E '^#include' "$source")
  [ "$first" = "#include \"$header\"" ] || { echo "$source: first include is $first, not its own header"; bad=1; }
done < <(find runtime placement rl -name '*.cpp')
exit $bad
