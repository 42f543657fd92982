// The check for damage in the journal's write-ahead log, on any bytes, and on a log's own header
// before them.
#include "runtime/head/log_check.h"

#include <cstdint>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  (void)runtime::check_write_ahead_log(bytes);
  // Magic, format, pages of 512 bytes, sequence, salts, and the sum over that: what follows is read
  // as frames.
  static constexpr unsigned char kHeader[32] = {0x37, 0x7f, 0x06, 0x82, 0, 0x2d,
                                                0xe2, 0x18, 0,    0,    2, 0};
  std::string log(reinterpret_cast<const char*>(kHeader), sizeof kHeader);
  std::uint32_t first = 0, second = 0;
  for (int at = 0; at < 24; at += 8) {
    const auto word = [&](int i) {
      return static_cast<std::uint32_t>(kHeader[i] | kHeader[i + 1] << 8 | kHeader[i + 2] << 16) |
             static_cast<std::uint32_t>(kHeader[i + 3]) << 24;
    };
    first += word(at) + second;
    second += word(at + 4) + first;
  }
  for (int i = 0; i < 4; ++i) {
    log[static_cast<std::size_t>(24 + i)] = static_cast<char>(first >> (24 - 8 * i));
    log[static_cast<std::size_t>(28 + i)] = static_cast<char>(second >> (24 - 8 * i));
  }
  (void)runtime::check_write_ahead_log(log + bytes);
  return 0;
}
