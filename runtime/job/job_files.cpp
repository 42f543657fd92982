#include "runtime/job/job_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <map>
#include <utility>

#include "runtime/core/disk_space.h"
#include "runtime/core/environment.h"
#include "runtime/core/log.h"
#include "runtime/core/simulation.h"
#include "runtime/process/cache_folder.h"
#include "runtime/process/content_hash.h"
#include "runtime/process/file_lock.h"
#include "runtime/process/file_util.h"
#include "runtime/transport/file_descriptor.h"

namespace runtime {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kPathBytesMax = 4000;
constexpr std::size_t kReadBytes = 4 << 20;
constexpr int kRemoveTries = 8;          // while new entries are made
constexpr std::size_t kUploadsMax = 16;  // unfinished, of one sender
constexpr std::uint64_t kUserParts = 4;  // of the disk, one for the folders of each user's jobs
constexpr const char* kJobsLock = ".lock";
// How long a file that a submission was told is there stays for it.
constexpr auto kNeededFor = std::chrono::minutes(10);

Status write_file(int fd, std::string_view bytes, const fs::path& file) {
  while (!bytes.empty()) {
    const ssize_t put = ::write(fd, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return errno_status(put < 0 ? errno : ENOSPC, "writing " + file.string());
    bytes.remove_prefix(static_cast<std::size_t>(put));
  }
  return {};
}

FileCacheOptions cache_options(const JobFilesOptions& options) {
  FileCacheOptions cache;
  cache.folder = options.cache;
  cache.bytes_max = options.cache_bytes_max;
  if (!options.programs.empty()) cache.others = {options.programs};
  return cache;
}

/// A path that stays in the folder, whatever is in it.
Status check_path(const std::string& path) {
  const auto refuse = [&](const char* why) {
    return invalid_argument("'" + path.substr(0, 200) + "' " + why);
  };
  if (path.empty() || path.size() > kPathBytesMax || path.find('\0') != std::string::npos)
    return refuse("is not a file path");
  if (path.front() == '/' || path.back() == '/')
    return refuse("is not relative to the job's folder");
  for (std::size_t at = 0; at <= path.size();) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    const std::string part = path.substr(at, end - at);
    if (part.empty() || part == "." || part == "..") return refuse("leads out of the job's folder");
    at = end + 1;
  }
  return {};
}

/// Also what its owner may not write to. A node of root needs no rights, and changes none: the
/// folder may be another user's, who exchanges parts of it for links meanwhile. He gets to none of
/// it by its path once the folder is root's again.
void remove_folder(const fs::path& folder) {
  const bool is_root = ::geteuid() == 0;
  if (const FileDescriptor top(
          ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
      is_root && top) {
    (void)!::fchown(top.get(), 0, 0);
    (void)::fchmod(top.get(), 0700);
  }
  std::error_code error;
  for (int tries = 0; tries < kRemoveTries; ++tries) {
    fs::remove_all(folder, error);
    if (!error) return;
    if (!is_root) break;
  }
  if (is_root) {
    LOG(warn, "a job's folder is left behind: {}: {}", folder.string(), error.message());
    return;
  }
  std::error_code walking;
  for (fs::recursive_directory_iterator
           at(folder, fs::directory_options::skip_permission_denied, walking),
       end;
       !walking && at != end; at.increment(walking)) {
    std::error_code ignored;
    if (at->is_directory(ignored) && !at->is_symlink(ignored))
      fs::permissions(at->path(), fs::perms::owner_all, fs::perm_options::add, ignored);
  }
  fs::remove_all(folder, error);
  if (error) LOG(warn, "a job's folder is left behind: {}: {}", folder.string(), error.message());
}

/// Of a dead node: its mark and lock last, by which it is known should this process be killed, too.
void remove_jobs_of(const fs::path& node) {
  std::error_code error;
  for (fs::directory_iterator at(node, error), end; !error && at != end; at.increment(error)) {
    std::error_code ignored;
    if (at->is_directory(ignored) && !at->is_symlink(ignored)) remove_folder(at->path());
  }
  remove_folder(node);
}

/// Jobs of other users have to get through. What an administrator has made stays as it is.
Status check_passable(const fs::path& folder) {
  struct stat info {};
  if (::stat(folder.c_str(), &info) != 0) return errno_status(errno, folder.string());
  if ((info.st_mode & S_IXOTH) != 0) return {};
  return invalid_argument(folder.string() + " is closed to the job's user: chmod 711 it");
}

}  // namespace

/// Used by the disk's thread only.
struct JobFiles::Disk {
  struct Upload {
    FileDescriptor file;
    fs::path temporary;
    std::uint64_t bytes = 0;
    std::uint64_t received = 0;
    ContentHash hash;
  };

