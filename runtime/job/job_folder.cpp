#include "runtime/job/job_folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <sstream>

#include "runtime/job/ignore_rules.h"
#include "runtime/process/content_hash.h"
#include "runtime/process/file_util.h"

namespace runtime {

namespace fs = std::filesystem;

namespace {

constexpr const char* kIgnoreFile = ".starlingignore";
constexpr std::size_t kIgnoreBytesMax = 1 << 20;
constexpr std::size_t kDepthMax = 200;
// A folder with more is not what was meant, and looking through it would take long.
constexpr std::size_t kFilesMax = 1'000'000;

const char* kind_name(mode_t mode) {
  if (S_ISSOCK(mode)) return "a socket";
  if (S_ISFIFO(mode)) return "a named pipe";
  if (S_ISBLK(mode) || S_ISCHR(mode)) return "a device";
  return "neither file nor folder";
}

bool leads_out(const fs::path& folder, const fs::path& link, const fs::path& target) {
  if (target.is_absolute()) return true;
  const fs::path lexical = (link.parent_path() / target)
                               .lexically_normal()
                               .lexically_relative(folder.lexically_normal());
  return lexical.empty() || *lexical.begin() == "..";
}

/// One walk through a folder.
class Scanner {
 public:
  explicit Scanner(fs::path folder) : folder_(std::move(folder)) {}

  Status walk(const fs::path& at, const std::string& inside) {
    struct stat info;
    if (::stat(at.c_str(), &info) != 0) return errno_status(errno, at.string());
    const std::pair identity(info.st_dev, info.st_ino);
    if (std::find(above_.begin(), above_.end(), identity) != above_.end() ||
        above_.size() > kDepthMax) {
      return invalid_argument("working folder " + folder_.string() + ": '" + inside +
                              "' is a loop of links; name it in " + kIgnoreFile + ", or remove it");
    }
    above_.push_back(identity);
    if (Status status = read_rules(at, inside); !status.ok()) return status;
    std::error_code error;
    std::vector<fs::path> entries;
    for (fs::directory_iterator entry(at, error), end; !error && entry != end;
         entry.increment(error))
      entries.push_back(entry->path());
    if (error) return refuse(inside.empty() ? "." : inside, "cannot be read: " + error.message());
    std::sort(entries.begin(), entries.end());
    for (const fs::path& entry : entries) {
      const std::string path =
          inside.empty() ? entry.filename().string() : inside + "/" + entry.filename().string();
      if (Status status = add(entry, path); !status.ok()) return status;
    }
    above_.pop_back();
    rules_.pop_back();
    return {};
  }

  JobFolderScan take() { return std::move(scan_); }

 private:
  Status refuse(const std::string& path, const std::string& why) const {
    return invalid_argument("working folder " + folder_.string() + ": '" + path + "' " + why +
                            "; name it in " + kIgnoreFile + ", or remove it");
  }

  Status read_rules(const fs::path& at, const std::string& inside) {
    FolderRules rules{{}, inside.empty() ? 0 : inside.size() + 1};
    std::error_code error;
    if (fs::exists(at / kIgnoreFile, error)) {
      auto text = read_file(at / kIgnoreFile, kIgnoreBytesMax);
      if (!text.ok()) return text.status();
      rules.rules = IgnoreRules(*text);
    }
    rules_.push_back(std::move(rules));
    return {};
  }

  /// The nearest file that says anything of it decides.
  bool is_ignored(const std::string& path, const fs::path& entry, mode_t mode) const {
    if (fs::path(path).filename() == ".git") return true;
    // A link to a folder is shipped as a folder where it leads out, and is to be left out as one.
    bool is_folder = S_ISDIR(mode);
    std::error_code error;
    if (S_ISLNK(mode) && fs::is_directory(entry, error))
      is_folder = leads_out(folder_, entry, fs::read_symlink(entry, error));
    for (auto at = rules_.rbegin(); at != rules_.rend(); ++at) {
      if (at->rules.empty()) continue;
      const auto told = at->rules.ignores(std::string_view(path).substr(at->prefix), is_folder);
      if (told) return *told;
    }
    return false;
  }

