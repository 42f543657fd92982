#include "runtime/node/client_table.h"

#include "tests/runtime/transport/fixture.h"

namespace runtime {
namespace {

TEST(ClientTable, FindsTheDriverOfAJob) {
  Pair pair;
  ClientTable clients;
  clients.add(pair.server);
  EXPECT_EQ(clients.driver_of(JobId::random()), nullptr);
  const JobId job = JobId::random();
  EXPECT_FALSE(clients.find(*pair.server)->is_driver_of_a_job());
  clients.find(*pair.server)->job = job;
  EXPECT_EQ(clients.driver_of(job), clients.find(*pair.server));
  EXPECT_TRUE(clients.find(*pair.server)->is_driver_of_a_job());
}

TEST(ClientTable, CountsByRole) {
  Pair pair;
  ClientTable clients;
  clients.add(pair.server);
  Numbers numbers;
  clients.count(numbers);
  EXPECT_EQ(numbers["connections_driver"], 1);
  EXPECT_EQ(numbers["connections_worker"], 0);
  EXPECT_EQ(numbers.size(), 4u);
}

TEST(ClientTable, GivesBackWhatIsRemoved) {
  Pair pair;
  ClientTable clients;
  clients.add(pair.server);
  const auto removed = clients.remove(*pair.server);
  ASSERT_TRUE(removed);
  EXPECT_EQ(removed->channel, pair.server);
  EXPECT_EQ(removed->role(), Role::kDriver);
  EXPECT_FALSE(clients.remove(*pair.server));
  EXPECT_EQ(clients.find(*pair.server), nullptr);
}

}  // namespace
}  // namespace runtime
