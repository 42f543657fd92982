#include "runtime/transport/token_key.h"

#include <sodium/utils.h>

#include <array>

namespace runtime {

namespace {

constexpr std::string_view kSubmitterPrefix = "submit-";
constexpr std::string_view kSubmitterLabel = "starling submitters";

std::string key_hex(const SymmetricKey& key) {
  std::array<char, 2 * sizeof key + 1> text;
  sodium_bin2hex(text.data(), text.size(), reinterpret_cast<const unsigned char*>(key.data()),
                 key.size());
  return text.data();
}

/// As key_hex() writes it: lower case alone.
std::optional<SymmetricKey> parse_key_hex(std::string_view text) {
  SymmetricKey key;
  std::size_t bytes = 0;
  const char* end = nullptr;
  if (sodium_hex2bin(reinterpret_cast<unsigned char*>(key.data()), key.size(), text.data(),
                     text.size(), nullptr, &bytes, &end) != 0 ||
      bytes != key.size() || key_hex(key) != text)
    return std::nullopt;
  return key;
}

SymmetricKey submitters_key(std::string_view cluster_token) {
  return derive_key(key_of_token(cluster_token), kSubmitterLabel);
}

}  // namespace

KeyId submitter_key_id() {
  KeyId id;
  id.bytes.back() = 1;
  return id;
}

std::string submitter_token(std::string_view cluster_token) {
  return std::string(kSubmitterPrefix) + key_hex(submitters_key(cluster_token));
}

TokenKey key_of_caller(std::string_view token) {
  if (token.starts_with(kSubmitterPrefix)) {
    if (auto key = parse_key_hex(token.substr(kSubmitterPrefix.size())))
      return {submitter_key_id(), *key};
  }
  return {{}, key_of_token(token)};
}

bool is_known_key(const KeyId& id) { return id.is_none() || id == submitter_key_id(); }

std::optional<SymmetricKey> expected_key(std::string_view cluster_token, const KeyId& id) {
  if (id.is_none()) return key_of_token(cluster_token);
  if (id == submitter_key_id()) return submitters_key(cluster_token);
  return std::nullopt;
}

}  // namespace runtime
