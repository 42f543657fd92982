#include "runtime/head/token_keeper.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "runtime/control/token_strength.h"
#include "runtime/core/clock.h"
#include "runtime/core/log.h"
#include "runtime/transport/token_key.h"

namespace runtime {

namespace {

// More changes than this within their grace times, and the oldest token counts no more.
constexpr std::size_t kEarlierMax = 8;

std::chrono::milliseconds unix_now() { return std::chrono::milliseconds(unix_milliseconds()); }

/// Some time after it was recorded.
void set_left(EarlierToken& token) {
  token.left = std::clamp(token.until - unix_now(), std::chrono::milliseconds(0), token.left);
}

}  // namespace

void TokenKeeper::restore(const TokenState& recorded) {
  if (recorded.version == 0) return;
  TokenState state = recorded;
  for (EarlierToken& earlier : state.earlier) set_left(earlier);
  keyring_.change(tokens_of(state));
}

Result<TokenState> TokenKeeper::changed_to(const control::ChangeToken& asked) const {
  if (!key_of_caller(asked.token).id.is_none())
    return invalid_argument("that is a submitter's token, which cannot be the cluster's");
  if (const double bits = estimated_bits(asked.token); bits < kTokenBitsMin) {
    return invalid_argument("the new token is easy to guess (about " +
                            std::to_string(std::lround(bits)) + " bits; " +
                            std::to_string(std::lround(kTokenBitsMin)) +
                            " are needed): `openssl rand -hex 32` prints a better one");
  }
  if (asked.grace < kTokenGraceMin || asked.grace > kTokenGraceMax)
    return invalid_argument(
        "the present token has to count for 5 s at least, until the change is known everywhere, "
        "and for 24 h at most");
  TokenState changed = state_of(keyring_.tokens());
  if (changed.token == asked.token) return invalid_argument("that is the cluster's token already");
  std::erase_if(changed.earlier, [&](const auto& earlier) { return earlier.token == asked.token; });
  for (EarlierToken& earlier : changed.earlier) earlier.until = unix_now() + earlier.left;
  changed.earlier.insert(changed.earlier.begin(),
                         {changed.token, asked.grace, unix_now() + asked.grace});
  if (changed.earlier.size() > kEarlierMax) changed.earlier.resize(kEarlierMax);
  changed.token = asked.token;
  ++changed.version;
  return changed;
}

void TokenKeeper::change(control::ChangeToken asked, std::chrono::milliseconds timeout,
                         const Nodes& nodes, ControlAnswerer answer) {
  const Tokens held = keyring_.tokens();
  if (held.version > 0 && held.present == asked.token) return answer(ControlAnswer{});  // again
  if (changing_) return answer(unavailable("the token is being changed; try again"));
  auto changed = changed_to(asked);
  if (!changed.ok()) return answer(changed.status());
  const auto head_node = std::find_if(nodes.begin(), nodes.end(),
                                      [](const auto& node) { return node.second.is_head; });
  if (head_node == nodes.end())
    return answer(unavailable("the head's local node has not joined yet; try again"));
  changing_ = true;
  links_.request(head_node->first, ControlRequest{{}, timeout, control::ExpectToken{asked.token}},
                 [this, &nodes, changed = *std::move(changed),
                  answer = std::move(answer)](Result<ControlAnswer> expected) mutable {
                   if (expected.ok()) return record(changed, nodes, std::move(answer));
                   changing_ = false;
                   answer(expected.status().with_context("the token stays as it is"));
                 });
}

// Until then members know the present token alone, however long the disk takes.
void TokenKeeper::record(const TokenState& changed, const Nodes& nodes, ControlAnswerer answer) {
  record_(changed);
  links_.when_recorded(
      [this, &nodes, changed = TokenState(changed), answer = std::move(answer)]() mutable {
        changing_ = false;
        LOG(info, "the cluster's token is changed, for the {}. time", changed.version);
        // The grace time begins now; of those before it has passed meanwhile.
        for (std::size_t i = 1; i < changed.earlier.size(); ++i) set_left(changed.earlier[i]);
        keyring_.change(tokens_of(changed));
        for (const auto& [node, info] : nodes) tell(node);
        answer(ControlAnswer{});
      });
}

void TokenKeeper::tell(NodeId node) {
  const TokenState told = state_of(keyring_.tokens());
  if (!told.token.empty()) links_.event(node, control::TokenChanged{told});
}

}  // namespace runtime
