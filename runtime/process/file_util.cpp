#include "runtime/process/file_util.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "runtime/core/ids.h"
#include "runtime/core/sync_folder.h"
#include "runtime/transport/file_descriptor.h"

namespace runtime {

namespace fs = std::filesystem;

Result<std::string> read_file(const fs::path& file, std::size_t bytes_max) {
  FileDescriptor fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return errno_status(errno, file.string());
  std::string content;
  char block[16384];
  while (true) {
    ssize_t got = ::read(fd.get(), block, sizeof block);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno_status(errno, file.string());
    if (got == 0) return content;
    content.append(block, static_cast<std::size_t>(got));
    if (content.size() > bytes_max) {
      return invalid_argument(file.string() + " is larger than " + std::to_string(bytes_max) +
                              " bytes");
    }
  }
}

Status read_blocks(const fs::path& file, const std::function<void(std::string_view)>& take) {
  FileDescriptor fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return errno_status(errno, file.string());
  std::vector<char> block(1 << 20);
  while (true) {
    const ssize_t got = ::read(fd.get(), block.data(), block.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno_status(errno, file.string());
    if (got == 0) return {};
    take(std::string_view(block.data(), static_cast<std::size_t>(got)));
  }
}

std::vector<FolderFile> files_in(const fs::path& folder, int depth) {
  const auto nanoseconds = [](const timespec& time) {
    return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
  };
  std::vector<FolderFile> files;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    struct stat info {};
    if (::lstat(at->path().c_str(), &info) != 0) continue;
    if (S_ISDIR(info.st_mode) && depth > 1) {
      for (FolderFile& file : files_in(at->path(), depth - 1)) files.push_back(std::move(file));
    } else if (S_ISREG(info.st_mode)) {
      const std::int64_t written = nanoseconds(info.st_mtim);
      files.push_back({at->path(), static_cast<std::uint64_t>(info.st_size), written,
                       std::max(written, nanoseconds(info.st_atim))});
    }
  }
  return files;
}

namespace {

Status replace_file(const fs::path& file, std::string_view content, unsigned mode, bool durably) {
  fs::path temporary = file;
  temporary += "." + JobId::random().short_hex() + ".tmp";
  FileDescriptor fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
  if (!fd) return errno_status(errno, "writing " + temporary.string());
  while (!content.empty()) {
    ssize_t put = ::write(fd.get(), content.data(), content.size());
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) {
      Status status = errno_status(put < 0 ? errno : ENOSPC, "writing " + temporary.string());
      ::unlink(temporary.c_str());
      return status;
    }
    content.remove_prefix(static_cast<std::size_t>(put));
  }
  if ((durably && ::fdatasync(fd.get()) != 0) || ::rename(temporary.c_str(), file.c_str()) != 0) {
    Status status = errno_status(errno, "replacing " + file.string());
    ::unlink(temporary.c_str());
    return status;
  }
  if (!durably) return {};
  const std::error_code error = sync_folder(file.parent_path());
  return error ? errno_status(error.value(), "writing " + file.parent_path().string()) : Status();
}

}  // namespace

Status write_file_atomic(const fs::path& file, std::string_view content, unsigned mode) {
  return replace_file(file, content, mode, false);
}

Status write_file_durably(const fs::path& file, std::string_view content, unsigned mode) {
  return replace_file(file, content, mode, true);
}

}  // namespace runtime
