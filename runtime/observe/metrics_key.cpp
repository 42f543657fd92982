#include "runtime/observe/metrics_key.h"

#include <sodium.h>

#include <array>
#include <string_view>

namespace runtime {

std::string metrics_key(const std::string& token) {
  constexpr std::string_view kLabel = "starling metrics";
  crypto_auth_hmacsha256_state state;
  crypto_auth_hmacsha256_init(&state, reinterpret_cast<const unsigned char*>(token.data()),
                              token.size());
  crypto_auth_hmacsha256_update(&state, reinterpret_cast<const unsigned char*>(kLabel.data()),
                                kLabel.size());
  std::array<unsigned char, crypto_auth_hmacsha256_BYTES> raw{};
  crypto_auth_hmacsha256_final(&state, raw.data());
  std::array<char, 2 * crypto_auth_hmacsha256_BYTES + 1> hex{};
  sodium_bin2hex(hex.data(), hex.size(), raw.data(), raw.size());
  return hex.data();
}

}  // namespace runtime
