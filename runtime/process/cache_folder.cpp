#include "runtime/process/cache_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <string_view>

#include "runtime/core/environment.h"
#include "runtime/process/private_folder.h"
#include "runtime/transport/file_descriptor.h"

namespace runtime {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kCacheMarkBytesMax = 4096;
constexpr std::string_view kCacheMarkText =
    "Starling keeps here what it can have again, and removes it when room is wanted.\n";

Result<fs::path> cache_place() {
  const auto variable = [](const char* name) {
    const char* value = environment_variable(name);
    return std::string(value ? value : "");
  };
  if (const std::string cache = variable("STARLING_CACHE"); !cache.empty()) return fs::path(cache);
  if (::geteuid() == 0) return fs::path("/var/lib/starling");
  if (const std::string cache = variable("XDG_CACHE_HOME"); !cache.empty())
    return fs::path(cache) / "starling";
  const auto home = home_folder("STARLING_CACHE");
  if (!home.ok()) return home.status();
  return *home / ".cache" / "starling";
}

/// The umask does not matter. With 0002, a group may still write to nothing that is made. With
/// 0077, jobs of other users on a node of root's still get through to their own folders.
Status make_unshared_folders(const fs::path& folder) {
  std::error_code error;
  if (folder.empty() || fs::is_directory(folder, error)) return {};
  if (Status status = make_unshared_folders(folder.parent_path()); !status.ok()) return status;
  const bool is_made = ::mkdir(folder.c_str(), 0755) == 0;
  if (!is_made && errno == EEXIST) return {};
  if (is_made && (::geteuid() != 0 || ::chmod(folder.c_str(), 0711) == 0)) return {};
  return errno_status(errno, "making folder " + folder.string());
}

bool has_cache_mark(const fs::path& folder) {
  return read_private_file(folder / kCacheMark, kCacheMarkBytesMax).ok();
}

/// In place at once: another node may look into the folder now.
Status write_cache_mark(const fs::path& folder) {
  const fs::path mark = folder / kCacheMark;
  const FileDescriptor file(
      ::open(mark.c_str(), O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file) return errno_status(errno, "writing " + mark.string());
  (void)!::write(file.get(), kCacheMarkText.data(), kCacheMarkText.size());  // for who reads it
  return {};
}

}  // namespace

Result<fs::path> cache_folder() {
  auto cache = cache_place();
  if (!cache.ok()) return cache;
  const Status status = check_unshared_folder(*cache);
  if (!status.ok() && status.code() != ErrorCode::kNotFound)
    return status.with_context("the cache");
  return cache;
}

Status make_folder_in_cache(const fs::path& folder) {
  if (Status status = make_unshared_folders(folder); !status.ok()) return status;
  return check_unshared_folder(folder).with_context("the cache");
}

Status check_cache_folder(const fs::path& folder) {
  if (Status status = check_unshared_folder(folder); !status.ok())
    return status.with_context("the cache");
  if (has_cache_mark(folder)) return {};
  std::error_code error;
  const bool is_empty = fs::is_empty(folder, error);
  if (error) return errno_status(error.value(), "the cache: " + folder.string());
  if (has_cache_mark(folder)) return {};  // by another node, meanwhile
  if (is_empty) return not_found(folder.string() + " has no mark of a cache yet");
  return invalid_argument("the cache: " + folder.string() +
                          " is not empty, and Starling has not made it (it has no " + kCacheMark +
                          "): nothing in it is used or removed; move it away, or set "
                          "STARLING_CACHE to another folder");
}

Status make_cache_folder(const fs::path& folder) {
  if (Status status = make_folder_in_cache(folder); !status.ok()) return status;
  const Status status = check_cache_folder(folder);
  return status.code() == ErrorCode::kNotFound ? write_cache_mark(folder) : status;
}

}  // namespace runtime