  Status add(const fs::path& entry, const std::string& path) {
    struct stat info;
    if (::lstat(entry.c_str(), &info) != 0)
      return errno == ENOENT ? Status() : errno_status(errno, entry.string());  // removed meanwhile
    if (is_ignored(path, entry, info.st_mode)) return {};
    if (scan_.files.size() >= kFilesMax)
      return refuse(path, "is one of more than " + std::to_string(kFilesMax) +
                              " files, which is more than a job may bring");
    if (S_ISLNK(info.st_mode)) {
      std::error_code error;
      const fs::path target = fs::read_symlink(entry, error);
      if (error) return errno_status(error.value(), entry.string());
      if (::stat(entry.c_str(), &info) != 0) {
        if (errno == ELOOP) return refuse(path, "is a loop of links");
        if (errno != ENOENT) return errno_status(errno, entry.string());
        if (leads_out(folder_, entry, target))
          return refuse(path, "is a link to " + target.string() + ", which is not there");
      }
      if (!leads_out(folder_, entry, target)) {
        JobFile link{path, JobFile::Kind::kLink, false, 0, "", target.string()};
        return keep(std::move(link), entry);
      }
    }
    if (S_ISDIR(info.st_mode)) {
      if (Status status = keep(JobFile{path, JobFile::Kind::kFolder, false, 0, "", ""}, entry);
          !status.ok())
        return status;
      return walk(entry, path);
    }
    if (!S_ISREG(info.st_mode))
      return refuse(path,
                    std::string("is ") + kind_name(info.st_mode) + ", which cannot be shipped");
    if (::access(entry.c_str(), R_OK) != 0) return refuse(path, "cannot be read by you");
    JobFile file{path,
                 JobFile::Kind::kFile,
                 (info.st_mode & 0111) != 0,
                 static_cast<std::uint64_t>(info.st_size),
                 "",
                 ""};
    scan_.bytes += file.bytes;
    return keep(std::move(file), entry);
  }

  Status keep(JobFile file, const fs::path& source) {
    scan_.files.push_back(std::move(file));
    scan_.sources.push_back(source);
    return {};
  }

  struct FolderRules {
    IgnoreRules rules;
    std::size_t prefix = 0;  // of a path that is in the folder, up to what the rules are asked
  };

  const fs::path folder_;
  std::vector<FolderRules> rules_;  // of the folders above, as above_
  std::vector<std::pair<dev_t, ino_t>> above_;
  JobFolderScan scan_;
};

}  // namespace

Result<JobFolderScan> scan_job_folder(const fs::path& folder) {
  std::error_code error;
  if (!fs::exists(folder, error))
    return not_found("working folder " + folder.string() + " does not exist");
  if (!fs::is_directory(folder, error))
    return invalid_argument("working folder " + folder.string() + " is not a folder");
  Scanner scanner(folder);
  if (Status status = scanner.walk(folder, ""); !status.ok()) return status;
  return scanner.take();
}

Status hash_files(JobFolderScan& scan) {
  for (std::size_t i = 0; i < scan.files.size(); ++i) {
    if (scan.files[i].kind != JobFile::Kind::kFile) continue;
    std::uint64_t bytes = 0;
    auto hash = content_hash(scan.sources[i], &bytes);
    if (!hash.ok()) return hash.status();
    if (bytes != scan.files[i].bytes)
      return invalid_argument(scan.sources[i].string() + " changed while it was being read (from " +
                              std::to_string(scan.files[i].bytes) + " to " + std::to_string(bytes) +
                              " bytes); submit again when nothing writes to it");
    scan.files[i].hash = *std::move(hash);
  }
  return {};
}

std::string size_text(std::uint64_t bytes) {
  const char* unit = "bytes";
  double amount = static_cast<double>(bytes);
  for (const char* larger : {"KiB", "MiB", "GiB", "TiB"}) {
    if (amount < 1024) break;
    amount /= 1024;
    unit = larger;
  }
  char text[48];
  std::snprintf(text, sizeof text, "%.4g %s", amount, unit);
  return text;
}

std::string largest_files(const JobFolderScan& scan, std::size_t count) {
  std::vector<const JobFile*> files;
  for (const JobFile& file : scan.files) {
    if (file.kind == JobFile::Kind::kFile) files.push_back(&file);
  }
  count = std::min(count, files.size());
  std::partial_sort(files.begin(), files.begin() + static_cast<std::ptrdiff_t>(count), files.end(),
                    [](const JobFile* a, const JobFile* b) { return a->bytes > b->bytes; });
  std::string text;
  for (std::size_t i = 0; i < count; ++i)
    text += (i == 0 ? "" : ", ") + files[i]->path + " (" + size_text(files[i]->bytes) + ")";
  return text;
}

}  // namespace runtime
