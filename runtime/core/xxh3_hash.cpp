#include "runtime/core/xxh3_hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstdio>

namespace runtime {

struct Xxh3Hash::State {
  XXH3_state_t xxh3;  // aligned to 64 bytes, which new heeds
};

Xxh3Hash::Xxh3Hash() : state_(std::make_unique<State>()) { XXH3_128bits_reset(&state_->xxh3); }
Xxh3Hash::~Xxh3Hash() = default;

void Xxh3Hash::add(const void* bytes, std::size_t count) {
  XXH3_128bits_update(&state_->xxh3, bytes, count);
}

std::string Xxh3Hash::hex() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(&state_->xxh3);
  char text[33];
  std::snprintf(text, sizeof text, "%016llx%016llx", static_cast<unsigned long long>(hash.high64),
                static_cast<unsigned long long>(hash.low64));
  return text;
}

}  // namespace runtime
