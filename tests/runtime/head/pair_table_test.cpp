// The key-value pairs of jobs, and what the journal gets to know of them.
#include "runtime/head/pair_table.h"

#include "tests/runtime/head/table_writes.h"

namespace runtime {
namespace {

class PairTableTest : public ::testing::Test {
 protected:
  void put(JobId job, const std::string& key, const std::string& value) {
    table_.apply(command::PutKey{job, key, value});
  }

  const JobId job_ = JobId::random(), other_ = JobId::random();
  PairTable table_;
};

TEST_F(PairTableTest, EachJobHasItsOwn) {
  put(job_, "key", "old");
  put(job_, "key", "new");
  put(job_, "more", "");
  put(other_, "key", "other");
  EXPECT_EQ(*table_.find(job_, "key"), "new");
  EXPECT_EQ(*table_.find(job_, "more"), "");
  EXPECT_EQ(*table_.find(other_, "key"), "other");
  EXPECT_EQ(table_.find(other_, "more"), nullptr);
  EXPECT_EQ(table_.count(job_), 2u);
  table_.apply(command::DeleteKey{job_, "key"});
  EXPECT_EQ(table_.find(job_, "key"), nullptr);
  EXPECT_EQ(table_.count(job_), 1u);
  EXPECT_EQ(table_.count(JobId::random()), 0u);
}

TEST_F(PairTableTest, AJobsPairsAreDroppedTogether) {
  put(job_, "a", "1");
  put(job_, "b", "2");
  put(other_, "a", "3");
  table_.follow();
  table_.drop(job_);
  table_.drop(JobId::random());
  EXPECT_EQ(table_.count(job_), 0u);
  EXPECT_EQ(table_.count(other_), 1u);
  const auto changed = writes_of(table_);
  EXPECT_EQ(changed.size(), 2u);
  EXPECT_FALSE(changed.at(journal::key_of_pair(job_, "a")));
  EXPECT_FALSE(changed.at(journal::key_of_pair(job_, "b")));
}

TEST_F(PairTableTest, WhatIsWrittenGivesTheSameTable) {
  table_.follow();
  put(job_, "a", "1");
  put(job_, "b", std::string("\0bytes", 6));
  put(other_, "a", "2");
  table_.apply(command::DeleteKey{other_, "a"});
  put(other_, "c", "3");
  PairTable restored;
  restored.follow();
  EXPECT_EQ(restore_from<journal::Pair>(restored, writes_of(table_)), Status());
  EXPECT_EQ(restored.all().at(job_), table_.all().at(job_));
  EXPECT_EQ(restored.all().at(other_), table_.all().at(other_));
  EXPECT_TRUE(writes_of(restored).empty()) << "what was restored is written already";
}

}  // namespace
}  // namespace runtime
