#include "runtime/node/node_token.h"

#include <utility>

#include "runtime/control/control_channel.h"
#include "runtime/core/log.h"

namespace runtime {

NodeToken::NodeToken(std::string token, const std::string& next, Keep keep)
    : keyring_(std::move(token)), keep_(std::move(keep)) {
  if (!next.empty()) keyring_.expect(next);
}

Status NodeToken::expect(const std::string& token) {
  Status kept = keep_ ? keep_(token, false) : Status();
  if (kept.ok()) keyring_.expect(token);
  return kept;
}

void NodeToken::change(const control::TokenChanged& changed) {
  const bool is_new = changed.state.token != keyring_.present();
  keyring_.change(tokens_of(changed.state));
  if (keep_) {
    if (Status kept = keep_(changed.state.token, true); !kept.ok())
      LOG(error, "the cluster's new token: {}", kept.message());
  }
  if (is_new) LOG(info, "the cluster has another token");
}

void NodeToken::tell(Channel& channel) const {
  const Tokens tokens = keyring_.tokens();
  // Nodes hear of it from the head; submitters have their own token.
  if (tokens.version == 0 || channel.peer().role == Role::kNode || channel.peer().is_submitter)
    return;
  send_event(channel, control::TokenChanged{state_of(tokens)});
}

}  // namespace runtime
