// An actor that writes down what it runs, and a caller of it in its own process. What was
// acknowledged can be held against what ran.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/runtime.h"
#include "runtime/transport/file_descriptor.h"

namespace runtime::test {

struct LedgerEntry {
  std::int32_t caller = 0;
  std::int32_t sequence = 0;
};

/// Appends entries to a file; an entry is whole or absent whenever the process is killed, and
/// outlives it.
class EntryFile {
 public:
  explicit EntryFile(const std::string& path)
      : file_(::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600)) {}
  bool append(LedgerEntry entry) {
    return ::write(file_.get(), &entry, sizeof entry) == sizeof entry;
  }

  static std::vector<LedgerEntry> read(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::vector<LedgerEntry> entries;
    for (LedgerEntry entry; file.read(reinterpret_cast<char*>(&entry), sizeof entry);)
      entries.push_back(entry);
    return entries;
  }

 private:
  FileDescriptor file_;
};

class Ledger {
 public:
  explicit Ledger(const std::string& path) : file_(path) {}
  int record(int caller, int sequence) { return file_.append({caller, sequence}) ? sequence : -1; }
  std::string text(std::uint64_t bytes) const { return std::string(bytes, 'x'); }
  /// 1 to `count`, one by one.
  Status count_to(StreamWriter<int>& out, int count) const {
    for (int i = 1; i <= count; ++i) {
      if (Status status = out.write(i); !status.ok()) return status;
    }
    return {};
  }
  std::uint64_t measure(const std::string& bytes) const { return bytes.size(); }

 private:
  EntryFile file_;
};

inline void register_ledger(Runtime& rt) {
  rt.register_actor<Ledger>("Ledger", &Ledger::record, &Ledger::text,
                            method(&Ledger::count_to, {.concurrency_group = "stream"}),
                            &Ledger::measure);
}

/// A driver in the test's process on its own cluster, whose files are in `root`; not started
/// yet.
inline std::unique_ptr<Runtime> make_driver(const std::filesystem::path& root,
                                            std::vector<std::string> start_arguments) {
  ::unsetenv("STARLING_ADDRESS");
  ::setenv("STARLING_PROGRAM", STARLING_BIN_DIR "/starling", 1);
  ::setenv("STARLING_SESSION_ROOT", (root / "s").c_str(), 1);
  static char name[] = "test_runtime_chaos";
  static char* argv[] = {name, nullptr};
  RuntimeOptions options;
  options.start_arguments = std::move(start_arguments);
  auto driver = std::make_unique<Runtime>(1, argv, options);
  register_ledger(*driver);
  return driver;
}

/// `program --caller NAME CALLER COUNT ACKNOWLEDGED --address A` calls record(CALLER, 1..COUNT) on
/// the ledger of that name, many at a time. It notes what came back. Exit code 0: all did; 3: the
/// ledger died.
int run_caller(int argc, char** argv);
/// `program --deaf NAME COUNT BYTES TIMEOUT_MS --address A` asks for COUNT texts of BYTES and stops
/// (SIGSTOP) instead of reading them. Once it goes on, it reads them all. Exit code 0: all came; 5:
/// the time of some was up, and no more than that was wrong.
int run_deaf_caller(int argc, char** argv);

}  // namespace runtime::test
