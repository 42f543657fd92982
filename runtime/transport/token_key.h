// What a token's holder may do, and the key that proves it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "runtime/core/ids.h"
#include "runtime/transport/noise.h"

namespace runtime {

/// Which key proves a caller; none: the cluster's token.
using KeyId = Id<struct KeyTag>;

/// Of callers that may submit jobs and look at them, nothing else.
KeyId submitter_key_id();

/// A token from which the cluster's cannot be told, for users whose jobs are to run as themselves:
/// "submit-" and 64 hex digits. A cluster's token has one.
std::string submitter_token(std::string_view cluster_token);

struct TokenKey {
  KeyId id;
  SymmetricKey key;
};
/// How a caller with this token proves itself. A text that only looks like a submitter's token is a
/// cluster's.
TokenKey key_of_caller(std::string_view token);
/// The key that such a caller has, if this is the cluster's token. Nothing: this release knows no
/// such key.
std::optional<SymmetricKey> expected_key(std::string_view cluster_token, const KeyId& id);

}  // namespace runtime
