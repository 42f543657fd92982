#include "runtime/job/program_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <set>

#include "runtime/control/control_channel.h"
#include "runtime/core/log.h"
#include "runtime/core/xxh3_hash.h"
#include "runtime/process/cache_folder.h"
#include "runtime/process/file_util.h"
#include "runtime/process/private_folder.h"
#include "runtime/transport/file_descriptor.h"
#include "runtime/transport/listener.h"

namespace runtime {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kProgramChunkBytes = 4 << 20;
constexpr auto kChunkTimeout = std::chrono::seconds(30);
constexpr std::uint64_t kProgramBytesMax = 8ull << 30;

/// A program lies in a folder by the name of its hash.
FileCacheOptions in_folders(FileCacheOptions options) {
  options.depth = 2;
  return options;
}

bool is_system_library(const std::string& path) {
  for (const char* folder : {"/lib/", "/lib64/", "/usr/lib/", "/usr/lib64/"}) {
    if (path.starts_with(folder)) return true;
  }
  return false;
}

/// What changes when a file does.
std::string version_of(const struct stat& info) {
  return ":" + std::to_string(info.st_size) + ":" + std::to_string(info.st_mtim.tv_sec) + "." +
         std::to_string(info.st_mtim.tv_nsec) + ":" + std::to_string(info.st_dev) + ":" +
         std::to_string(info.st_ino);
}

/// With the path, to remember its hash by.
Result<std::string> file_version(const fs::path& file, std::uint64_t* bytes) {
  struct stat info;
  if (::stat(file.c_str(), &info) != 0) return errno_status(errno, file.string());
  if (!S_ISREG(info.st_mode)) return invalid_argument(file.string() + " is not a file");
  *bytes = static_cast<std::uint64_t>(info.st_size);
  return file.string() + version_of(info);
}

std::string open_path(const FileDescriptor& file) {
  return "/proc/self/fd/" + std::to_string(file.get());
}

/// The file that the process executes, if that is this program.
FileDescriptor open_executable(const DriverInfo& driver, std::string* version) {
  FileDescriptor file(
      ::open(("/proc/" + std::to_string(driver.pid) + "/exe").c_str(), O_RDONLY | O_CLOEXEC));
  struct stat open, there;
  if (!file || ::fstat(file.get(), &open) != 0 ||
      static_cast<std::uint64_t>(open.st_size) != driver.executable.bytes)
    return {};
  *version = version_of(open);
  // The number may be that of another process (in another namespace). The file at its path is
  // known, and reading it again would tell nothing new.
  const bool is_there =
      ::stat(driver.executable.path.c_str(), &there) == 0 && version_of(there) == *version;
  if (!is_there && hash_file(open_path(file)).value_or("") != driver.executable.hash) return {};
  return file;
}

std::vector<FileSpec> loaded_libraries() {
  std::vector<FileSpec> libraries;
  std::set<std::string> seen;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    std::size_t slash = line.find('/');
    if (slash == std::string::npos) continue;
    std::string path = line.substr(slash);
    if (path.find(".so") == std::string::npos || is_system_library(path) ||
        !seen.insert(path).second)
      continue;
    std::error_code error;
    std::uint64_t bytes = fs::file_size(path, error);
    if (!error) libraries.push_back({path, bytes, ""});
  }
  return libraries;
}

}  // namespace

Result<std::string> hash_file(const fs::path& file) {
  Xxh3Hash hash;
  Status status =
      read_blocks(file, [&hash](std::string_view block) { hash.add(block.data(), block.size()); });
  if (!status.ok()) return status;
  return hash.hex();
}

Result<DriverInfo> describe_this_program() {
  DriverInfo info;
  std::error_code error;
  fs::path executable = fs::read_symlink("/proc/self/exe", error);
  if (error) return internal_error("reading /proc/self/exe: " + error.message());
  static const Result<std::string> hash =
      hash_file("/proc/self/exe");  // it stays the same as long as it runs
  if (!hash.ok()) return hash.status();
  info.executable = {executable.string(), fs::file_size("/proc/self/exe", error), *hash};
  info.libraries = loaded_libraries();
  auto command_line = read_file("/proc/self/cmdline", 4 << 20);
  if (!command_line.ok()) return command_line.status();
  for (std::size_t at = 0; at < command_line->size();) {
    info.argv.emplace_back(command_line->c_str() + at);
    at += info.argv.back().size() + 1;
  }
  info.working_dir = fs::current_path(error).string();
  info.pid = ::getpid();
  return info;
}

ProgramFiles::ProgramFiles(EventLoop& loop, Credentials credentials, FileCacheOptions cache)
    : loop_(loop), credentials_(std::move(credentials)), cache_(in_folders(std::move(cache))) {}

