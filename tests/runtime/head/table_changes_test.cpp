// The keys of a table that a journal has to look at again.
#include "runtime/head/table_changes.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace runtime {
namespace {

class TableChangesTest : public ::testing::Test {
 protected:
  std::vector<JournalWrite> take() {
    std::vector<JournalWrite> writes{{"before", "others"}};
    changes_.take(writes, [this](const std::string& key) -> JournalWrite {
      const auto found = table_.find(key);
      if (found == table_.end()) return {key, {}};
      return {key, found->second};
    });
    EXPECT_EQ(writes.front(), (JournalWrite{"before", "others"}));
    writes.erase(writes.begin());
    return writes;
  }
  void put(const std::string& key, const std::string& value) {
    table_[key] = value;
    changes_.note(key);
  }

  std::map<std::string, std::string> table_;
  TableChanges<std::string> changes_;
};

TEST_F(TableChangesTest, NothingIsNotedBeforeAJournalFollows) {
  put("a", "1");
  changes_.follow();
  EXPECT_TRUE(take().empty());
  put("b", "2");
  EXPECT_EQ(take(), (std::vector<JournalWrite>{{"b", "2"}}));
}

TEST_F(TableChangesTest, EachIsWrittenOnceAsItIsWhenAsked) {
  changes_.follow();
  put("b", "old");
  put("a", "1");
  put("b", "new");
  put("c", "3");
  table_.erase("c");
  changes_.note("c");
  EXPECT_EQ(take(), (std::vector<JournalWrite>{{"a", "1"}, {"b", "new"}, {"c", {}}}));
  EXPECT_TRUE(take().empty());
  put("b", "again");
  EXPECT_EQ(take(), (std::vector<JournalWrite>{{"b", "again"}}));
}

}  // namespace
}  // namespace runtime
