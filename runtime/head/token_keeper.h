// TokenKeeper: the head's knowledge of the cluster's token, and the rules of changing it.
#pragma once

#include <chrono>
#include <functional>
#include <map>

#include "runtime/control/control.h"
#include "runtime/control/token_state.h"
#include "runtime/core/result.h"
#include "runtime/core/timer.h"
#include "runtime/head/head_links.h"
#include "runtime/transport/keyring.h"

namespace runtime {

/// A replaced token counts for at least this long: the change takes a moment to be known
/// everywhere.
inline constexpr std::chrono::milliseconds kTokenGraceMin{5'000};
inline constexpr std::chrono::milliseconds kTokenGraceMax = std::chrono::hours(24);

/// What it knows is what callers prove to the head: its keyring follows.
class TokenKeeper {
 public:
  using Nodes = std::map<NodeId, NodeInfo>;

  /// With the token that the head was started with. `record` commits a change.
  TokenKeeper(Keyring keyring, HeadLinks& links, std::function<void(const TokenState&)> record)
      : keyring_(std::move(keyring)), links_(links), record_(std::move(record)) {}
  TokenKeeper(const TokenKeeper&) = delete;
  TokenKeeper& operator=(const TokenKeeper&) = delete;

  /// What an earlier head had recorded. Tokens that were replaced count for what is left of their
  /// time. However the clock was set meanwhile, that is never longer than they were given.
  void restore(const TokenState& recorded);
  /// First the node of the head writes the new token down, so that a start after any crash has it.
  /// Then the change is recorded, and only then it happens and all nodes are told. `nodes`: the
  /// members, which outlive this.
  void change(control::ChangeToken asked, std::chrono::milliseconds timeout, const Nodes& nodes,
              ControlAnswerer answer);
  /// One that has joined, or come back.
  void tell(NodeId node);

 private:
  void record(const TokenState& changed, const Nodes& nodes, ControlAnswerer answer);
  /// Errors: kInvalidArgument (not a cluster's token, easy to guess, a grace time out of range).
  Result<TokenState> changed_to(const control::ChangeToken& asked) const;

  Keyring keyring_;
  HeadLinks& links_;
  const std::function<void(const TokenState&)> record_;
  bool changing_ = false;
};

}  // namespace runtime
