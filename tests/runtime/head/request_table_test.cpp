// The ring of remembered requests.
#include "runtime/head/request_table.h"

#include <gtest/gtest.h>

#include "runtime/head/head_commands.h"
#include "runtime/head/journal_entries.h"

namespace runtime {
namespace {

class RequestTableTest : public ::testing::Test {
 protected:
  void answer(RequestId id, std::uint64_t at_ms, const std::string& reply) {
    table_.apply(command::RequestAnswered{id, at_ms, reply});
  }
  std::vector<JournalWrite> changes() {
    std::vector<JournalWrite> writes;
    table_.take_changes(writes);
    return writes;
  }

  RequestTable table_;
};

TEST_F(RequestTableTest, ForgetsByNumberAndByAge) {
  const RequestId first = RequestId::random();
  const RequestId second = RequestId::random();
  answer(first, 1000, "1");
  answer(second, 2000, "2");
  for (std::size_t i = 2; i < RequestTable::kKept; ++i) answer(RequestId::random(), 3000, "");
  ASSERT_TRUE(table_.find(first));
  table_.follow();
  answer(RequestId::random(), 3000, "");
  EXPECT_EQ(table_.all().size(), RequestTable::kKept);
  EXPECT_FALSE(table_.find(first));
  EXPECT_TRUE(table_.find(second));
  std::vector<JournalWrite> writes = changes();
  ASSERT_EQ(writes.size(), 1u) << "the new one lies where the oldest one did";
  EXPECT_EQ(writes[0].key, journal::key_of_request(1));
  EXPECT_TRUE(writes[0].value);

  const auto later = static_cast<std::uint64_t>(RequestTable::kKeptFor.count()) + 2001;
  answer(first, later, "again");
  EXPECT_FALSE(table_.find(second));
  EXPECT_EQ(*table_.find(first)->reply, "again");
  writes = changes();
  ASSERT_EQ(writes.size(), 1u);
  EXPECT_EQ(writes[0].key, journal::key_of_request(2));
  EXPECT_EQ(table_.in_slot(2)->id, first);
}

TEST_F(RequestTableTest, OneThatHasBegunGetsItsReply) {
  const RequestId id = RequestId::random();
  table_.apply(command::RequestBegun{id, 1000, 7});
  EXPECT_EQ(table_.find(id)->about, 7u);
  EXPECT_FALSE(table_.find(id)->reply);
  table_.apply(command::RequestBegun{id, 1000, 8});
  answer(id, 2000, "done");
  EXPECT_EQ(table_.find(id)->about, 7u);
  EXPECT_EQ(*table_.find(id)->reply, "done");
  EXPECT_EQ(table_.all().size(), 1u);
}

}  // namespace
}  // namespace runtime
