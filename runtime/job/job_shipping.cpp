#include "runtime/job/job_shipping.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <set>

#include "runtime/control/job_client.h"
#include "runtime/job/job_folder.h"
#include "runtime/transport/blocking.h"
#include "runtime/transport/file_descriptor.h"

namespace runtime {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kShipPartBytes = 2 << 20;
constexpr std::size_t kHashesAtOnce = 50'000;
constexpr auto kShipPartTimeout = std::chrono::seconds(60);
constexpr std::size_t kLargestShown = 5;

bool is_of_the_system(const fs::path& program) {
  for (const char* folder : {"/bin/", "/sbin/", "/usr/", "/lib/", "/opt/"}) {
    if (program.string().starts_with(folder)) return true;
  }
  return false;
}

/// The file that argv[0] names on this machine, unless the job finds it by itself.
Result<std::optional<fs::path>> program_to_ship(const std::string& command,
                                                const std::optional<fs::path>& folder) {
  const std::optional<fs::path> none;
  if (command.find('/') == std::string::npos) return none;  // from the node's PATH
  std::error_code error;
  if (folder && fs::path(command).is_relative() && fs::exists(*folder / command, error))
    return none;
  const fs::path here = fs::absolute(command, error);
  struct stat info;
  if (error || ::stat(here.c_str(), &info) != 0) return none;  // it may be on the node
  if (!S_ISREG(info.st_mode)) return invalid_argument(here.string() + " is not a program");
  if (is_of_the_system(here.lexically_normal())) return none;
  return std::optional<fs::path>(here);
}

Status send_file(EventLoop& loop, NodeClient& client, const JobFile& file, const fs::path& source) {
  FileDescriptor fd(::open(source.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return errno_status(errno, source.string());
  std::uint64_t offset = 0;
  do {
    std::string part(std::min<std::uint64_t>(kShipPartBytes, file.bytes - offset), '\0');
    const ssize_t got =
        part.empty() ? 0 : ::pread(fd.get(), part.data(), part.size(), static_cast<off_t>(offset));
    if (got < 0) return errno_status(errno, source.string());
    if (static_cast<std::size_t>(got) != part.size())
      return invalid_argument(source.string() +
                              " changed while it was being read; submit again when nothing writes "
                              "to it");
    const Deadline deadline = deadline_after(kShipPartTimeout);
    Status sent = wait_done(loop, deadline, [&](auto done) {
      JobClient(client).store_file(file.hash, file.bytes, offset, std::move(part), deadline, done);
    });
    if (!sent.ok()) return sent.with_context("shipping " + source.string());
    offset += static_cast<std::uint64_t>(got);
  } while (offset < file.bytes);
  return {};
}

Result<std::vector<std::uint32_t>> offer(EventLoop& loop, NodeClient& client,
                                         const JobFolderScan& scan,
                                         std::vector<std::string> hashes) {
  const Deadline deadline = deadline_after(kShipPartTimeout);
  return wait_for<std::vector<std::uint32_t>>(loop, deadline, [&](auto done) {
    JobClient(client).offer_files(scan.bytes, scan.files.size(), std::move(hashes), deadline, done);
  });
}

Status send_missing(EventLoop& loop, NodeClient& client, const JobFolderScan& scan) {
  std::vector<std::string> hashes;
  std::vector<std::size_t> places;
  std::set<std::string> seen;
  for (std::size_t i = 0; i <= scan.files.size(); ++i) {
    const bool is_end = i == scan.files.size();
    if (!is_end && scan.files[i].kind == JobFile::Kind::kFile &&
        seen.insert(scan.files[i].hash).second) {
      hashes.push_back(scan.files[i].hash);
      places.push_back(i);
    }
    if (hashes.empty() || (!is_end && hashes.size() < kHashesAtOnce)) continue;
    auto wanted = offer(loop, client, scan, std::exchange(hashes, {}));
    if (!wanted.ok()) return wanted.status();
    for (std::uint32_t place : *wanted) {
      if (place >= places.size())
        return internal_error("the node wants a file that it was not offered");
      if (Status status =
              send_file(loop, client, scan.files[places[place]], scan.sources[places[place]]);
          !status.ok())
        return status;
    }
    places.clear();
  }
  return {};
}

struct Shipment {
  JobFolderScan scan;  // the program is the last of its files, if it is shipped
  bool program = false;
};

// What is to be sent, and whether the node has room for it; nothing is read yet.
Result<Shipment> gather(EventLoop& loop, NodeClient& client,
                        const std::optional<std::string>& working_dir, const std::string& command) {
  std::error_code error;
  Shipment shipment;
  std::optional<fs::path> folder;
  if (working_dir) {
    folder = fs::absolute(*working_dir, error);
    auto found = scan_job_folder(*folder);
    if (!found.ok()) return found.status();
    shipment.scan = *std::move(found);
  }
  auto program = program_to_ship(command, folder);
  if (!program.ok()) return program.status();
  if (*program) {
    const std::uint64_t bytes = fs::file_size(**program, error);
    shipment.scan.files.push_back(
        {(*program)->filename().string(), JobFile::Kind::kFile, true, bytes, "", ""});
    shipment.scan.sources.push_back(**program);
    shipment.scan.bytes += bytes;
    shipment.program = true;
  }
  auto room = offer(loop, client, shipment.scan, {});
  if (!room.ok() && room.status().code() == ErrorCode::kResourceExhausted) {
    return resource_exhausted(
        (folder ? "working folder " + folder->string() : "program " + command) + " is too large (" +
        size_text(shipment.scan.bytes) + "): " + room.status().message() +
        ". The largest: " + largest_files(shipment.scan, kLargestShown) +
        ". Name what the job does not need in .starlingignore");
  }
  if (!room.ok()) return room.status();
  return shipment;
}

}  // namespace

Status check_files(EventLoop& loop, NodeClient& client,
                   const std::optional<std::string>& working_dir, const std::string& command) {
  return gather(loop, client, working_dir, command).status();
}

Status ship_files(EventLoop& loop, NodeClient& client,
                  const std::optional<std::string>& working_dir, bool node_is_here,
                  JobRequest& request) {
  if (!working_dir && node_is_here) {
    std::error_code error;
    request.working_dir = fs::current_path(error).string();
    return error ? invalid_argument("the working folder: " + error.message()) : Status();
  }
  auto shipment = gather(loop, client, working_dir, request.argv[0]);
  if (!shipment.ok()) return shipment.status();
  JobFolderScan& scan = shipment->scan;
  if (Status status = hash_files(scan); !status.ok()) return status;
  if (Status status = send_missing(loop, client, scan); !status.ok()) return status;
  if (shipment->program) {
    request.program = std::move(scan.files.back());
    scan.files.pop_back();
  }
  request.files = std::move(scan.files);
  return {};
}

}  // namespace runtime
