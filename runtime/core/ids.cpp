#include "runtime/core/ids.h"

#include <algorithm>

#include "runtime/core/random.h"

namespace runtime::ids_detail {

std::string to_hex(const std::array<std::uint8_t, 16>& bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(32);
  for (std::uint8_t byte : bytes) {
    text.push_back(kDigits[byte >> 4]);
    text.push_back(kDigits[byte & 15]);
  }
  return text;
}

std::array<std::uint8_t, 16> random_bytes() {
  std::array<std::uint8_t, 16> bytes;
  fill_random(std::as_writable_bytes(std::span(bytes)));
  return bytes;
}

Result<std::array<std::uint8_t, 16>> parse_hex(std::string_view text) {
  if (text.size() != 32)
    return invalid_argument("id '" + std::string(text) + "': expected 32 hex digits");
  std::array<std::uint8_t, 16> bytes{};
  for (std::size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    int digit = c >= '0' && c <= '9'   ? c - '0'
                : c >= 'a' && c <= 'f' ? c - 'a' + 10
                : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                       : -1;
    if (digit < 0)
      return invalid_argument("id '" + std::string(text) + "': expected 32 hex digits");
    bytes[i / 2] = static_cast<std::uint8_t>(bytes[i / 2] << 4 | digit);
  }
  return bytes;
}

Result<std::array<std::uint8_t, 16>> copy_raw(std::span<const std::uint8_t> raw) {
  std::array<std::uint8_t, 16> bytes{};
  if (raw.size() != bytes.size())
    return invalid_argument("id of " + std::to_string(raw.size()) + " bytes: expected 16");
  std::copy(raw.begin(), raw.end(), bytes.begin());
  return bytes;
}

}  // namespace runtime::ids_detail
