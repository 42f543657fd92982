#include "runtime/process/cache_folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "runtime/core/environment.h"
#include "runtime/process/private_folder.h"

namespace runtime {

namespace fs = std::filesystem;

namespace {

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

/// Whatever the umask: a group may write to nothing that is made (umask 0002), and jobs of other
/// users on a node of root's get through to their own folders (umask 0077).
Status make_unshared_folders(const fs::path& folder) {
  std::error_code error;
  if (folder.empty() || fs::is_directory(folder, error)) return {};
  if (Status status = make_unshared_folders(folder.parent_path()); !status.ok()) return status;
  const bool is_made = ::mkdir(folder.c_str(), 0755) == 0;
  if (!is_made && errno == EEXIST) return {};
  if (is_made && (::geteuid() != 0 || ::chmod(folder.c_str(), 0711) == 0)) return {};
  return errno_status(errno, "making folder " + folder.string());
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

Status make_cache_folder(const fs::path& folder) {
  if (Status status = make_unshared_folders(folder); !status.ok()) return status;
  return check_unshared_folder(folder).with_context("the cache");
}

}  // namespace runtime
