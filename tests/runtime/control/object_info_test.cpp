// Lists of objects that were put together from what several have said, at different moments.
#include "runtime/control/object_info.h"

#include <gtest/gtest.h>

namespace runtime {
namespace {

ObjectInfo object(ObjectId id, const std::string& owner, bool borrowed) {
  ObjectInfo info;
  info.id = id;
  info.owner = owner;
  info.owner_pid = owner.empty() ? 0 : 12;
  if (borrowed) info.borrowers = {{NodeId::random(), 13, 1, "driver"}};
  return info;
}

TEST(ObjectList, OnlyWhatLacksAnOwnerTwiceHasLostIt) {
  const ObjectId lost = ObjectId::random(), fresh = ObjectId::random(),
                 released = ObjectId::random(), copy = ObjectId::random(),
                 whole = ObjectId::random();
  ObjectList before, now;
  before.objects = {object(lost, "", true), object(released, "Counter 1", true),
                    object(whole, "", true)};
  now.objects = {object(lost, "", true), object(fresh, "", true), object(released, "", true),
                 object(copy, "", false), object(whole, "Counter 2", true)};
  settle_owners(now, before);
  ASSERT_EQ(now.objects.size(), 4u)
      << "what is new may have been made after its owner had answered";
  EXPECT_EQ(now.objects[0].id, lost);
  EXPECT_TRUE(lacks_owner(now.objects[0]));
  EXPECT_EQ(now.objects[1].id, released);
  EXPECT_EQ(now.objects[1].owner, "Counter 1");
  EXPECT_EQ(now.objects[1].owner_pid, 12);
  EXPECT_EQ(now.objects[2].id, copy);
  EXPECT_FALSE(lacks_owner(now.objects[2])) << "no process refers to it";
  EXPECT_EQ(now.objects[3].owner, "Counter 2");
}

}  // namespace
}  // namespace runtime
