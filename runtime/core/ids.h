// 128-bit ids. An id names something and keeps nothing alive; compare it, print it, hash it.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "runtime/core/result.h"

namespace runtime {

/// A plain 128-bit value; `Tag` gives each kind of id its own type. All zero means "none".
template <class Tag>
struct Id {
  std::array<std::uint8_t, 16> bytes{};

  bool is_none() const { return *this == Id{}; }
  auto operator<=>(const Id&) const = default;

  /// 32 lower-case hex digits.
  std::string hex() const;
  /// The first 8 digits, for messages.
  std::string short_hex() const { return hex().substr(0, 8); }

  /// A new, unpredictable id from the kernel's random source.
  static Id random();
  /// Errors: kInvalidArgument unless exactly 16 bytes.
  static Result<Id> from_bytes(std::span<const std::uint8_t> raw);
  /// Errors: kInvalidArgument unless exactly 32 hex digits.
  static Result<Id> from_hex(std::string_view text);
};

using ActorId = Id<struct ActorTag>;
using NodeId = Id<struct NodeTag>;
using ObjectId = Id<struct ObjectTag>;
using WorkerId = Id<struct WorkerTag>;
using JobId = Id<struct JobTag>;
using GroupId = Id<struct GroupTag>;  // of a placement group
using ClusterId = Id<struct ClusterTag>;
using RequestId = Id<struct RequestTag>;  // of a control request that must not run twice

namespace ids_detail {
std::string to_hex(const std::array<std::uint8_t, 16>& bytes);
std::array<std::uint8_t, 16> random_bytes();
Result<std::array<std::uint8_t, 16>> parse_hex(std::string_view text);
Result<std::array<std::uint8_t, 16>> copy_raw(std::span<const std::uint8_t> raw);
}  // namespace ids_detail

template <class Tag>
std::string Id<Tag>::hex() const {
  return ids_detail::to_hex(bytes);
}

template <class Tag>
Id<Tag> Id<Tag>::random() {
  return Id{ids_detail::random_bytes()};
}

template <class Tag>
Result<Id<Tag>> Id<Tag>::from_bytes(std::span<const std::uint8_t> raw) {
  auto copied = ids_detail::copy_raw(raw);
  if (!copied.ok()) return copied.status();
  return Id{*copied};
}

template <class Tag>
Result<Id<Tag>> Id<Tag>::from_hex(std::string_view text) {
  auto parsed = ids_detail::parse_hex(text);
  if (!parsed.ok()) return parsed.status();
  return Id{*parsed};
}

}  // namespace runtime

template <class Tag>
struct std::hash<runtime::Id<Tag>> {
  std::size_t operator()(const runtime::Id<Tag>& id) const noexcept {
    std::uint64_t halves[2];
    std::memcpy(halves, id.bytes.data(), sizeof halves);
    return static_cast<std::size_t>(halves[0] ^ (halves[1] * 0x9E3779B97F4A7C15ull));
  }
};
