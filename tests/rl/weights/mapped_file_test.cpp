#include "rl/weights/mapped_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/temporary_folder.h"

namespace rl {
namespace {

void drop_from_cache(const std::string& file) {
  const int fd = ::open(file.c_str(), O_RDWR);
  EXPECT_EQ(::fsync(fd), 0);
  EXPECT_EQ(::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), 0);
  ::close(fd);
}

TEST(MappedFile, ReadsWhatItMaps) {
  const support::TemporaryFolder folder;
  std::string text(300'000, 'x');
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i % 251);
  std::ofstream(folder.file("f"), std::ios::binary) << text;
  auto opened = MappedFile::open(folder.file("f"));
  ASSERT_TRUE(opened.ok()) << opened.status().to_string();
  MappedFile file = *std::move(opened);
  const std::span<const std::byte> view = file.bytes().subspan(70'000, 200'001);
  EXPECT_TRUE(file.contains(view));
  EXPECT_TRUE(file.contains(file.bytes()));
  EXPECT_FALSE(file.contains(std::as_bytes(std::span(text))));
  for (const bool past_cache : {false, true}) {
    if (past_cache) file.read_past_cache(folder.file("f"));
    for (const bool is_cached : {true, false}) {
      std::vector<std::byte> into(view.size());
      const auto read = file.read(view, into);
      ASSERT_TRUE(read.ok()) << read.to_string();
      EXPECT_TRUE(std::equal(into.begin(), into.end(), view.begin())) << past_cache << is_cached;
      drop_from_cache(folder.file("f"));
    }
    std::vector<std::byte> last(7);
    EXPECT_TRUE(file.read(file.bytes().last(7), last).ok());
    EXPECT_TRUE(std::equal(last.begin(), last.end(), file.bytes().last(7).begin()));
  }
}

// A page fault there would end the process.
TEST(MappedFile, AFileThatWasCutIsAnError) {
  const support::TemporaryFolder folder;
  std::ofstream(folder.file("f"), std::ios::binary) << std::string(300'000, 'x');
  auto file = MappedFile::open(folder.file("f"));
  ASSERT_TRUE(file.ok());
  ASSERT_EQ(::truncate(folder.file("f").c_str(), 100'000), 0);
  std::vector<std::byte> into(200'000);
  for (const bool past_cache : {false, true}) {
    if (past_cache) file->read_past_cache(folder.file("f"));
    const auto read = file->read(file->bytes().first(200'000), into);
    EXPECT_EQ(read.code(), runtime::ErrorCode::kUnavailable);
    EXPECT_NE(read.message().find(folder.file("f")), std::string::npos) << read.message();
  }
}

}  // namespace
}  // namespace rl
