#include "placement/app/cluster_file.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/expect_failure.h"
#include "tests/support/temporary_folder.h"

namespace placement {
namespace {

namespace fs = std::filesystem;
using runtime::ErrorCode;
using support::expect_failure;

class ClusterFileTest : public ::testing::Test {
 protected:
  void write(const char* name, const std::string& text) const {
    fs::create_directories(journal_);
    std::ofstream(journal_ / name) << text;
  }

  const support::TemporaryFolder folder_;
  const fs::path journal_ = folder_.path() / "var" / "journal";
  ClusterFile file_{runtime::ClusterId::random(), "secret", runtime::NodeId::random(), ""};
};

TEST_F(ClusterFileTest, WhatIsWrittenIsReadAndIsTheUsersAlone) {
  for (const char* next : {"", "another"}) {
    file_.next_token = next;
    const runtime::Status written = write_cluster_file(journal_, file_);
    ASSERT_TRUE(written.ok()) << written.to_string();
    const auto read = read_cluster_file(journal_);
    ASSERT_TRUE(read.ok()) << read.status().to_string();
    EXPECT_EQ(*read, file_);
  }
  EXPECT_EQ(fs::status(journal_).permissions(), fs::perms::owner_all);
  EXPECT_EQ(fs::status(journal_ / "cluster.json").permissions(),
            fs::perms::owner_read | fs::perms::owner_write)
      << "it has the token";
}

TEST_F(ClusterFileTest, ANewFolderHasNoCluster) {
  for (const bool is_there : {false, true}) {
    if (is_there) fs::create_directories(journal_);
    const auto read = read_cluster_file(journal_);
    ASSERT_TRUE(read.ok()) << read.status().to_string();
    EXPECT_FALSE(read->has_value());
    EXPECT_TRUE(check_journal_folder(journal_, *read).ok());
  }
}

TEST_F(ClusterFileTest, DamageIsNoNewCluster) {
  const std::string id = file_.cluster.hex(), node = file_.node.hex();
  for (const std::string& text :
       {std::string("{"), std::string("[]"),
        R"({"cluster": ")" + id + R"(", "node": ")" + node + R"("})",
        R"({"cluster": "7f", "token": "t", "node": ")" + node + R"("})",
        R"({"cluster": ")" + id + R"(", "token": 7, "node": ")" + node + R"("})"}) {
    write("cluster.json", text);
    expect_failure(read_cluster_file(journal_).status(), ErrorCode::kInvalidArgument,
                   {journal_.string(), "cluster.json is damaged"});
  }
  fs::remove(journal_ / "cluster.json");
  write("journal.db", "rows");
  expect_failure(read_cluster_file(journal_).status(), ErrorCode::kInvalidArgument,
                 {"cluster.json is missing next to journal.db"});
}

TEST_F(ClusterFileTest, AClusterWhoseEntriesAreGoneIsNotStartedEmpty) {
  for (const bool is_empty : {false, true}) {
    if (is_empty) write("journal.db", "");
    expect_failure(check_journal_folder(journal_, file_), ErrorCode::kInvalidArgument,
                   {file_.cluster.short_hex(), "journal.db is missing or empty"});
  }
  ClusterFile unused = file_;
  unused.node = runtime::NodeId();
  EXPECT_TRUE(check_journal_folder(journal_, unused).ok()) << "its head has never run";
  write("journal.db", "rows");
  EXPECT_TRUE(check_journal_folder(journal_, file_).ok());
}

TEST_F(ClusterFileTest, AFolderOfOtherThingsIsLeftAlone) {
  write("thesis.tex", "text");
  expect_failure(check_journal_folder(journal_, std::nullopt), ErrorCode::kInvalidArgument,
                 {"--journal " + journal_.string(), "holds other things"});
}

}  // namespace
}  // namespace placement