ProgramFiles::~ProgramFiles() = default;

void ProgramFiles::offer(const DriverInfo& driver) {
  if (!open_program(driver.executable.hash)) {
    Offered offered{driver.executable.hash, driver.executable.path, {}, {}};
    offered.file = open_executable(driver, &offered.version);
    std::erase_if(open_, [&](const Offered& old) { return old.hash == offered.hash; });
    if (offered.file) {
      offered_[offered.hash] = offered.path;
      open_.push_back(std::move(offered));
    }
    if (open_.size() > kOpenMax) open_.pop_front();
  }
  std::uint64_t bytes = 0;
  auto version = file_version(driver.executable.path, &bytes);
  if (!version.ok() || bytes != driver.executable.bytes) return;
  // The driver is on this machine and has just read the file: hashing it again would tell nothing
  // new.
  verified_[*version] = driver.executable.hash;
  offered_[driver.executable.hash] = driver.executable.path;
}

bool ProgramFiles::is_verified(const fs::path& file, const std::string& hash) {
  std::uint64_t bytes = 0;
  const auto version = file_version(file, &bytes);
  if (!version.ok()) return false;
  std::string& known = verified_[*version];
  if (known.empty()) known = hash_file(file).value_or("");
  return known == hash;
}

Status ProgramFiles::check_cache() const {
  const Status status = check_unshared_folder(cache_.folder().parent_path());
  if (!status.ok() && status.code() != ErrorCode::kNotFound)
    return status.with_context("the cache of programs");
  return cache_.check();
}

const ProgramFiles::Offered* ProgramFiles::open_program(const std::string& hash) const {
  for (const Offered& offered : open_) {
    struct stat info;
    if (offered.hash == hash && ::fstat(offered.file.get(), &info) == 0 &&
        version_of(info) == offered.version)
      return &offered;
  }
  return nullptr;
}

/// One transfer under way. Chunks follow one another; a program is fetched once per node and
/// version.
struct ProgramFiles::Fetch {
  std::string hash;
  std::uint64_t bytes = 0;
  std::uint64_t received = 0;
  Deadline deadline;
  std::shared_ptr<Channel> channel;
  fs::path temporary;
  fs::path target;
  FileDescriptor file;
};

void ProgramFiles::find(const DriverInfo& driver, const std::string& driver_node, Deadline deadline,
                        Found found) {
  for (const FileSpec& library : driver.libraries) {
    std::error_code error;
    if (fs::file_size(library.path, error) == library.bytes && !error) continue;
    return found(not_found(
        "library " + library.path + ", which the driver uses, is not the same on this node (" +
        (error ? error.message() : "its size differs") + "); install it at the same path"));
  }
  const FileSpec& program = driver.executable;
  std::uint64_t bytes = 0;
  if (file_version(program.path, &bytes).ok() && bytes == program.bytes &&
      is_verified(program.path, program.hash))
    return found(LocalProgram{program.path, nullptr});
  if (const Offered* open = open_program(program.hash))
    return found(LocalProgram{open_path(open->file), nullptr});
  std::error_code error;
  fs::path cached = cache_.folder() / program.hash / fs::path(program.path).filename();
  if (program.hash.size() != 32 ||
      program.hash.find_first_not_of("0123456789abcdef") != std::string::npos) {
    return found(invalid_argument("the driver's program has no proper hash"));
  }
  if (Status status = check_cache(); !status.ok()) return found(std::move(status));
  if (auto used = use(cached);
      used.ok() && fs::file_size(cached, error) == program.bytes && !error) {
    if (is_verified(cached, program.hash)) return found(*std::move(used));
    LOG(warn, "{} is not what its name says: it is fetched again", cached.string());
    fs::remove(cached, error);
  }
  if (program.bytes > kProgramBytesMax)
    return found(resource_exhausted("the driver's program is larger than 8 GiB"));
  auto endpoint = Endpoint::parse(driver_node);
  if (!endpoint.ok()) return found(endpoint.status().with_context("the driver's node"));

  std::vector<Found>& waiting = fetching_[program.hash];
  waiting.push_back(std::move(found));
  if (waiting.size() > 1) return;
  auto fetch = std::make_shared<Fetch>();
  fetch->hash = program.hash;
  fetch->bytes = program.bytes;
  fetch->deadline = deadline;
  fetch->target = cached;
  fetch->temporary = FileCache::part_of(cached);
  Status made = cache_.make();
  if (made.ok()) made = make_folder_in_cache(cached.parent_path());
  if (!made.ok()) return finish(fetch->hash, std::move(made));
  auto begun = cache_.begin(fetch->temporary, 0700);
  if (!begun.ok()) return finish(fetch->hash, begun.status());
  fetch->file = *std::move(begun);
  LOG(info, "fetching {} ({} bytes) from {}", program.path, program.bytes, driver_node);
  ConnectOptions options;
  options.deadline = deadline;
  connect(loop_, *endpoint, credentials_, options,
          [this, fetch](Result<std::shared_ptr<Channel>> channel) {
            if (!channel.ok()) {
              ::unlink(fetch->temporary.c_str());
              return finish(fetch->hash,
                            channel.status().with_context("fetching the driver's program"));
            }
            fetch->channel = *channel;
            fetch_next(fetch);
          });
}

