#include "runtime/control/token_state.h"

#include <algorithm>

namespace runtime {

Tokens tokens_of(const TokenState& state) {
  Tokens tokens{state.token, state.version};
  for (const EarlierToken& earlier : state.earlier)
    tokens.also.push_back({earlier.token, deadline_after(earlier.left)});
  return tokens;
}

TokenState state_of(const Tokens& tokens) {
  TokenState state{tokens.present, tokens.version};
  const Deadline now = steady_now();
  for (const AlsoToken& also : tokens.also) {
    // What counts until the next change is known to the node next to the head alone.
    if (also.until == Deadline::max()) continue;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(also.until - now);
    state.earlier.push_back({also.token, std::max(left, std::chrono::milliseconds(0))});
  }
  return state;
}

}  // namespace runtime
