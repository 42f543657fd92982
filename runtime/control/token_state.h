// The cluster's token and those that it replaced lately, as the head keeps and tells them.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/transport/keyring.h"

namespace runtime {

struct EarlierToken {
  std::string token;
  std::chrono::milliseconds left{0};   // that it counts for, when this was said
  std::chrono::milliseconds until{0};  // the same since the Unix epoch, by the head's clock
  bool operator==(const EarlierToken&) const = default;
};

struct TokenState {
  std::string token;
  std::uint64_t version = 0;  // how often it was changed
  std::vector<EarlierToken> earlier = {};
  bool operator==(const TokenState&) const = default;
};

/// Of one that was just said.
Tokens tokens_of(const TokenState& state);
/// To say it on.
TokenState state_of(const Tokens& tokens);

}  // namespace runtime
