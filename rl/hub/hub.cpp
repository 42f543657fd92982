#include "rl/hub/hub.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "rl/hub/hub_client.h"
#include "runtime/core/thread.h"

namespace rl {
namespace {

namespace fs = std::filesystem;
using runtime::ErrorCode;
using runtime::Result;
using runtime::Status;

// Runs `work` for every index on several threads, each with its own client. The first failure
// ends the others.
template <class Work>
Status for_each(std::size_t count, const HubOptions& options, Work&& work) {
  std::atomic<std::size_t> next{0};
  std::atomic<bool> cancelled{false};
  std::mutex mutex;
  Status first;
  const auto run = [&] {
    HubClient client(options, cancelled);
    for (std::size_t i = next++; i < count && !cancelled; i = next++) {
      Status status = work(client, i);
      if (status.ok()) continue;
      std::lock_guard lock(mutex);
      if (first.ok()) first = std::move(status);
      cancelled = true;
    }
  };
  const std::size_t parallel = std::min(count, std::max<std::size_t>(1, options.parallel));
  runtime::HelperThreads others(parallel > 0 ? parallel - 1 : 0, run);
  run();
  others.join();
  return first;
}

// Adds up what the threads fetch and tells it to the caller.
class Progress {
 public:
  Progress(const HubOptions& options, std::string name) : options_(options) {
    state_.name = std::move(name);
  }
  void expect(std::uint64_t bytes) {
    std::lock_guard lock(mutex_);
    state_.bytes_total += bytes;
  }
  void add(std::int64_t bytes) {
    std::lock_guard lock(mutex_);
    state_.bytes_done += static_cast<std::uint64_t>(bytes);  // negative ones wrap around and back
    if (options_.progress) options_.progress(state_);
  }

