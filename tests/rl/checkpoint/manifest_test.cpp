#include "rl/checkpoint/manifest.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/support/temporary_folder.h"

namespace rl {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;
using runtime::ErrorCode;

std::string manifest_hash(std::string_view bytes) {
  runtime::Xxh3Hash hash;
  hash.add(bytes.data(), bytes.size());
  return hash.hex();
}

// Bytes that no two pages have alike.
std::string manifest_bytes(std::size_t size) {
  std::string bytes(size, '\0');
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>((i * 2654435761U) >> 24);
  return bytes;
}

void put_file(const fs::path& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), std::ssize(bytes));
}

void flip_bit(const fs::path& path, std::uint64_t at) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(static_cast<std::streamoff>(at));
  const int byte = file.get();
  file.seekp(static_cast<std::streamoff>(at));
  file.put(static_cast<char>(byte ^ 4));
}

class ManifestTest : public ::testing::Test {
 protected:
  // What parts of the file a writer has hashed.
  void add(const std::string& name, std::string_view bytes,
           const std::vector<std::pair<std::uint64_t, std::uint64_t>>& parts) {
    put_file(folder_.path() / name, bytes);
    HashedFile file{name, bytes.size(), {}};
    for (const auto& [begin, end] : parts)
      file.ranges.push_back({begin, end, manifest_hash(bytes.substr(begin, end - begin))});
    files_.push_back(std::move(file));
  }

  std::string verify() const { return verify_files(folder_.path(), files_).message(); }

  support::TemporaryFolder folder_;
  std::vector<HashedFile> files_;
};

TEST_F(ManifestTest, WhatWritersLeftOutIsHashed) {
  const std::string bytes = manifest_bytes(40'000'123);
  add("all", bytes, {{0, 40'000'123}});
  add("parts", bytes, {{1000, 2'000'001}, {2'000'001, 2'100'000}, {39'000'000, 40'000'000}});
  add("none", bytes, {});
  add("empty", "", {});
  ASSERT_TRUE(complete_hashes(folder_.path(), files_).ok());
  for (const HashedFile& file : files_) {
    std::uint64_t at = 0;
    for (const RangeHash& range : file.ranges) {
      EXPECT_EQ(range.begin, at) << file.path;
      EXPECT_EQ(range.hash,
                manifest_hash(std::string_view(file.bytes == 0 ? "" : bytes.c_str(), file.bytes)
                                  .substr(at, range.end - at)))
          << file.path;
      at = range.end;
    }
    EXPECT_EQ(at, file.bytes) << file.path;
  }
  EXPECT_EQ(files_[0].ranges.size(), 1u);
  EXPECT_EQ(files_[1].ranges.size(), 7u);  // a gap ends at 32 MiB
  EXPECT_EQ(files_[2].ranges.size(), 2u);
  EXPECT_EQ(files_[3].ranges.size(), 1u);
  EXPECT_EQ(verify(), "");
}

TEST_F(ManifestTest, AFlippedBitIsFoundInEveryRange) {
  add("f", manifest_bytes(400'000), {{0, 100'000}, {100'000, 100'001}, {200'000, 300'000}});
  ASSERT_TRUE(complete_hashes(folder_.path(), files_).ok());
  for (const std::uint64_t at : {0, 99'999, 100'000, 150'000, 250'000, 399'999}) {
    flip_bit(folder_.path() / "f", at);
    EXPECT_NE(verify().find("/f: damaged, its checksum is wrong"), std::string::npos) << at;
    flip_bit(folder_.path() / "f", at);
    EXPECT_EQ(verify(), "");
  }
}

TEST_F(ManifestTest, TheFirstFileThatIsNotWhatItWasIsNamed) {
  add("a", "aaaa", {});
  add("b", "bbbb", {});
  ASSERT_TRUE(complete_hashes(folder_.path(), files_).ok());
  put_file(folder_.path() / "b", "bbb");
  EXPECT_NE(verify().find("/b: 3 bytes instead of 4"), std::string::npos) << verify();
  fs::remove(folder_.path() / "a");
  EXPECT_NE(verify().find("/a"), std::string::npos) << verify();
  ASSERT_EQ(::mkfifo((folder_.path() / "a").c_str(), 0600), 0);
  EXPECT_NE(verify().find("/a: not a file"), std::string::npos) << verify();
}

TEST_F(ManifestTest, ReadsWhatItWrites) {
  const Manifest manifest{
      7,
      {{"actor/model", 5, {{0, 3, manifest_hash("abc")}, {3, 5, manifest_hash("de")}}},
       {"state", 2, {{0, 2, manifest_hash("xy")}}}}};
  const ordered_json json = manifest.to_json();
  EXPECT_EQ(json["files"][0]["ranges"][1], ordered_json({2, manifest_hash("de")}));
  EXPECT_EQ(json["files"][1]["xxh3_128"], manifest_hash("xy"));
  const auto read = Manifest::from_json(json);
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(*read, manifest);
}

// Of the version before there were ranges.
TEST_F(ManifestTest, ReadsEarlierManifests) {
  const auto read = Manifest::from_json(ordered_json::parse(
      R"({"format": 1, "step": 3, "files": [{"path": "a/b", "bytes": 9, "xxh3_128": "x"}]})"));
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(*read, (Manifest{3, {{"a/b", 9, {{0, 9, "x"}}}}}));
}

TEST_F(ManifestTest, RefusesOthers) {
  const auto refusal = [](const std::string& files) {
    const auto json = ordered_json::parse(R"({"format": 2, "step": 3, "files": )" + files + "}");
    const auto read = Manifest::from_json(json);
    EXPECT_EQ(read.status().code(), ErrorCode::kInvalidArgument) << files;
    return read.status().message();
  };
  for (const char* file :
       {R"(3)", R"({"path": "a"})", R"({"path": 3, "bytes": 1, "xxh3_128": "x"})",
        R"({"path": "a", "bytes": -1, "xxh3_128": "x"})", R"({"path": "a", "bytes": 1})",
        R"({"path": "a", "bytes": 1, "xxh3_128": 3})", R"({"path": "a", "bytes": 1, "ranges": 3})",
        R"({"path": "a", "bytes": 0, "ranges": []})",
        R"({"path": "a", "bytes": 1, "ranges": [["x", 1]]})",
        R"({"path": "a", "bytes": 3, "ranges": [[1, "x"], [1, "x"]]})",
        R"({"path": "a", "bytes": 3, "ranges": [[3, "x"], [0, "x"]]})",
        R"({"path": "a", "bytes": 3, "ranges": [[0, "x"], [3, "x"]]})",
        R"({"path": "a", "bytes": 3, "ranges": [[1, "x"], [18446744073709551615, "x"]]})"})
    EXPECT_EQ(refusal("[" + std::string(file) + "]"), "manifest.json is damaged");
  EXPECT_EQ(refusal("[]"), "manifest.json lists no files");
  EXPECT_NE(refusal(R"([{"path": "../a", "bytes": 1, "xxh3_128": "x"}])").find("outside"),
            std::string::npos);
  EXPECT_NE(Manifest::from_json({{"format", 3}, {"files", ordered_json::array({1})}})
                .status()
                .message()
                .find("later version"),
            std::string::npos);
}

}  // namespace
}  // namespace rl
