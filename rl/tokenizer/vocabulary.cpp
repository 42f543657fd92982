#include "rl/tokenizer/vocabulary.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace rl {

using runtime::Result;

namespace {

constexpr std::uint64_t kMultiplier = 0x9e3779b97f4a7c15u;

std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  const auto product = static_cast<unsigned __int128>(a ^ kMultiplier) * (b ^ 0xe7037ed1a0b428dbu);
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

}  // namespace

std::uint64_t hash_token(std::string_view token) {
  std::uint64_t hash = token.size() * kMultiplier;
  const char* at = token.data();
  std::size_t left = token.size();
  for (; left >= 8; at += 8, left -= 8) {
    std::uint64_t word;
    std::memcpy(&word, at, 8);
    hash = mix(hash, word);
  }
  std::uint64_t word = 0;
  for (std::size_t i = 0; i < left; ++i)
    word |= static_cast<std::uint64_t>(static_cast<unsigned char>(at[i])) << (8 * i);
  return mix(hash, word);
}

Result<Vocabulary> Vocabulary::make(
    std::span<const std::pair<std::string_view, std::int64_t>> tokens) {
  const auto id_limit = static_cast<std::int64_t>(2 * tokens.size() + (1 << 16));
  std::int64_t largest = -1;
  std::size_t bytes = 0;
  for (const auto& [token, id] : tokens) {
    if (id < 0 || id >= id_limit) {
      return runtime::invalid_argument(
          "token \"" + std::string(token) + "\" has id " + std::to_string(id) +
          ", which does not fit a vocabulary of " + std::to_string(tokens.size()));
    }
    largest = std::max(largest, id);
    bytes += token.size();
  }
  if (bytes > UINT32_MAX) return runtime::invalid_argument("the tokens' text is longer than 4 GiB");
  Vocabulary vocabulary;
  vocabulary.text_.reserve(bytes);
  vocabulary.entries_.resize(static_cast<std::size_t>(largest + 1));
  vocabulary.slots_.resize(std::bit_ceil(tokens.size() * 2 + 1));
  for (const auto& [token, id] : tokens) {
    Entry& entry = vocabulary.entries_[static_cast<std::size_t>(id)];
    if (entry.used) {
      return runtime::invalid_argument(
          "tokens \"" + std::string(vocabulary.token(static_cast<std::int32_t>(id))) + "\" and \"" +
          std::string(token) + "\" have the same id " + std::to_string(id));
    }
    entry = {static_cast<std::uint32_t>(vocabulary.text_.size()),
             static_cast<std::uint32_t>(token.size()), true};
    vocabulary.text_ += token;
    vocabulary.insert(static_cast<std::int32_t>(id));
  }
  return vocabulary;
}

void Vocabulary::insert(std::int32_t id) {
  const auto hash = static_cast<std::uint32_t>(hash_token(token(id)));
  const std::size_t mask = slots_.size() - 1;
  std::size_t at = hash & mask;
  while (slots_[at].id >= 0 && !(slots_[at].hash == hash && token(slots_[at].id) == token(id)))
    at = (at + 1) & mask;
  slots_[at] = {hash, id};
}

std::optional<std::int32_t> Vocabulary::find(std::string_view wanted) const {
  if (slots_.empty()) return std::nullopt;
  const auto hash = static_cast<std::uint32_t>(hash_token(wanted));
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t at = hash & mask; slots_[at].id >= 0; at = (at + 1) & mask) {
    if (slots_[at].hash == hash && token(slots_[at].id) == wanted) return slots_[at].id;
  }
  return std::nullopt;
}

std::string_view Vocabulary::token(std::int32_t id) const {
  if (id < 0 || id >= size()) return {};
  const Entry& entry = entries_[static_cast<std::size_t>(id)];
  return std::string_view(text_).substr(entry.offset, entry.length);
}

}  // namespace rl
