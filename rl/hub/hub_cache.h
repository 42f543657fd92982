// The folder in which Hugging Face's tools keep what they fetched, laid out as they do, so that
// each finds what the other has:
//   models--org--name/blobs/ETAG                 the bytes of a file, once for all revisions
//   models--org--name/snapshots/COMMIT/FILE      a link to its blob
//   models--org--name/refs/REVISION              the commit that a branch or tag was last seen at
//   .locks/models--org--name/ETAG.lock           held by the process that fetches that blob
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/core/result.h"

namespace rl {

/// A model on the hub: "org/name" or, of the hub's first years, "name" ("gpt2"), either with
/// "@revision" behind it. A revision is a branch, a tag or a commit.
struct HubName {
  std::string repo;
  std::string revision = "main";

  /// kInvalidArgument: not such a name. A revision given apart must not contradict one in the text.
  static runtime::Result<HubName> parse(std::string_view text, std::string_view revision = {});
  /// 40 hexadecimal digits: what it says never changes.
  bool is_commit() const;
  bool has_organisation() const { return repo.find('/') != std::string::npos; }
  std::string text() const { return revision == "main" ? repo : repo + "@" + revision; }
};

/// The cache's part of one model. Other processes may use it at the same time.
class HubCache {
 public:
  HubCache(const std::filesystem::path& cache, const std::string& repo);

  std::filesystem::path snapshot(const std::string& commit) const {
    return folder_ / "snapshots" / commit;
  }
  std::filesystem::path blob(const std::string& etag) const { return folder_ / "blobs" / etag; }
  /// The file in which a blob grows until it is whole.
  std::filesystem::path incomplete(const std::string& etag) const {
    return folder_ / "blobs" / (etag + ".incomplete");
  }
  /// The lock of the process that fetches a blob.
  std::filesystem::path lock(const std::string& etag) const {
    return cache_ / ".locks" / folder_.filename() / (etag + ".lock");
  }
  const std::filesystem::path& folder() const { return folder_; }

  /// The commit that `name` stands for as far as the cache knows.
  std::optional<std::string> known_commit(const HubName& name) const;
  runtime::Status remember_commit(const HubName& name, const std::string& commit) const;

  /// Makes the folders that a blob needs, and CACHEDIR.TAG, by which backups leave the cache out.
  runtime::Status prepare() const;

  /// snapshots/COMMIT/FILE -> blob. What is there already stays.
  runtime::Status link(const std::string& commit, const std::string& file,
                       const std::string& etag) const;

 private:
  std::filesystem::path cache_;
  std::filesystem::path folder_;  // models--org--name
};

/// Held while a blob is fetched, so that two processes do not fetch it twice; the kernel lets it go
/// when the process ends.
class BlobLock {
 public:
  /// Makes the file and its folder; waits for its holder.
  static runtime::Result<BlobLock> take(const std::filesystem::path& file);
  BlobLock(BlobLock&& other) noexcept;
  BlobLock& operator=(BlobLock&&) = delete;
  ~BlobLock();

 private:
  explicit BlobLock(int fd) : fd_(fd) {}
  int fd_;
};

}  // namespace rl
