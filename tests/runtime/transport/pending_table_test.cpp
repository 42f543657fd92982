#include "runtime/transport/pending_table.h"

#include <gtest/gtest.h>

#include "runtime/transport/unique_function.h"

namespace runtime {
namespace {

using std::chrono::seconds;

PendingTable::Entry entry_due(Deadline at, int* answered = nullptr) {
  return {[answered](Result<Message>) {
            if (answered) ++*answered;
          },
          at,
          {}};
}

TEST(PendingTable, NeverReusesAnId) {
  PendingTable table;
  Deadline now = std::chrono::steady_clock::now();
  std::uint64_t first = table.add(entry_due(now));
  EXPECT_NE(first, 0u);
  EXPECT_TRUE(table.take(first).has_value());
  EXPECT_FALSE(table.take(first).has_value());
  std::uint64_t second = table.add(entry_due(now));
  EXPECT_NE(first, second);
  EXPECT_EQ(table.find(first), nullptr);
  EXPECT_NE(table.find(second), nullptr);
  EXPECT_EQ(table.find(12345), nullptr);
  EXPECT_EQ(table.find(0), nullptr);
  EXPECT_EQ(table.size(), 1u);
}

TEST(PendingTable, TakesWhatExpired) {
  PendingTable table;
  Deadline now = std::chrono::steady_clock::now();
  int answered = 0;
  table.add(entry_due(now - seconds(1), &answered));
  table.add(entry_due(now, &answered));
  table.add(entry_due(now + seconds(2)));
  table.add(entry_due(now + seconds(1)));
  Deadline next;
  auto expired = table.take_expired(now, &next);
  ASSERT_EQ(expired.size(), 2u);
  for (auto& entry : expired) entry.reply(cancelled("x"));
  EXPECT_EQ(answered, 2);
  EXPECT_EQ(next, now + seconds(1));
  EXPECT_EQ(table.take_all().size(), 2u);
  table.take_expired(now, &next);
  EXPECT_EQ(next, Deadline::max());
}

TEST(UniqueFunction, OwnsMoveOnlyThings) {
  auto owned = std::make_unique<int>(7);
  UniqueFunction<int(int)> small = [owned = std::move(owned)](int x) { return *owned + x; };
  UniqueFunction<int(int)> moved = std::move(small);
  EXPECT_FALSE(small);
  EXPECT_EQ(moved(1), 8);
  std::array<int, 100> big{};
  big[99] = 5;
  moved = [big](int x) { return big[99] * x; };
  UniqueFunction<int(int)> again = std::move(moved);
  EXPECT_EQ(again(2), 10);
}

TEST(UniqueFunction, DestroysWhatItHolds) {
  auto witness = std::make_shared<int>(0);
  {
    UniqueFunction<void()> f = [witness] {};
    UniqueFunction<void()> g = [witness, pad = std::array<char, 64>{}] {};
    EXPECT_EQ(witness.use_count(), 3);
    f = nullptr;
    EXPECT_EQ(witness.use_count(), 2);
  }
  EXPECT_EQ(witness.use_count(), 1);
}

}  // namespace
}  // namespace runtime
