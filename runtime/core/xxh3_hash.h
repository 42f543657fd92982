// Xxh3Hash: XXH3-128 of bytes that come in pieces. Fast; tells the honest apart, and no more
// (ContentHash is for what others may forge).
#pragma once

#include <cstddef>
#include <memory>
#include <string>

namespace runtime {

class Xxh3Hash {
 public:
  Xxh3Hash();
  ~Xxh3Hash();
  Xxh3Hash(const Xxh3Hash&) = delete;
  Xxh3Hash& operator=(const Xxh3Hash&) = delete;

  void add(const void* bytes, std::size_t count);
  /// Of what was added so far: 32 lower-case hex digits.
  std::string hex() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace runtime
