#include "rl/checkpoint/shared_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/file_bytes.h"
#include "tests/support/file_size_limit.h"
#include "tests/support/temporary_folder.h"

namespace rl {
namespace {

namespace fs = std::filesystem;

using support::content_of;
using support::drawn_bytes;

// Each writer has every `writers`th stretch of these lengths.
void write_together(const fs::path& path, const std::string& bytes, std::size_t writers) {
  constexpr std::size_t kLengths[] = {1, 4095, 70'001, 5'000'000, 3, 300'000, 8192};
  std::vector<std::thread> threads;
  for (std::size_t writer = 0; writer < writers; ++writer) {
    threads.emplace_back([&, writer] {
      auto file = SharedFile::open(path, bytes.size(), /*reserves=*/writer == 0);
      ASSERT_TRUE(file.ok()) << file.status().to_string();
      std::size_t turn = 0;
      for (std::size_t at = 0; at < bytes.size(); ++turn) {
        const std::size_t length = std::min(kLengths[turn % 7], bytes.size() - at);
        if (turn % writers == writer) {
          const auto written = file->write(at, std::string_view(bytes).substr(at, length));
          ASSERT_TRUE(written.ok()) << written.to_string();
        }
        at += length;
      }
      const auto finished = file->finish();
      ASSERT_TRUE(finished.ok()) << finished.to_string();
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(SharedFile, HasTheBytesOfAllWriters) {
  const support::TemporaryFolder folder;
  for (const std::size_t size : {std::size_t{0}, std::size_t{10'000}, std::size_t{40'000'123}}) {
    const std::string bytes = drawn_bytes(size);
    for (const std::size_t writers : {1, 2, 4}) {
      const fs::path path = folder.file(std::to_string(size) + "." + std::to_string(writers));
      write_together(path, bytes, writers);
      EXPECT_TRUE(content_of(path) == bytes) << size << " bytes, " << writers << " writers";
    }
  }
}

TEST(SharedFile, NamesAFileThatWasCutMeanwhile) {
  const support::TemporaryFolder folder;
  const fs::path path = folder.file("weights");
  auto file = SharedFile::open(path, 1000, /*reserves=*/true);
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(file->write(0, std::string(1000, 'x')).ok());
  ASSERT_TRUE(file->write(0, std::string(10, 'x')).ok());  // which is kept back
  ASSERT_EQ(::truncate(path.c_str(), 0), 0);
  const auto finished = file->finish();
  EXPECT_EQ(finished.code(), runtime::ErrorCode::kUnavailable);
  EXPECT_NE(finished.message().find(path.string()), std::string::npos) << finished.message();
  EXPECT_NE(finished.message().find("10 bytes instead of 1000"), std::string::npos)
      << finished.message();
}

TEST(SharedFile, LeavesALargerFileAlone) {
  const support::TemporaryFolder folder;
  const fs::path path = folder.file("weights");
  std::ofstream(path) << "another program's";
  const auto file = SharedFile::open(path, 4, /*reserves=*/true);
  EXPECT_EQ(file.status().code(), runtime::ErrorCode::kInvalidArgument);
  EXPECT_EQ(content_of(path), "another program's");
}

TEST(SharedFile, AFullDiskIsAnErrorBeforeAnythingIsWritten) {
  const support::TemporaryFolder folder;
  const fs::path path = folder.file("weights");
  const support::FileSizeLimit limit(1000);
  for (const bool reserves : {true, false}) {
    const auto file = SharedFile::open(path, 2000, reserves);
    EXPECT_EQ(file.status().code(), runtime::ErrorCode::kResourceExhausted);
    EXPECT_NE(file.status().message().find(path.string()), std::string::npos);
  }
}

// A name that a file may have, and a longer one may not.
TEST(SharedFile, ANoteThatCannotBeWrittenIsNone) {
  for (const std::size_t length : {7, 250}) {
    const support::TemporaryFolder folder;
    const std::string bytes(RangeHasher::kBytesMin, 'b');
    auto file = SharedFile::open(folder.file(std::string(length, 'w')), bytes.size(),
                                 /*reserves=*/false);
    ASSERT_TRUE(file.ok()) << file.status().to_string();
    ASSERT_TRUE(file->write(0, std::as_bytes(std::span(bytes))).ok());
    EXPECT_TRUE(file->finish().ok());
    const auto files = std::distance(fs::directory_iterator(folder.path()), {});
    EXPECT_EQ(files, length == 7 ? 2 : 1);
  }
}

TEST(SharedFile, NeedsItsFolder) {
  const support::TemporaryFolder folder;
  const auto file =
      SharedFile::open(fs::path(folder.file("gone")) / "weights", 10, /*reserves=*/false);
  EXPECT_EQ(file.status().code(), runtime::ErrorCode::kNotFound);
}

}  // namespace
}  // namespace rl
