// The files that a driver's program consists of: naming them by content, finding them on another
// node, fetching them.
#pragma once

#include <filesystem>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/control/control.h"
#include "runtime/core/result.h"
#include "runtime/process/file_cache.h"
#include "runtime/process/file_lock.h"
#include "runtime/transport/event_loop.h"
#include "runtime/transport/file_descriptor.h"
#include "runtime/transport/handshake.h"

namespace runtime {

class Channel;

/// XXH3-128 of a file in hex. Cost: reads it all, about 0.2 ms per MB. Errors: kNotFound,
/// kInvalidArgument.
Result<std::string> hash_file(const std::filesystem::path& file);

/// This process's program as it registers itself: /proc/self/exe by content, command line, working
/// folder, pid. It names the loaded libraries outside of the system's folders by path and size.
Result<DriverInfo> describe_this_program();

/// Where a program is on this machine.
struct LocalProgram {
  std::filesystem::path path;
  std::shared_ptr<const FileLock> in_use;  // of one in the cache, which keeps it there; else null
};

/// A node's access to programs. Lives on the event loop.
class ProgramFiles {
 public:
  using Found = std::function<void(Result<LocalProgram>)>;

  /// `credentials` are shown to the nodes that files are fetched from. The cache is made when first
  /// needed.
  ProgramFiles(EventLoop& loop, Credentials credentials, FileCacheOptions cache);
  ProgramFiles(const ProgramFiles&) = delete;
  ProgramFiles& operator=(const ProgramFiles&) = delete;
  ~ProgramFiles();

  /// Programs that are kept open, so that they are had as they were when their drivers began. Of
  /// earlier ones the files have to be there still.
  static constexpr std::size_t kOpenMax = 64;

  /// A driver of this node runs this program. It is found here, and may be fetched from here, also
  /// when its file is replaced or removed.
  void offer(const DriverInfo& driver);

  /// Where the program is on this machine. The first of these counts: the driver's path if the same
  /// file is there, kept open, in the cache, fetched from the driver's node. Only children of this
  /// process can execute the path of a program that is kept open. Libraries must be at the driver's
  /// paths. Errors: kNotFound names the library, or the program that was changed since the driver
  /// began. kUnavailable names the node. kResourceExhausted names the disk, where the cache has no
  /// unused file left to remove.
  void find(const DriverInfo& driver, const std::string& driver_node, Deadline deadline,
            Found found);

  /// Brings the cache within its bounds, and removes what dead nodes have left in it.
  void trim() const { cache_.trim(); }

  /// Serves another node: up to 4 MiB of an offered file from an offset; empty at its end.
  Result<std::string> read(const std::string& hash, std::uint64_t offset) const;

 private:
  struct Fetch;
  /// Whether the file has this hash; it is computed once a version.
  bool is_verified(const std::filesystem::path& file, const std::string& hash);
  /// Nothing is run from a folder that another user could write to, or that is not a cache.
  Status check_cache() const;
  struct Offered {
    std::string hash;
    std::filesystem::path path;
    FileDescriptor file;
    std::string version;  // of the open file: it may be written to once no process runs it
  };
  /// The open file, if it is still as it was; null: there is none.
  const Offered* open_program(const std::string& hash) const;
  /// One in the cache, locked while a process has it. Errors: kNotFound.
  Result<LocalProgram> use(const std::filesystem::path& cached);
  void finish(const std::string& hash, const Result<LocalProgram>& result);
  void fetch_next(const std::shared_ptr<Fetch>& fetch);

  EventLoop& loop_;
  const Credentials credentials_;
  const FileCache cache_;
  std::map<std::string, std::filesystem::path> offered_;  // by hash
  std::list<Offered> open_;                               // the latest last
  std::map<std::string, std::string> verified_;           // path with size and time -> hash
  std::map<std::string, std::vector<Found>> fetching_;    // by hash: who waits
  std::map<std::filesystem::path, std::weak_ptr<const FileLock>> in_use_;
};

}  // namespace runtime
