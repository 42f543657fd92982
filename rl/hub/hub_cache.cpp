#include "rl/hub/hub_cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <utility>

#include "rl/weights/atomic_file.h"
#include "runtime/core/rest_of.h"

namespace rl {
namespace {

namespace fs = std::filesystem;
using runtime::Result;
using runtime::Status;

constexpr const char* kCacheTag =
    "Signature: 8a477f597d28d172789f06886806bc55\n"
    "# This file is a cache directory tag created by huggingface_hub.\n"
    "# For information about cache directory tags, see:\n"
    "#\thttps://bford.info/cachedir/\n";

bool is_hex(std::string_view text, std::size_t digits) {
  return text.size() == digits &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isxdigit(c); });
}

// Files that are not here, not names.
bool is_weight_file(std::string_view name) {
  const auto ends = {".gguf", ".safetensors", ".bin", ".pt", ".pth", ".json"};
  return std::any_of(ends.begin(), ends.end(),
                     [&](const char* end) { return name.ends_with(end); });
}

// A part of "org/name" by Hugging Face's rules; none of them can leave a folder.
bool is_part(std::string_view part) {
  const auto good = [](unsigned char c) {
    return std::isalnum(c) || c == '-' || c == '_' || c == '.';
  };
  return !part.empty() && part.size() <= 96 && std::all_of(part.begin(), part.end(), good) &&
         part.front() != '.' && part.front() != '-' && part.back() != '.' && part.back() != '-' &&
         part.find("--") == part.npos && part.find("..") == part.npos;
}

// Branches may have slashes ("refs/pr/3"); nothing may leave the folder of refs.
bool is_revision(std::string_view text) {
  const auto good = [](unsigned char c) {
    return std::isalnum(c) || c == '-' || c == '_' || c == '.' || c == '/' || c == '+';
  };
  return !text.empty() && text.size() <= 255 && std::all_of(text.begin(), text.end(), good) &&
         text.front() != '/' && text.back() != '/' && text.find("..") == text.npos &&
         text.find("//") == text.npos && text.front() != '.';
}

Status make_folders(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error)
    return runtime::errno_status(
        error.value(),
        "making " + folder.string() + " (HF_HOME or HF_HUB_CACHE says where models are kept)");
  return {};
}

}  // namespace

Result<HubName> HubName::parse(std::string_view text, std::string_view revision) {
  HubName name;
  std::string_view repo = text;
  if (const std::size_t at = text.find('@'); at != text.npos) {
    repo = text.substr(0, at);
    name.revision = text.substr(at + 1);
    if (!revision.empty() && revision != name.revision) {
      return runtime::invalid_argument(
          std::string(text) + ": names another revision than --revision " + std::string(revision));
    }
  } else if (!revision.empty()) {
    name.revision = revision;
  }
  const std::size_t slash = repo.find('/');
  const bool is_name = slash == repo.npos
                           ? is_part(repo) && !is_weight_file(repo)
                           : is_part(repo.substr(0, slash)) && is_part(repo.substr(slash + 1));
  if (!is_name) {
    return runtime::invalid_argument(
        std::string(text) +
        ": not a model's name on the hub (org/name or name, with @revision or without)");
  }
  if (!is_revision(name.revision))
    return runtime::invalid_argument(std::string(text) +
                                     ": no valid revision (a branch, a tag or a commit)");
  name.repo = repo;
  return name;
}

bool HubName::is_commit() const { return is_hex(revision, 40); }

HubCache::HubCache(const fs::path& cache, const std::string& repo) : cache_(cache) {
  std::string name = "models--" + repo;
  if (const std::size_t slash = name.find('/'); slash != name.npos) name.replace(slash, 1, "--");
  folder_ = cache_ / name;
}

std::optional<std::string> HubCache::known_commit(const HubName& name) const {
  if (name.is_commit()) return name.revision;
  std::ifstream file(folder_ / "refs" / name.revision);
  std::string commit = runtime::rest_of(file);
  while (!commit.empty() && std::isspace(static_cast<unsigned char>(commit.back())))
    commit.pop_back();
  return is_hex(commit, 40) ? std::optional(commit) : std::nullopt;
}

Status HubCache::remember_commit(const HubName& name, const std::string& commit) const {
  if (name.revision == commit || known_commit(name) == commit) return {};
  const fs::path file = folder_ / "refs" / name.revision;
  const Status made = make_folders(file.parent_path());
  return made.ok() ? write_file_atomically(file, commit) : made;
}

Status HubCache::prepare() const {
  if (Status status = make_folders(folder_ / "blobs"); !status.ok()) return status;
  std::error_code ignored;
  const fs::path tag = cache_ / "CACHEDIR.TAG";
  return fs::exists(tag, ignored) ? Status() : write_file_atomically(tag, kCacheTag);
}

Status HubCache::link(const std::string& commit, const std::string& file,
                      const std::string& etag) const {
  const fs::path pointer = snapshot(commit) / file;
  if (Status status = make_folders(pointer.parent_path()); !status.ok()) return status;
  std::error_code error;
  if (fs::exists(pointer, error)) return {};
  fs::remove(pointer, error);  // a link to a blob that is gone
  fs::create_symlink(fs::relative(blob(etag), pointer.parent_path(), error), pointer, error);
  if (error && error != std::errc::file_exists)
    return runtime::errno_status(error.value(), "linking " + pointer.string());
  return {};
}

Result<BlobLock> BlobLock::take(const fs::path& file) {
  if (Status status = make_folders(file.parent_path()); !status.ok()) return status;
  const int fd = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) return runtime::errno_status(errno, file.string());
  BlobLock lock(fd);
  while (::flock(fd, LOCK_EX) != 0) {
    if (errno == ENOSYS || errno == ENOTSUP)
      break;  // a file system without locks: two may fetch the same, no more
    if (errno != EINTR) return runtime::errno_status(errno, "locking " + file.string());
  }
  return lock;
}

BlobLock::BlobLock(BlobLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

BlobLock::~BlobLock() {
  if (fd_ >= 0) ::close(fd_);
}

}  // namespace rl