  explicit Disk(JobFilesOptions disk_options)
      : options(std::move(disk_options)), cache(cache_options(options)) {}
  ~Disk() {
    for (auto& [key, upload] : uploads) ::unlink(upload.temporary.c_str());
    if (lock.is_held()) remove_folder(options.folders);
  }

  fs::path cached(const std::string& hash) const { return options.cache / hash; }
  Result<control::FilesWanted> missing(const std::vector<std::string>& hashes);
  Status store(std::uint64_t sender, const control::StoreFile& part);
  Result<std::string> read(const std::string& hash, std::uint64_t offset) const;
  void forget(std::uint64_t sender);
  std::size_t unfinished_of(std::uint64_t sender) const;
  void need(const std::string& hash);
  FileCache::Keeps keeps();
  Status open_folders(bool for_others);
  Result<JobFolder> unpack(JobId job, const std::vector<JobFile>& files, const JobFile& program,
                           const std::optional<JobUser>& owner);
  Status fill(const fs::path& work, const std::vector<JobFile>& files,
              const std::optional<JobUser>& owner);
  Status copy(const JobFile& from, const fs::path& to, const std::optional<JobUser>& owner);
  Status check_share(const JobUser& user, std::uint64_t bytes) const;
  void trim() { cache.trim(keeps()); }

