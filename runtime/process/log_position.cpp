#include "runtime/process/log_position.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <string>

#include "runtime/core/log.h"
#include "runtime/process/file_util.h"
#include "runtime/transport/file_descriptor.h"

namespace runtime {

namespace fs = std::filesystem;

namespace {

constexpr const char* kPositionSuffix = ".begin";

fs::path with(fs::path path, const char* suffix) { return path += suffix; }

struct File {
  std::uint64_t identity = 0;
  std::uint64_t bytes = 0;
};

File look_at(const fs::path& path) {
  FileDescriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  struct stat info;
  if (!fd || ::fstat(fd.get(), &info) != 0) return {};
  return {log_file_identity(fd.get()), static_cast<std::uint64_t>(info.st_size)};
}

}  // namespace

std::uint64_t log_file_identity(int fd) {
  struct statx info {};
  if (::statx(fd, "", AT_EMPTY_PATH, STATX_INO | STATX_BTIME, &info) != 0) return 0;
  std::uint64_t identity = info.stx_ino;
  if ((info.stx_mask & STATX_BTIME) != 0)
    identity ^=
        static_cast<std::uint64_t>(info.stx_btime.tv_sec) * 1'000'000'000 + info.stx_btime.tv_nsec;
  return std::max<std::uint64_t>(identity, 1);
}

std::optional<LogPosition> read_log_position(const fs::path& log) {
  const auto text = read_file(with(log, kPositionSuffix), 100);
  unsigned long long before = 0, file = 0;
  if (!text.ok() || std::sscanf(text->c_str(), "%llu %llu", &before, &file) != 2)
    return std::nullopt;
  return LogPosition{before, file};
}

void note_rotation(const fs::path& log) {
  const File now = look_at(log), old = look_at(with(log, ".1"));
  if (now.identity == 0 || old.identity == 0) return;
  const auto known = read_log_position(log);
  if (known && known->file == now.identity) return;
  const std::uint64_t old_began = known && known->file == old.identity ? known->bytes_before : 0;
  const std::string text =
      std::to_string(old_began + old.bytes) + " " + std::to_string(now.identity) + "\n";
  if (Status status = write_file_atomic(with(log, kPositionSuffix), text, 0600); !status.ok())
    LOG(warn, "{}", status.message());
}

fs::path log_of_position(const fs::path& file) {
  return file.extension() == kPositionSuffix ? file.parent_path() / file.stem() : fs::path();
}

}  // namespace runtime
