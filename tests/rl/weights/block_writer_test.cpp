#include "rl/weights/block_writer.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <span>
#include <string>

#include "tests/support/file_bytes.h"
#include "tests/support/file_size_limit.h"
#include "tests/support/temporary_folder.h"

namespace rl {
namespace {

namespace fs = std::filesystem;

using support::content_of;
using support::drawn_bytes;

// A new file, open for both ways of writing; without the second `past_cache` is false.
class Opened {
 public:
  Opened(const fs::path& path, bool past_cache)
      : target_{path, ::open(path.c_str(), O_WRONLY | O_CREAT, 0666),
                past_cache ? ::open(path.c_str(), O_WRONLY | O_DIRECT) : -1} {}
  ~Opened() {
    ::close(target_.fd);
    if (target_.direct_fd >= 0) ::close(target_.direct_fd);
  }
  Opened(const Opened&) = delete;
  const BlockWriter::Target& target() const { return target_; }

 private:
  BlockWriter::Target target_;
};

std::span<const std::byte> part_of(const std::string& bytes, std::size_t at, std::size_t size) {
  return std::as_bytes(std::span(bytes)).subspan(at, size);
}

// Short and long stretches, of which every third follows on none.
TEST(BlockWriter, TheFileAndTheObserverGetAllBytes) {
  const support::TemporaryFolder folder;
  const std::string bytes = drawn_bytes(40'000'123);
  constexpr std::size_t kLengths[] = {1, 4095, 70'001, 5'000'000, 3, 300'000, 8192, 9'000'000};
  for (const bool past_cache : {true, false}) {
    const fs::path path = folder.file(past_cache ? "past" : "through");
    const Opened file(path, past_cache);
    std::string observed(bytes.size(), '\0');
    std::size_t count = 0;
    BlockWriter writer(file.target(), [&](std::uint64_t at, std::span<const std::byte> written) {
      std::ranges::transform(written, observed.begin() + static_cast<std::ptrdiff_t>(at),
                             [](std::byte byte) { return static_cast<char>(byte); });
      count += written.size();
    });
    for (const bool thirds : {false, true}) {
      std::size_t turn = 0;
      for (std::size_t at = 0; at < bytes.size(); ++turn) {
        const std::size_t length = std::min(kLengths[turn % 8], bytes.size() - at);
        if ((turn % 3 == 2) == thirds) {
          const auto written = writer.write(at, part_of(bytes, at, length));
          ASSERT_TRUE(written.ok()) << written.to_string();
        }
        at += length;
      }
    }
    const auto finished = writer.finish();
    ASSERT_TRUE(finished.ok()) << finished.to_string();
    EXPECT_TRUE(content_of(path) == bytes) << past_cache;
    EXPECT_TRUE(observed == bytes) << past_cache;
    EXPECT_EQ(count, bytes.size());
  }
}

TEST(BlockWriter, AFullDiskIsAnErrorAtTheLatestAtTheEnd) {
  const support::TemporaryFolder folder;
  const std::string bytes = drawn_bytes(20'000'000);
  for (const bool past_cache : {true, false}) {
    const Opened file(folder.file("f"), past_cache);
    BlockWriter writer(file.target());
    const support::FileSizeLimit limit(6'000'000);
    runtime::Status status = writer.write(0, part_of(bytes, 0, bytes.size()));
    if (status.ok()) status = writer.finish();
    EXPECT_EQ(status.code(), runtime::ErrorCode::kResourceExhausted) << status.to_string();
    EXPECT_NE(status.message().find(folder.file("f")), std::string::npos) << status.message();
  }
}

TEST(BlockWriter, OneThatIsGivenUpStops) {
  const support::TemporaryFolder folder;
  const std::string bytes = drawn_bytes(20'000'000);
  const Opened file(folder.file("f"), true);
  BlockWriter writer(file.target());
  EXPECT_TRUE(writer.write(0, part_of(bytes, 0, bytes.size())).ok());
}

}  // namespace
}  // namespace rl