void ProgramFiles::fetch_next(const std::shared_ptr<Fetch>& fetch) {
  auto fail = [this, fetch](Status why) {
    ::unlink(fetch->temporary.c_str());
    finish(fetch->hash, why.with_context("fetching the driver's program"));
  };
  if (fetch->received == fetch->bytes) {
    fetch->channel->close(cancelled("fetched"));
    auto hash = hash_file(fetch->temporary);
    if (!hash.ok() || *hash != fetch->hash)
      return fail(internal_error("what arrived has another hash"));
    if (::rename(fetch->temporary.c_str(), fetch->target.c_str()) != 0)
      return fail(errno_status(errno, fetch->target.string()));
    fetch->file.reset();  // else it could not be executed
    const auto used = use(fetch->target);
    cache_.trim();
    return finish(fetch->hash, used);
  }
  ControlRequest request{{}, kChunkTimeout, control::FetchFile{fetch->hash, fetch->received}};
  send_request(*fetch->channel, request, [this, fetch, fail](Result<ControlAnswer> answer) {
    if (!answer.ok()) return fail(answer.status());
    const auto* bytes = std::get_if<std::string>(&*answer);
    if (!bytes || bytes->empty() || fetch->received + bytes->size() > fetch->bytes) {
      return fail(unavailable("the driver's node sent another file than announced"));
    }
    fetch->received += bytes->size();
    if (Status status = cache_.write(fetch->file.get(), *bytes, fetch->bytes - fetch->received,
                                     fetch->temporary);
        !status.ok())
      return fail(std::move(status));
    if (steady_now() > fetch->deadline) return fail(deadline_exceeded("it takes too long"));
    fetch_next(fetch);
  });
}

Result<LocalProgram> ProgramFiles::use(const fs::path& cached) {
  std::erase_if(in_use_, [](const auto& one) { return one.second.expired(); });
  auto& known = in_use_[cached];
  LocalProgram program{cached, known.lock()};
  if (!program.in_use || !program.in_use->is_of(cached)) {
    auto lock = FileLock::shared(cached);
    if (!lock.ok() && lock.status().code() != ErrorCode::kInvalidArgument) return lock.status();
    if (lock.ok() && !lock->is_of(cached)) return not_found(cached.string() + " has been removed");
    // A file system without locks keeps it by its age alone.
    program.in_use = std::make_shared<const FileLock>(lock.ok() ? *std::move(lock) : FileLock());
    known = program.in_use;
  }
  // Used now; when it was written stays, by which its hash is known.
  const timespec times[2] = {{0, UTIME_NOW}, {0, UTIME_OMIT}};
  ::utimensat(AT_FDCWD, cached.c_str(), times, AT_SYMLINK_NOFOLLOW);
  return program;
}

void ProgramFiles::finish(const std::string& hash, const Result<LocalProgram>& result) {
  std::vector<Found> waiting = std::move(fetching_[hash]);
  fetching_.erase(hash);
  for (Found& found : waiting) found(result);
}

Result<std::string> ProgramFiles::read(const std::string& hash, std::uint64_t offset) const {
  auto offered = offered_.find(hash);
  if (offered == offered_.end())
    return not_found("no driver of this node runs a program with hash " + hash.substr(0, 64));
  const Offered* open = open_program(hash);
  const std::string path = open ? open_path(open->file) : offered->second.string();
  std::uint64_t bytes = 0;
  auto version = file_version(path, &bytes);
  auto known = version.ok() ? verified_.find(*version) : verified_.end();
  if (!open && (known == verified_.end() || known->second != hash))
    return not_found("the program was changed since the driver started: " +
                     offered->second.string() + " is another file now, or gone");
  FileDescriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return errno_status(errno, path);
  std::string chunk(kProgramChunkBytes, '\0');
  ssize_t got = ::pread(fd.get(), chunk.data(), chunk.size(), static_cast<off_t>(offset));
  if (got < 0) return errno_status(errno, offered->second.string());
  chunk.resize(static_cast<std::size_t>(got));
  return chunk;
}

}  // namespace runtime
