#include "runtime/process/cache_folder.h"

#include <unistd.h>

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
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return errno_status(error.value(), "making folder " + folder.string());
  return check_unshared_folder(folder).with_context("the cache");
}

}  // namespace runtime
