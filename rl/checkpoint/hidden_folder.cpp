#include "rl/checkpoint/hidden_folder.h"

#include <sys/stat.h>

#include <cerrno>
#include <string>
#include <string_view>
#include <utility>

#include "runtime/core/ids.h"

namespace rl {
namespace {

namespace fs = std::filesystem;
using runtime::ErrorCode;
using runtime::FileLock;
using runtime::Result;

constexpr std::string_view kHiddenPrefix = ".global_step_";
constexpr std::string_view kHiddenSuffix = ".tmp";
constexpr const char* kWriterLock = "writer.lock";
constexpr std::size_t kIdDigits = 8;
// Each time another run took the new folder for a dead one's, between its making and its lock.
constexpr int kMakeTries = 100;

bool consists_of(std::string_view text, const char* characters) {
  return !text.empty() && text.find_first_not_of(characters) == std::string_view::npos;
}

bool is_hidden_name(std::string_view name) {
  if (!name.starts_with(kHiddenPrefix) || !name.ends_with(kHiddenSuffix)) return false;
  name.remove_prefix(kHiddenPrefix.size());
  name.remove_suffix(kHiddenSuffix.size());
  const std::size_t dot = name.find('.');
  return dot != std::string_view::npos && consists_of(name.substr(0, dot), "0123456789") &&
         name.size() - dot - 1 == kIdDigits &&
         consists_of(name.substr(dot + 1), "0123456789abcdef");
}

// The lock last, so that the rest is still known should this process be killed, too.
void remove_hidden_folder(const fs::path& folder) {
  std::error_code error;
  fs::remove_all(folder / "checkpoint", error);
  if (!error) fs::remove(folder / kWriterLock, error);
  fs::remove(folder, error);  // succeeds only when it is empty
}

}  // namespace

fs::path hidden_name(const fs::path& root, std::int64_t step) {
  return root / (std::string(kHiddenPrefix) + std::to_string(step) + "." +
                 runtime::JobId::random().short_hex() + std::string(kHiddenSuffix));
}

Result<HiddenFolder> HiddenFolder::make(const fs::path& root, std::int64_t step) {
  for (int i = 0; i < kMakeTries; ++i) {
    HiddenFolder made(hidden_name(root, step));
    if (::mkdir(made.path_.c_str(), 0777) != 0) {
      const int why = errno;
      const fs::path path = std::exchange(made.path_, {});  // not ours
      if (why == EEXIST) continue;
      return runtime::errno_status(why, "making " + path.string());
    }
    auto lock = FileLock::try_file(made.path_ / kWriterLock);
    const ErrorCode why = lock.status().code();
    if (why == ErrorCode::kUnavailable || why == ErrorCode::kNotFound) continue;
    if (!lock.ok() && why != ErrorCode::kInvalidArgument) return lock.status();
    if (lock.ok() && !lock->is_of(made.path_ / kWriterLock)) continue;
    if (lock.ok()) made.lock_ = *std::move(lock);
    if (::mkdir(made.content().c_str(), 0777) != 0)
      return runtime::errno_status(errno, "making " + made.content().string());
    return made;
  }
  return runtime::unavailable("checkpoint folder " + root.string() +
                              ": what is made there is removed by another process at once");
}

HiddenFolder::HiddenFolder(HiddenFolder&& other) noexcept
    : path_(std::exchange(other.path_, {})), lock_(std::move(other.lock_)) {}

void HiddenFolder::remove() {
  if (!path_.empty()) remove_hidden_folder(std::exchange(path_, {}));
}

void remove_dead_hidden_folders(const fs::path& root) {
  std::error_code error;
  for (fs::directory_iterator entry(root, error), end; !error && entry != end;
       entry.increment(error)) {
    const fs::path& folder = entry->path();
    struct stat info {};
    if (!is_hidden_name(folder.filename().string()) || ::lstat(folder.c_str(), &info) != 0 ||
        !S_ISDIR(info.st_mode))
      continue;
    // Of this user's. Held, so that no process takes it for living now.
    const auto dead = FileLock::of_dead(folder / kWriterLock);
    if (dead.ok() && dead->is_of(folder / kWriterLock)) remove_hidden_folder(folder);
  }
}

}  // namespace rl
