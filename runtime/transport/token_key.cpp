#include "runtime/transport/token_key.h"

#include <cstdlib>

namespace runtime {

namespace {

constexpr std::string_view kSubmitterPrefix = "submit-";
constexpr std::string_view kSubmitterLabel = "starling submitters";

std::string key_hex(const SymmetricKey& key) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const std::byte b : key) {
    text += kDigits[std::to_integer<unsigned>(b) >> 4];
    text += kDigits[std::to_integer<unsigned>(b) & 15];
  }
  return text;
}

std::optional<SymmetricKey> parse_key_hex(std::string_view text) {
  SymmetricKey key;
  if (text.size() != 2 * key.size()) return std::nullopt;
  const auto digit = [](char c) -> int {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return -1;
  };
  for (std::size_t i = 0; i < key.size(); ++i) {
    const int high = digit(text[2 * i]), low = digit(text[2 * i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    key[i] = static_cast<std::byte>(16 * high + low);
  }
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

std::optional<SymmetricKey> expected_key(std::string_view cluster_token, const KeyId& id) {
  if (id.is_none()) return key_of_token(cluster_token);
  if (id == submitter_key_id()) return submitters_key(cluster_token);
  return std::nullopt;
}

}  // namespace runtime
