#include "rl/weights/zip_directory.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace rl {
namespace {

using runtime::Result;
using runtime::Status;

// Records and their fixed parts; APPNOTE.TXT 6.3, sections 4.3.7 to 4.3.16.
constexpr std::uint32_t kLocalMagic = 0x04034b50;
constexpr std::uint32_t kEntryMagic = 0x02014b50;
constexpr std::uint32_t kEndMagic = 0x06054b50;
constexpr std::uint32_t kEnd64Magic = 0x06064b50;
constexpr std::uint32_t kLocator64Magic = 0x07064b50;
constexpr std::size_t kLocalBytes = 30;
constexpr std::size_t kEntryBytes = 46;
constexpr std::size_t kEndBytes = 22;
constexpr std::size_t kEnd64Bytes = 56;
constexpr std::size_t kLocator64Bytes = 20;
constexpr std::size_t kCommentBytesMax = 0xffff;
constexpr std::uint16_t kZip64Extra = 1;

template <class T>
T number_at(std::span<const std::byte> bytes, std::size_t at) {
  static_assert(std::endian::native == std::endian::little);
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

std::string_view text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Where the directory lies.
struct End {
  std::uint64_t entries = 0;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

struct Entry {
  std::string_view name;
  std::uint64_t bytes = 0;
  std::uint64_t stored_bytes = 0;
  std::uint64_t header = 0;  // offset of its local header
};

class Reader {
 public:
  Reader(std::span<const std::byte> archive, std::string_view name)
      : archive_(archive), name_(name) {}

  Result<ZipDirectory> read() {
    Result<End> end = find_end();
    if (!end.ok()) return end.status();
    if (end->offset > archive_.size() || end->bytes > archive_.size() - end->offset)
      return damaged("its directory goes beyond the end");
    if (end->entries > end->bytes / kEntryBytes)
      return damaged("its directory is too short for " + std::to_string(end->entries) + " files");
    std::span<const std::byte> rest = archive_.subspan(end->offset, end->bytes);
    ZipDirectory directory;
    std::vector<std::pair<std::uint64_t, std::uint64_t>>
        ranges;  // of local headers and the files behind them
    for (std::uint64_t i = 0; i < end->entries; ++i) {
      Entry entry;
      if (Status status = read_entry(rest, entry); !status.ok()) return status;
      Result<std::span<const std::byte>> bytes = locate(entry, end->offset);
      if (!bytes.ok()) return bytes.status();
      if (!directory.emplace(entry.name, *bytes).second)
        return damaged("file " + std::string(entry.name) + " is there twice");
      ranges.emplace_back(
          entry.header,
          static_cast<std::uint64_t>(bytes->data() - archive_.data()) + bytes->size());
    }
    std::sort(ranges.begin(), ranges.end());
    for (std::size_t i = 1; i < ranges.size(); ++i) {
      if (ranges[i].first < ranges[i - 1].second) return damaged("two of its files overlap");
    }
    return directory;
  }

 private:
  Status damaged(const std::string& why) const {
    return runtime::invalid_argument(std::string(name_) + ": " + why + "; fetch the file again");
  }
  Status unsupported(const std::string& why) const {
    return runtime::unimplemented(
        std::string(name_) + ": " + why +
        ", which torch.save never does; load it with torch and save it again");
  }

  // The end record is the last thing but for a comment, whose length it gives.
  Result<End> find_end() const {
    if (archive_.size() < kEndBytes) return damaged("too short for a zip archive");
    const std::size_t last = archive_.size() - kEndBytes;
    const std::size_t first = last > kCommentBytesMax ? last - kCommentBytesMax : 0;
    for (std::size_t at = last + 1; at-- > first;) {
      if (number_at<std::uint32_t>(archive_, at) != kEndMagic) continue;
      if (number_at<std::uint16_t>(archive_, at + 20) != last - at) continue;
      return read_end(at);
    }
    return damaged("a zip archive without an end; the file is truncated");
  }

  Result<End> read_end(std::size_t at) const {
    End end{.entries = number_at<std::uint16_t>(archive_, at + 10),
            .offset = number_at<std::uint32_t>(archive_, at + 16),
            .bytes = number_at<std::uint32_t>(archive_, at + 12)};
    const bool zip64 = at >= kLocator64Bytes &&
                       number_at<std::uint32_t>(archive_, at - kLocator64Bytes) == kLocator64Magic;
    if (!zip64) {
      if (number_at<std::uint16_t>(archive_, at + 4) != 0)
        return unsupported("a part of a split archive");
      return end;
    }
    const auto at64 = number_at<std::uint64_t>(archive_, at - kLocator64Bytes + 8);
    if (at64 > at - kLocator64Bytes || at - kLocator64Bytes - at64 < kEnd64Bytes ||
        number_at<std::uint32_t>(archive_, at64) != kEnd64Magic) {
      return damaged("its zip64 end is not where its locator says");
    }
    end.entries = number_at<std::uint64_t>(archive_, at64 + 32);
    end.bytes = number_at<std::uint64_t>(archive_, at64 + 40);
    end.offset = number_at<std::uint64_t>(archive_, at64 + 48);
    return end;
  }

  // Takes one entry off the front of the directory.
  Status read_entry(std::span<const std::byte>& rest, Entry& entry) const {
    if (rest.size() < kEntryBytes || number_at<std::uint32_t>(rest, 0) != kEntryMagic)
      return damaged("its directory ends before its last file");
    const std::size_t name_bytes = number_at<std::uint16_t>(rest, 28);
    const std::size_t extra_bytes = number_at<std::uint16_t>(rest, 30);
    const std::size_t comment_bytes = number_at<std::uint16_t>(rest, 32);
    if (rest.size() - kEntryBytes < name_bytes + extra_bytes + comment_bytes)
      return damaged("its directory ends before its last file");
    entry = {.name = text(rest.subspan(kEntryBytes, name_bytes)),
             .bytes = number_at<std::uint32_t>(rest, 24),
             .stored_bytes = number_at<std::uint32_t>(rest, 20),
             .header = number_at<std::uint32_t>(rest, 42)};
    const std::string what = "file " + std::string(entry.name);
    if ((number_at<std::uint16_t>(rest, 8) & 1) != 0) return unsupported(what + " is encrypted");
    if (number_at<std::uint16_t>(rest, 10) != 0) return unsupported(what + " is compressed");
    if (!apply_zip64(rest.subspan(kEntryBytes + name_bytes, extra_bytes), entry))
      return damaged(what + " lacks its 64-bit sizes");
    if (entry.stored_bytes != entry.bytes) return damaged(what + " has two sizes");
    rest = rest.subspan(kEntryBytes + name_bytes + extra_bytes + comment_bytes);
    return {};
  }

  // Numbers that do not fit in 32 bits stand in the zip64 field, in this order and only those.
  static bool apply_zip64(std::span<const std::byte> extra, Entry& entry) {
    constexpr std::uint64_t kElsewhere = 0xffffffff;
    std::vector<std::uint64_t*> wanted;
    for (std::uint64_t* value : {&entry.bytes, &entry.stored_bytes, &entry.header}) {
      if (*value == kElsewhere) wanted.push_back(value);
    }
    if (wanted.empty()) return true;
    while (extra.size() >= 4) {
      const auto id = number_at<std::uint16_t>(extra, 0);
      const std::size_t bytes = number_at<std::uint16_t>(extra, 2);
      if (bytes > extra.size() - 4) return false;
      if (id == kZip64Extra) {
        if (bytes < wanted.size() * 8) return false;
        for (std::size_t i = 0; i < wanted.size(); ++i)
          *wanted[i] = number_at<std::uint64_t>(extra, 4 + i * 8);
        return true;
      }
      extra = extra.subspan(4 + bytes);
    }
    return false;
  }

  // The file's bytes, behind its local header and before the directory.
  Result<std::span<const std::byte>> locate(const Entry& entry,
                                            std::uint64_t directory_offset) const {
    const std::string what = "file " + std::string(entry.name);
    if (entry.header > directory_offset || directory_offset - entry.header < kLocalBytes)
      return damaged(what + " goes beyond the end");
    const auto header = archive_.subspan(entry.header, directory_offset - entry.header);
    const std::size_t name_bytes = number_at<std::uint16_t>(header, 26);
    const std::size_t extra_bytes = number_at<std::uint16_t>(header, 28);
    if (number_at<std::uint32_t>(header, 0) != kLocalMagic)
      return damaged(what + " is not where the directory says");
    if (header.size() - kLocalBytes < name_bytes + extra_bytes)
      return damaged(what + " goes beyond the end");
    if (text(header.subspan(kLocalBytes, name_bytes)) != entry.name)
      return damaged(what + " has another name at its place");
    const auto bytes = header.subspan(kLocalBytes + name_bytes + extra_bytes);
    if (entry.bytes > bytes.size())
      return damaged(what + " says it has " + std::to_string(entry.bytes) +
                     " bytes, more than are there");
    return bytes.first(entry.bytes);
  }

  std::span<const std::byte> archive_;
  std::string_view name_;
};

}  // namespace

Result<ZipDirectory> read_zip_directory(std::span<const std::byte> archive, std::string_view name) {
  return Reader(archive, name).read();
}

}  // namespace rl
