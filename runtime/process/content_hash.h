// The name of a file by what is in it: BLAKE2b-256, which cannot be made to collide. (Programs that
// drivers register go by XXH3, which is faster and only has to tell the honest apart.)
#pragma once

#include <sodium/crypto_generichash.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "runtime/core/result.h"

namespace runtime {

class ContentHash {
 public:
  ContentHash() { crypto_generichash_init(&state_, nullptr, 0, crypto_generichash_BYTES); }
  void add(std::string_view bytes) {
    crypto_generichash_update(&state_, reinterpret_cast<const unsigned char*>(bytes.data()),
                              bytes.size());
  }
  /// 64 lower-case hex digits. Once.
  std::string finish();

 private:
  crypto_generichash_state state_;
};

bool is_content_hash(const std::string& text);

/// `bytes`, if given: of how many it is the hash. Errors: kNotFound, kInvalidArgument (unreadable).
/// Cost: reads it all, about 1 ms per MB.
Result<std::string> content_hash(const std::filesystem::path& file, std::uint64_t* bytes = nullptr);

}  // namespace runtime
