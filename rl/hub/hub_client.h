// Requests to the hub: a model's list of files, a file's properties, its bytes. Retries what may
// pass; everything else is an error that says what to do.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "rl/hub/http.h"
#include "rl/hub/hub_cache.h"
#include "rl/hub/hub_options.h"
#include "runtime/core/result.h"

namespace rl {

class PartialFile;

struct HubListing {
  std::string commit;
  std::vector<std::string> files;
};

/// One file of one commit.
struct HubFile {
  std::string path;
  std::string etag;  // the name of its blob; of large files the SHA-256 of its bytes
  std::uint64_t bytes = 0;
};

/// Not thread-safe: one for each thread. Borrows what it is given. Errors of all are these.
/// kNotFound: no such model, revision or file. kInvalidArgument: private or gated (with the cure),
/// or an answer that makes no sense. kUnavailable: no network, or a hub that fails after all
/// attempts. kCancelled: `cancelled` became true.
class HubClient {
 public:
  HubClient(const HubOptions& options, const std::atomic<bool>& cancelled)
      : options_(options), cancelled_(cancelled) {}

  runtime::Result<HubListing> list(const HubName& name);

  runtime::Result<HubFile> look_up(const HubName& name, const std::string& commit,
                                   const std::string& path);

  /// Puts the file's bytes into the cache's blobs, going on where an earlier attempt of any process
  /// stopped. A blob appears whole, with the bytes that the hub announced: their count and, of
  /// large files, their SHA-256. `progress` gets the bytes that are new; negative where some have
  /// to be fetched again. kResourceExhausted: the disk is full; what is there stays for the next
  /// time.
  runtime::Status download(const HubName& name, const std::string& commit, const HubFile& file,
                           const HubCache& cache,
                           const std::function<void(std::int64_t)>& progress);

 private:
  struct Retry;
  runtime::Result<HttpAnswer> ask(const std::string& url, bool head, const HubName& name);
  runtime::Result<HttpAnswer> follow(HttpRequest request, bool relative_only);
  runtime::Status receive(const HubName& name, const std::string& url, const HubFile& file,
                          PartialFile& partial, const std::function<void(std::int64_t)>& progress,
                          std::string& retry_after);
  runtime::Status refusal(const HttpAnswer& answer, const HubName& name,
                          const std::string& what) const;
  bool wait(std::chrono::milliseconds pause) const;
  std::string resolve_url(const HubName& name, const std::string& commit,
                          const std::string& path) const;

  const HubOptions& options_;
  const std::atomic<bool>& cancelled_;
  HttpClient http_;
};

}  // namespace rl
