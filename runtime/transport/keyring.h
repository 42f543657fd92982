// Keyring: the cluster's token as a process knows it, while it may be changed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/timer.h"

namespace runtime {

/// A token that counts next to the present one.
struct AlsoToken {
  std::string token;
  Deadline until = Deadline::max();
  bool operator==(const AlsoToken&) const = default;
};

/// What a Keyring holds.
struct Tokens {
  std::string present;        // any bytes: what callers prove first
  std::uint64_t version = 0;  // how often the cluster's token was changed
  std::vector<AlsoToken> also = {};
  bool operator==(const Tokens&) const = default;
};

/// A handle: copies of it hold the same tokens, so that every holder learns of a change. To
/// assign a text makes a new one. Any thread.
class Keyring {
 public:
  Keyring() : Keyring(std::string()) {}
  Keyring(std::string token);  // NOLINT: a token that never changes is a keyring
  Keyring(const char* token) : Keyring(std::string(token)) {}  // NOLINT: the same

  std::string present() const;
  /// All that count now, the present one first.
  std::vector<std::string> accepted() const;
  /// Without those that count no more.
  Tokens tokens() const;
  bool empty() const { return present().empty(); }

  /// In place of all that it held.
  void change(Tokens tokens);
  /// Counts from now on, until the next change.
  void expect(std::string token);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace runtime
