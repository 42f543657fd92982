// A file that lies about sizes costs an error, not memory: each format, opened under a limit of the
// address space.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "rl/weights/weight_source.h"
#include "test_files.h"

namespace rl {
namespace {

using testing::raw;
using testing::TempFolder;

// Whether opening the file is an error with a message, in a process that may take `megabytes` more
// than it has.
bool is_cheap_error(const std::filesystem::path& file, std::size_t megabytes) {
  const pid_t child = ::fork();
  if (child == 0) {
    long pages = 0;
    if (FILE* statm = std::fopen("/proc/self/statm", "r")) {
      if (std::fscanf(statm, "%ld", &pages) != 1) ::_exit(3);
      std::fclose(statm);
    }
    const rlim_t bytes = static_cast<rlim_t>(pages) * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE)) +
                         (megabytes << 20);
    const rlimit limit{bytes, bytes};
    if (::setrlimit(RLIMIT_AS, &limit) != 0) ::_exit(3);
    const auto source = open_weights(file);
    ::_exit(!source.ok() && source.status().message().find(file.filename()) != std::string::npos
                ? 0
                : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

std::string gguf_text(const std::string& value) {
  return raw(static_cast<std::uint64_t>(value.size())) + value;
}

TEST(LyingFiles, CostAnErrorAndNoMemory) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizer's shadow takes more address space than any limit";
#endif
  constexpr std::uint64_t kHugeCount = std::uint64_t{1} << 40;
  const std::string huge = std::to_string(kHugeCount);
  TempFolder folder;
  const auto safetensors = [](const std::string& header) {
    return raw(static_cast<std::uint64_t>(header.size())) + header;
  };
  const std::string gguf = "GGUF" + raw(std::uint32_t{3});
  const std::pair<const char*, std::string> files[] = {
      {"header.safetensors", raw(kHugeCount) + "{}"},
      {"shape.safetensors",
       safetensors(R"({"a":{"dtype":"F32","shape":[)" + huge + R"(],"data_offsets":[0,8]}})") +
           "12345678"},
      {"offsets.safetensors",
       safetensors(R"({"a":{"dtype":"F32","shape":[)" + huge + R"(],"data_offsets":[0,)" +
                   std::to_string(4 * kHugeCount) + "]}}")},
      {"tensors.gguf", gguf + raw(kHugeCount) + raw(std::uint64_t{0})},
      {"entries.gguf", gguf + raw(std::uint64_t{0}) + raw(kHugeCount)},
      {"name.gguf", gguf + raw(std::uint64_t{1}) + raw(std::uint64_t{0}) + raw(kHugeCount)},
      {"array.gguf", gguf + raw(std::uint64_t{0}) + raw(std::uint64_t{1}) + gguf_text("k") +
                         raw(std::uint32_t{9}) + raw(std::uint32_t{4}) + raw(kHugeCount) +
                         std::string(64, '\0')},
      {"shape.gguf", gguf + raw(std::uint64_t{1}) + raw(std::uint64_t{0}) + gguf_text("a") +
                         raw(std::uint32_t{1}) + raw(kHugeCount) + raw(std::uint32_t{0}) +
                         raw(std::uint64_t{0}) + std::string(64, '\0')},
      {"expanded.bin",
       testing::read_file(STARLING_SOURCE_DIR "/tests/rl/weights/pytorch/refused_expanded.bin")},
      {"end.bin", "PK\3\4" + std::string(40, '\0') + "PK\5\6" + std::string(4, '\0') +
                      raw(std::uint32_t{0xffffffff}) + raw(std::uint32_t{0xffffffff}) +
                      raw(std::uint32_t{0xffffffff}) + std::string(2, '\0')},
  };
  for (const auto& [name, bytes] : files)
    EXPECT_TRUE(is_cheap_error(folder.write(name, bytes), 64)) << name;
}

}  // namespace
}  // namespace rl