 private:
  const HubOptions& options_;
  std::mutex mutex_;
  HubProgress state_;
};

Status check_room(const HubCache& cache, std::uint64_t bytes) {
  std::error_code error;
  const fs::space_info space = fs::space(cache.folder(), error);
  if (error || space.available >= bytes) return {};
  return runtime::resource_exhausted(
      cache.folder().string() + ": " + std::to_string((bytes + (1 << 20) - 1) >> 20) +
      " MiB are to be fetched and " + std::to_string(space.available >> 20) +
      " MiB are free; make room or set HF_HOME to a larger disk");
}

Status fetch_files(const HubName& name, const std::string& commit,
                   const std::vector<std::string>& paths, const HubCache& cache,
                   const HubOptions& options, Progress& progress) {
  std::error_code ignored;
  std::vector<HubFile> files;
  for (const std::string& path : paths) {
    if (!fs::exists(cache.snapshot(commit) / path, ignored))
      files.push_back({.path = path, .etag = {}});
  }
  if (files.empty()) return {};
  if (Status status = cache.prepare(); !status.ok()) return status;
  Status status = for_each(files.size(), options, [&](HubClient& client, std::size_t i) {
    Result<HubFile> file = client.look_up(name, commit, files[i].path);
    if (!file.ok()) return file.status();
    files[i] = std::move(*file);
    return Status();
  });
  if (!status.ok()) return status;
  std::uint64_t bytes = 0, room = 0;
  for (const HubFile& file : files) {
    if (fs::exists(cache.blob(file.etag), ignored)) continue;
    const std::uintmax_t partial = fs::file_size(cache.incomplete(file.etag), ignored);
    bytes += file.bytes;
    room += file.bytes - std::min<std::uintmax_t>(
                             file.bytes, partial == static_cast<std::uintmax_t>(-1) ? 0 : partial);
  }
  progress.expect(bytes);
  if (status = check_room(cache, room); !status.ok()) return status;
  // The largest first, so that none of them is fetched alone in the end.
  std::sort(files.begin(), files.end(),
            [](const HubFile& a, const HubFile& b) { return a.bytes > b.bytes; });
  return for_each(files.size(), options, [&](HubClient& client, std::size_t i) {
    const HubFile& file = files[i];
    std::error_code none;
    Status fetched;
    if (!fs::exists(cache.blob(file.etag), none)) {
      fetched = client.download(name, commit, file, cache,
                                [&](std::int64_t count) { progress.add(count); });
    }
    return fetched.ok() ? cache.link(commit, file.path, file.etag) : fetched;
  });
}

fs::path result_path(const HubCache& cache, const std::string& commit, const NeededFiles& needed) {
  return needed.gguf.empty() ? cache.snapshot(commit) : cache.snapshot(commit) / needed.gguf;
}

std::vector<std::string> files_in(const fs::path& folder) {
  std::vector<std::string> files;
  std::error_code ignored;
  for (const auto& entry : fs::recursive_directory_iterator(folder, ignored)) {
    if (fs::is_regular_file(entry.path(), ignored))  // a link to a blob that is gone is none
      files.push_back(entry.path().lexically_relative(folder).string());
  }
  return files;
}

// What the cache has of it by itself. kNotFound says what is missing.
Result<fs::path> cached_model(const HubName& name, HubNeed need, const HubCache& cache) {
  const std::optional<std::string> commit = cache.known_commit(name);
  if (!commit)
    return runtime::not_found(name.text() + ": not in the cache " + cache.folder().string());
  const fs::path folder = cache.snapshot(*commit);
  std::error_code ignored;
  if (!fs::exists(folder, ignored))
    return runtime::not_found(name.text() + ": not in the cache (" + folder.string() + ")");
  const std::vector<std::string> files = files_in(folder);
  Result<NeededFiles> needed =
      needed_files(files, need, name.text() + ": the cache's " + folder.string());
  if (!needed.ok()) return needed.status();
  const bool config = std::find(files.begin(), files.end(), "config.json") != files.end();
  if (need == HubNeed::kModel && needed->gguf.empty() && !config)
    return runtime::not_found(name.text() + ": the cache lacks its config.json");
  if (!needed->index.empty()) {
    Result<std::vector<std::string>> shards = indexed_files(folder, needed->index);
    if (!shards.ok()) return shards.status();
    for (const std::string& shard : *shards) {
      if (!fs::exists(folder / shard, ignored))
        return runtime::not_found(name.text() + ": the cache lacks its " + shard);
    }
  }
  return result_path(cache, *commit, *needed);
}

Result<fs::path> fetch_online(const HubName& name, HubNeed need, const HubCache& cache,
                              const HubOptions& options, bool is_cached) {
  const std::atomic<bool> never{false};
  HubOptions patience = options;
  // A hub that is away shall not hold up what is here, nor the news that a path is mistyped.
  if (is_cached || !name.has_organisation()) patience.attempts_max = 1;
  HubClient client(patience, never);
  Result<HubListing> listing = client.list(name);
  if (!listing.ok()) return listing.status();
  Result<NeededFiles> needed = needed_files(listing->files, need, name.text());
  if (!needed.ok()) return needed.status();
  Progress progress(options, name.text());
  Status status = fetch_files(name, listing->commit, needed->files, cache, options, progress);
  if (status.ok() && !needed->index.empty()) {
    Result<std::vector<std::string>> shards =
        indexed_files(cache.snapshot(listing->commit), needed->index);
    if (!shards.ok()) return shards.status();
    status = fetch_files(name, listing->commit, *shards, cache, options, progress);
  }
  if (!status.ok()) return status;
  // Last, so that the cache never points to a snapshot that is not whole.
  if (status = cache.remember_commit(name, listing->commit); !status.ok()) return status;
  return result_path(cache, listing->commit, *needed);
}

}  // namespace

Result<fs::path> fetch_model(const HubName& name, HubNeed need, const HubOptions& options) {
  const HubCache cache(options.cache, name.repo);
  Result<fs::path> cached = cached_model(name, need, cache);
  if (cached.ok() && (options.offline || name.is_commit())) return cached;
  if (options.offline) {
    return Status(cached.status().code(),
                  cached.status().message() +
                      "; HF_HUB_OFFLINE forbids to fetch it: unset it, or give a folder");
  }
  Result<fs::path> fetched = fetch_online(name, need, cache, options, cached.ok());
  if (fetched.ok() || fetched.status().code() != ErrorCode::kUnavailable) return fetched;
  if (cached.ok()) return cached;  // the hub is away, not the model
  return Status(fetched.status().code(), fetched.status().message() + "; and " +
                                             cached.status().message() +
                                             ". Check the network (https_proxy where there is a "
                                             "proxy, HF_ENDPOINT for a mirror), or give a folder");
}

Result<fs::path> locate_model(const std::string& model, std::string_view revision, HubNeed need,
                              const HubOptions& options) {
  std::error_code error;
  const fs::path path = fs::absolute(model, error);
  if (!model.empty() && !error && fs::exists(path, error)) {
    if (revision.empty()) return path;
    return runtime::invalid_argument(model + ": is a path here, which has no revision " +
                                     std::string(revision) + "; leave --revision out");
  }
  const Result<HubName> name = HubName::parse(model, revision);
  if (!name.ok()) {
    // What looks like a name and is none because of its revision says so.
    if (HubName::parse(model.substr(0, model.find('@'))).ok()) return name.status();
    return runtime::not_found(
        model + ": no such file or folder, and no model's name on the hub (org/name, or name)");
  }
  Result<fs::path> fetched = fetch_model(*name, need, options);
  // One word may well be a path that is mistyped, whatever the hub says.
  if (fetched.ok() || (fetched.status().code() != ErrorCode::kNotFound && name->has_organisation()))
    return fetched;
  return fetched.status().with_context("no such file or folder here");
}

Result<fs::path> locate_cached_model(const std::string& model, HubNeed need,
                                     const HubOptions& options) {
  std::error_code error;
  const fs::path path = fs::absolute(model, error);
  if (!model.empty() && !error && fs::exists(path, error)) return path;
  const Result<HubName> name = HubName::parse(model);
  if (!name.ok()) return runtime::not_found(model + ": no such file or folder");
  return cached_model(*name, need, HubCache(options.cache, name->repo));
}

}  // namespace rl
