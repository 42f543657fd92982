#include "runtime/head/log_check.h"

#include <array>
#include <cstring>
#include <fstream>
#include <string>

#include "runtime/core/log.h"
#include "runtime/core/rest_of.h"

namespace runtime {

namespace {

// https://www.sqlite.org/fileformat2.html#the_write_ahead_log
constexpr std::size_t kHeaderBytes = 32;
constexpr std::size_t kFrameHeaderBytes = 24;
constexpr std::uint32_t kMagicLittle = 0x377f0682, kMagicBig = 0x377f0683;

std::uint32_t big_endian(std::string_view bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i)
    value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  return value;
}

struct Sum {
  std::uint32_t first = 0, second = 0;
  bool operator==(const Sum&) const = default;

  /// A multiple of 8 bytes.
  void add(std::string_view bytes, bool is_big) {
    for (std::size_t at = 0; at + 8 <= bytes.size(); at += 8) {
      first += word(bytes, at, is_big) + second;
      second += word(bytes, at + 4, is_big) + first;
    }
  }
  static std::uint32_t word(std::string_view bytes, std::size_t at, bool is_big) {
    const std::uint32_t value = big_endian(bytes, at);
    return is_big ? value : __builtin_bswap32(value);
  }
};

}  // namespace

Status check_write_ahead_log(std::string_view log) {
  if (log.size() < kHeaderBytes) return {};
  const std::uint32_t magic = big_endian(log, 0);
  const std::size_t page = big_endian(log, 8);
  // A header that is not whole was written by a crash before the first frame behind it counted.
  if ((magic != kMagicLittle && magic != kMagicBig) || page < 512 || page > 65536 ||
      (page & (page - 1)) != 0)
    return {};
  const bool is_big = magic == kMagicBig;
  Sum sum;
  sum.add(log.substr(0, 24), is_big);
  if (sum != Sum{big_endian(log, 24), big_endian(log, 28)}) return {};
  const std::string_view salts = log.substr(16, 8);
  const std::size_t frame_bytes = kFrameHeaderBytes + page;
  const std::size_t frames = (log.size() - kHeaderBytes) / frame_bytes;
  const auto frame = [&](std::size_t i) {
    return log.substr(kHeaderBytes + i * frame_bytes, frame_bytes);
  };
  const auto is_of_this_log = [&](std::size_t i) { return frame(i).substr(8, 8) == salts; };
  std::size_t wrong = 0;
  for (; wrong < frames; ++wrong) {
    const std::string_view bytes = frame(wrong);
    sum.add(bytes.substr(0, 8), is_big);
    sum.add(bytes.substr(kFrameHeaderBytes), is_big);
    if (!is_of_this_log(wrong) || sum != Sum{big_endian(bytes, 16), big_endian(bytes, 20)}) break;
  }
  // Frames of an earlier log, which this one has not overwritten yet, have other salts.
  bool ended = false;  // a transaction, since the wrong frame
  for (std::size_t i = wrong; i < frames; ++i) {
    if (!is_of_this_log(i)) continue;
    if (ended)
      return Status(ErrorCode::kInvalidArgument,
                    "frame " + std::to_string(wrong) +
                        " of its log is damaged, and more was acknowledged behind it");
    ended = big_endian(frame(i), 4) != 0;
  }
  return {};
}

std::size_t torn_bytes(std::string_view log) {
  if (log.size() < kHeaderBytes) return log.size();
  const std::size_t page = big_endian(log, 8);
  return (log.size() - kHeaderBytes) % (kFrameHeaderBytes + page);
}

Status check_write_ahead_log_of(const std::filesystem::path& database) {
  const std::string path = database.string() + "-wal";
  std::ifstream file(path, std::ios::binary);
  if (!file) return {};
  const std::string bytes = rest_of(file);
  if (file.bad()) return unavailable("journal " + path + " cannot be read");
  if (Status status = check_write_ahead_log(bytes); !status.ok()) {
    return invalid_argument(
        "journal " + path + ": it is damaged (" + status.message() +
        "); put a copy in its place, or start a new cluster with another --journal");
  }
  if (const std::size_t torn = torn_bytes(bytes); torn > 0) {
    LOG(warn,
        "journal {} ends within a record, {} bytes of it. What was being written when it ended is "
        "left out, and more if the file was shortened",
        path, torn);
  }
  return {};
}

}  // namespace runtime
