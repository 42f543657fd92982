#include "rl/checkpoint/hash_file_ranges.h"

#include <gtest/gtest.h>

#include <fstream>

#include "runtime/core/xxh3_hash.h"
#include "tests/support/expect_failure.h"
#include "tests/support/file_bytes.h"
#include "tests/support/temporary_folder.h"

namespace rl {
namespace {

using runtime::ErrorCode;

class HashFileRangesTest : public ::testing::Test {
 protected:
  std::filesystem::path file(const std::string& name, const std::string& bytes) const {
    std::ofstream(folder_.file(name), std::ios::binary) << bytes;
    return folder_.path() / name;
  }
  static std::string hash(const std::string& bytes) {
    runtime::Xxh3Hash hash;
    hash.add(bytes.data(), bytes.size());
    return hash.hex();
  }

  const support::TemporaryFolder folder_;
};

// Past the page cache only whole pages are read, and a block of them at a time.
TEST_F(HashFileRangesTest, ARangeMayBeginAndEndAnywhere) {
  constexpr std::uint64_t kBlock = 4 << 20;
  const std::string large = support::drawn_bytes(2 * kBlock + 5000), small = "seven";
  const std::vector<std::filesystem::path> paths{file("large", large), file("small", small)};
  const std::vector<FileRange> ranges{{0, 0, large.size()},
                                      {1, 0, small.size()},
                                      {0, 1, 4095},
                                      {0, 4097, kBlock + 4098},
                                      {0, large.size() - 3, large.size()},
                                      {1, 2, 2}};
  for (const ReadHow how : {ReadHow::kThroughPageCache, ReadHow::kPastPageCache}) {
    const auto hashes = hash_file_ranges(paths, ranges, how);
    ASSERT_EQ(hashes.size(), ranges.size());
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      ASSERT_TRUE(hashes[i].ok()) << hashes[i].status().to_string();
      const std::string& bytes = ranges[i].file == 0 ? large : small;
      EXPECT_EQ(*hashes[i], hash(bytes.substr(ranges[i].begin, ranges[i].end - ranges[i].begin)))
          << "range " << i;
    }
  }
}

TEST_F(HashFileRangesTest, AFaultIsThatRangesAlone) {
  const std::vector<std::filesystem::path> paths{file("there", "seven"), folder_.path() / "gone"};
  const auto hashes =
      hash_file_ranges(paths, {{1, 0, 5}, {0, 0, 5}, {0, 3, 6}}, ReadHow::kThroughPageCache);
  ASSERT_EQ(hashes.size(), 3u);
  support::expect_failure(hashes[0].status(), ErrorCode::kNotFound, {folder_.file("gone")});
  EXPECT_EQ(*hashes[1], hash("seven"));
  support::expect_failure(hashes[2].status(), ErrorCode::kUnavailable,
                          {folder_.file("there"), "cut"});
  EXPECT_TRUE(hash_file_ranges(paths, {}, ReadHow::kThroughPageCache).empty());
}

TEST_F(HashFileRangesTest, AFolderIsNoFileAndHasNoLength) {
  EXPECT_EQ(*regular_file_bytes(file("there", "seven")), 5u);
  support::expect_failure(regular_file_bytes(folder_.path()).status(), ErrorCode::kInvalidArgument,
                          {folder_.path().string()});
  support::expect_failure(sync_file(folder_.path() / "gone"), ErrorCode::kNotFound,
                          {folder_.file("gone")});
  EXPECT_TRUE(sync_file(folder_.path() / "there").ok());
}

}  // namespace
}  // namespace rl