  const JobFilesOptions options;
  const FileCache cache;
  std::map<std::pair<std::uint64_t, std::string>, Upload> uploads;
  std::map<std::string, Deadline> needed;  // by hash: for a job that is about to be unpacked
  struct Held {
    uid_t user = 0;
    std::uint64_t bytes = 0;
  };
  std::map<JobId, Held> taken;  // folders of other users' jobs
  FileLock lock;                // of `folders`, while this node lives
};

void JobFiles::Disk::need(const std::string& hash) {
  ::utimensat(AT_FDCWD, cached(hash).c_str(), nullptr, AT_SYMLINK_NOFOLLOW);
  needed[hash] = deadline_after(kNeededFor);
}

FileCache::Keeps JobFiles::Disk::keeps() {
  std::erase_if(needed, [](const auto& one) { return one.second < steady_now(); });
  return [this](const fs::path& file) { return needed.contains(file.filename().string()); };
}

Result<control::FilesWanted> JobFiles::Disk::missing(const std::vector<std::string>& hashes) {
  if (Status status = cache.check(); !status.ok()) return status;
  control::FilesWanted wanted;
  for (std::uint32_t i = 0; i < hashes.size(); ++i) {
    if (::access(cached(hashes[i]).c_str(), R_OK) != 0)
      wanted.places.push_back(i);
    else
      need(hashes[i]);
  }
  return wanted;
}

Status JobFiles::Disk::store(std::uint64_t sender, const control::StoreFile& part) {
  const std::pair key(sender, part.hash);
  auto found = uploads.find(key);
  if (part.offset == 0) {
    if (found != uploads.end()) ::unlink(found->second.temporary.c_str()), uploads.erase(found);
    if (unfinished_of(sender) >= kUploadsMax)
      return resource_exhausted("more than " + std::to_string(kUploadsMax) +
                                " files are sent at the same time");
    if (Status status = cache.make(); !status.ok()) return status;
    Upload upload;
    upload.bytes = part.bytes;
    upload.temporary = FileCache::part_of(cached(part.hash));
    auto begun = cache.begin(upload.temporary, 0600, keeps());
    if (!begun.ok()) return begun.status();
    upload.file = *std::move(begun);
    found = uploads.emplace(key, std::move(upload)).first;
  }
  if (found == uploads.end())
    return invalid_argument("a part of a file came without those before it");
  Upload& upload = found->second;
  const auto fail = [&](Status why) {
    ::unlink(upload.temporary.c_str());
    uploads.erase(found);
    return why;
  };
  const bool fits = part.offset == upload.received && part.bytes == upload.bytes &&
                    part.data.size() <= upload.bytes - upload.received;
  if (!fits || (part.data.empty() && upload.bytes != 0))
    return fail(invalid_argument("a part of a file does not fit those before it"));
  const std::uint64_t to_come = upload.bytes - upload.received - part.data.size();
  if (Status status = cache.write(upload.file.get(), part.data, to_come, upload.temporary, keeps());
      !status.ok())
    return fail(std::move(status));
  upload.hash.add(part.data);
  upload.received += part.data.size();
  if (upload.received < upload.bytes) return {};
  if (upload.hash.finish() != part.hash)
    return fail(
        invalid_argument("the file changed while it was being read: what arrived is not what was "
                         "announced; submit again"));
  if (::rename(upload.temporary.c_str(), cached(part.hash).c_str()) != 0)
    return fail(errno_status(errno, "writing " + cached(part.hash).string()));
  uploads.erase(found);
  need(part.hash);
  trim();  // also where no job follows
  return {};
}

std::size_t JobFiles::Disk::unfinished_of(std::uint64_t sender) const {
  return static_cast<std::size_t>(
      std::distance(uploads.lower_bound({sender, ""}), uploads.lower_bound({sender + 1, ""})));
}

Result<std::string> JobFiles::Disk::read(const std::string& hash, std::uint64_t offset) const {
  if (Status status = cache.check(); !status.ok()) return status;
  FileDescriptor fd(::open(cached(hash).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd) return not_found("file " + hash + " is not in the node's cache of job files any more");
  std::string part(kReadBytes, '\0');
  const ssize_t got = ::pread(fd.get(), part.data(), part.size(), static_cast<off_t>(offset));
  if (got < 0) return errno_status(errno, cached(hash).string());
  part.resize(static_cast<std::size_t>(got));
  return part;
}

void JobFiles::Disk::forget(std::uint64_t sender) {
  for (auto at = uploads.lower_bound({sender, ""});
       at != uploads.end() && at->first.first == sender;) {
    ::unlink(at->second.temporary.c_str());
    at = uploads.erase(at);
  }
}

/// Makes the node's folder of jobs, and removes those of nodes that have not removed theirs.
Status JobFiles::Disk::open_folders(bool for_others) {
  const fs::path all = options.folders.parent_path();
  if (!lock.is_held()) {
    for (const fs::path& folder : {all, options.folders}) {
      if (Status status = make_cache_folder(folder); !status.ok()) return status;
    }
  }
  if (for_others) {
    for (const fs::path& folder : {all, options.folders}) {
      if (Status status = check_passable(folder); !status.ok()) return status;
    }
  }
  if (lock.is_held()) return {};
  auto own = FileLock::try_file(options.folders / kJobsLock);
  if (!own.ok()) return own.status();
  // Between its making and its lock another node may have taken it for a dead one's.
  if (!own->is_of(options.folders / kJobsLock))
    return unavailable(options.folders.string() + " was removed by another node: submit again");
  lock = *std::move(own);
  std::error_code error;
  for (fs::directory_iterator at(all, error), end; !error && at != end; at.increment(error)) {
    if (at->path() == options.folders || !check_cache_folder(at->path()).ok()) continue;
    const auto dead = FileLock::of_dead(at->path() / kJobsLock);
    if (dead.ok()) remove_jobs_of(at->path());
  }
  return {};
}

Status JobFiles::Disk::copy(const JobFile& from, const fs::path& to,
                            const std::optional<JobUser>& owner) {
  const fs::path source = cached(from.hash);
  FileDescriptor in(::open(source.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!in)
    return not_found("'" + from.path +
                     "' is not in the node's cache of job files any more; submit again");
  FileDescriptor out(::open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
                            from.executable ? 0755 : 0644));
  if (!out) return errno_status(errno, "writing " + to.string());
  ContentHash hash;
  std::vector<char> block(1 << 20);
  std::uint64_t bytes = 0;
  while (true) {
    const ssize_t got = ::read(in.get(), block.data(), block.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno_status(errno, source.string());
    if (got == 0) break;
    const std::string_view part(block.data(), static_cast<std::size_t>(got));
    hash.add(part);
    bytes += part.size();
    if (Status status = write_file(out.get(), part, to); !status.ok()) return status;
  }
  const std::string found = hash.finish();
  if (found == from.hash && bytes != from.bytes)
    return invalid_argument(
        "'" + from.path + "' changed while it was being read where it was submitted (from " +
        std::to_string(from.bytes) + " to " + std::to_string(bytes) + " bytes); submit again");
  if (found != from.hash) {
    ::unlink(source.c_str());
    return not_found(
        "'" + from.path +
        "' in the node's cache of job files was damaged, and is removed from it; submit again");
  }
  if (owner && ::fchown(out.get(), owner->uid, owner->gid) != 0)
    return errno_status(errno, to.string());
  ::futimens(in.get(), nullptr);  // used just now: stays in the cache
  return {};
}

Status JobFiles::Disk::fill(const fs::path& work, const std::vector<JobFile>& files,
                            const std::optional<JobUser>& owner) {
  const auto own = [&](const fs::path& path) -> Status {
    if (owner && ::lchown(path.c_str(), owner->uid, owner->gid) != 0)
      return errno_status(errno, path.string());
    return {};
  };
  // Links come last: nothing is written through one.
  for (JobFile::Kind kind : {JobFile::Kind::kFolder, JobFile::Kind::kFile, JobFile::Kind::kLink}) {
    for (const JobFile& file : files) {
      if (file.kind != kind) continue;
      if (Status status = check_path(file.path); !status.ok()) return status;
      const fs::path path = work / file.path;
      for (fs::path parent = work; const fs::path& part : fs::path(file.path).parent_path()) {
        parent /= part;
        if (::mkdir(parent.c_str(), 0755) == 0) {
          if (Status status = own(parent); !status.ok()) return status;
        } else if (struct stat info;
                   ::lstat(parent.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) {
          return invalid_argument("'" + file.path + "' is in something that is not a folder");
        }
      }
      if (kind == JobFile::Kind::kFile) {
        if (Status status = copy(file, path, owner); !status.ok()) return status;
        continue;
      }
      const bool made = kind == JobFile::Kind::kFolder
                            ? ::mkdir(path.c_str(), 0755) == 0 || errno == EEXIST
                            : ::symlink(file.target.c_str(), path.c_str()) == 0;
      if (!made) return errno_status(errno, "making " + path.string());
      if (Status status = own(path); !status.ok()) return status;
    }
  }
  return {};
}

Status JobFiles::Disk::check_share(const JobUser& user, std::uint64_t bytes) const {
  std::uint64_t of_all = 0, of_user = 0;
  for (const auto& [job, folder] : taken) {
    of_all += folder.bytes;
    if (folder.user == user.uid) of_user += folder.bytes;
  }
  const auto disk = disk_space(options.folders);
  const std::uint64_t limit =
      std::min(options.user_bytes_max,
               disk.ok() ? share_of(*disk, of_all, kUserParts) : options.user_bytes_max);
  if (of_user + bytes <= limit) return {};
  return resource_exhausted("folders of " + user.name + "'s jobs on this node were made of " +
                            std::to_string(of_user) + " bytes, and this job brings " +
                            std::to_string(bytes) + ": a user may have " + std::to_string(limit) +
                            " of " + disk_text(options.folders));
}

Result<JobFolder> JobFiles::Disk::unpack(JobId job, const std::vector<JobFile>& files,
                                         const JobFile& program,
                                         const std::optional<JobUser>& owner) {
  if (Status status = cache.check(); !status.ok()) return status;
  if (Status status = open_folders(owner.has_value()); !status.ok()) return status;
  const fs::path root = options.folders / job.hex();
  JobFolder folder;
  folder.work = root / "work";
  // Until all is there the folder is the node's own, and the job's user does not get through it. A
  // user who could exchange a part of it meanwhile would make this process write elsewhere.
  const auto give_away = [&](const fs::path& made) -> Status {
    if (owner && ::lchown(made.c_str(), owner->uid, owner->gid) != 0)
      return errno_status(errno, made.string());
    return {};
  };
  const auto make = [&]() -> Status {
    remove_folder(root);
    for (const fs::path& made : {root, folder.work}) {
      if (::mkdir(made.c_str(), 0700) != 0)
        return errno_status(errno, "making folder " + made.string());
    }
    if (Status status = give_away(folder.work); !status.ok()) return status;
    if (!program.path.empty()) {
      if (Status status = check_path(program.path); !status.ok()) return status;
      if (program.path.find('/') != std::string::npos)
        return invalid_argument("the program's name has a '/': " + program.path);
      folder.program = root / program.path;
      if (Status status = copy(program, folder.program, owner); !status.ok()) return status;
    }
    if (Status status = fill(folder.work, files, owner); !status.ok()) return status;
    return give_away(root);
  };
  std::uint64_t bytes = program.bytes;
  for (const JobFile& file : files) {
    bytes += file.bytes;
    needed[file.hash] = deadline_after(kNeededFor);
  }
  needed[program.hash] = deadline_after(kNeededFor);
  Status status = owner ? check_share(*owner, bytes) : Status();
  if (status.ok()) {
    status = cache.with_room(bytes, keeps(), [&] {
      Status made = make();
      if (!made.ok()) remove_folder(root);
      return made;
    });
  }
  if (status.ok() && owner) taken[job] = {owner->uid, bytes};
  for (const JobFile& file : files) needed.erase(file.hash);
  needed.erase(program.hash);
  trim();
  if (status.ok()) return folder;
  return status.with_context("unpacking the job's folder");
}

// -- On the loop

JobFiles::JobFiles(EventLoop& loop, JobFilesOptions options)
    : loop_(loop), options_(std::move(options)), disk_(std::make_shared<Disk>(options_)) {
  if (simulation()) return;
  if (Status status = thread_.start(); !status.ok())  // each job tries again, and is told
    LOG(warn, "jobs cannot bring files: {}", status.message());
}

JobFiles::~JobFiles() {
  lifetime_.end();
  thread_.finish();
}

template <class Work, class Done>
void JobFiles::on_disk(Work work, Done done) {
  has_work_ = true;
  auto answer = lifetime_.guard(std::move(done));
  if (Status status = thread_.start(); !status.ok())
    return loop_.post([status, answer = std::move(answer)]() mutable { answer(status); });
  thread_.post([this, disk = disk_, work = std::move(work), answer = std::move(answer)]() mutable {
    auto result = std::make_shared<decltype(work(*disk))>(work(*disk));
    disk.reset();
    // The thread is joined before `this` goes.
    loop_.post([result, answer = std::move(answer)]() mutable { answer(std::move(*result)); });
  });
}

Status JobFiles::check_size(std::uint64_t bytes, std::uint64_t count) const {
  if (bytes > options_.job_bytes_max) {
    return resource_exhausted(
        "the files have " + std::to_string(bytes) + " bytes; this node takes jobs with up to " +
        std::to_string(options_.job_bytes_max) + " (starling start --job-size-limit)");
  }
  if (count > options_.job_files_max) {
    return resource_exhausted("there are " + std::to_string(count) +
                              " files; a node takes jobs with up to " +
                              std::to_string(options_.job_files_max));
  }
  return {};
}

void JobFiles::offer(const control::OfferFiles& offer,
                     std::function<void(Result<control::FilesWanted>)> done) {
  if (Status status =
          check_size(offer.bytes, std::max<std::uint64_t>(offer.count, offer.hashes.size()));
      !status.ok())
    return done(status);
  for (const std::string& hash : offer.hashes) {
    if (!is_content_hash(hash))
      return done(invalid_argument("a file was offered without a proper hash"));
  }
  on_disk(
      [hashes = offer.hashes](Disk& disk) { return disk.missing(hashes); },
      [done = std::move(done)](Result<control::FilesWanted> wanted) { done(std::move(wanted)); });
}

void JobFiles::store(std::uint64_t sender, control::StoreFile part,
                     std::function<void(Status)> done) {
  if (!is_content_hash(part.hash))
    return done(invalid_argument("a file was sent without a proper hash"));
  if (Status status = check_size(part.bytes, 1); !status.ok()) return done(status);
  const std::uint64_t bytes = part.data.size();
  if (queued_bytes_ + bytes > options_.queued_bytes_max)
    return done(resource_exhausted(
        "the node's disk is too slow for what is being shipped to it; try again"));
  queued_bytes_ += bytes;
  on_disk([sender, part = std::move(part)](Disk& disk) { return disk.store(sender, part); },
          [this, bytes, done = std::move(done)](Status status) {
            queued_bytes_ -= bytes;
            done(std::move(status));
          });
}

void JobFiles::read(const std::string& hash, std::uint64_t offset,
                    std::function<void(Result<std::string>)> done) {
  if (!is_content_hash(hash))
    return done(invalid_argument("a file was asked for without a proper hash"));
  on_disk([hash, offset](Disk& disk) { return disk.read(hash, offset); },
          [done = std::move(done)](Result<std::string> part) { done(std::move(part)); });
}

void JobFiles::forget(std::uint64_t sender) {
  if (!has_work_) return;
  on_disk([sender](Disk& disk) { return disk.forget(sender), Status(); }, [](Status) {});
}

void JobFiles::unpack(JobId job, std::vector<JobFile> files, JobFile program,
                      std::optional<JobUser> owner, std::function<void(Result<JobFolder>)> done) {
  std::uint64_t bytes = program.bytes;
  for (const JobFile& file : files) {
    bytes += std::min(file.bytes, options_.job_bytes_max + 1);  // the sum must not overflow
    if (file.kind == JobFile::Kind::kFile && !is_content_hash(file.hash))
      return done(invalid_argument("'" + file.path + "' has no proper hash"));
    if (bytes > options_.job_bytes_max) break;
  }
  if (!program.path.empty() && !is_content_hash(program.hash))
    return done(invalid_argument("the program has no proper hash"));
  if (Status status = check_size(bytes, files.size()); !status.ok()) return done(status);
  folders_.insert(job);
  on_disk([job, files = std::move(files), program = std::move(program), owner = std::move(owner)](
              Disk& disk) { return disk.unpack(job, files, program, owner); },
          [this, job, done = std::move(done)](Result<JobFolder> folder) {
            if (!folder.ok()) folders_.erase(job);
            done(std::move(folder));
          });
}

void JobFiles::trim() {
  on_disk([](Disk& disk) { return disk.trim(), Status(); }, [](Status) {});
}

void JobFiles::release(JobId job) {
  if (folders_.erase(job) == 0) return;
  on_disk(
      [job](Disk& disk) {
        remove_folder(disk.options.folders / job.hex());
        disk.taken.erase(job);
        return Status();
      },
      [](Status) {});
}

}  // namespace runtime
