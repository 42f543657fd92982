// Kinds of tokens, and the pre-shared keys derived from them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "runtime/core/ids.h"
#include "runtime/transport/noise.h"

namespace runtime {

/// Names the key that a caller proves; none: the cluster's token.
using KeyId = Id<struct KeyTag>;

/// The key of callers that may only submit jobs and query them.
KeyId submitter_key_id();

/// The token for users whose jobs run under their own accounts: "submit-" and 64 hex digits,
/// derived one way from the cluster's token.
std::string submitter_token(std::string_view cluster_token);

struct TokenKey {
  KeyId id;
  SymmetricKey key;
};
/// The key that a caller with this token proves. A text that only resembles a submitter's token is
/// a cluster's.
TokenKey key_of_caller(std::string_view token);
bool is_known_key(const KeyId& id);
/// The key that a caller naming `id` must prove. Nothing: this release does not know that kind.
std::optional<SymmetricKey> expected_key(std::string_view cluster_token, const KeyId& id);

}  // namespace runtime
