#include "rl/run/rl/roles.h"

#include <gtest/gtest.h>

namespace rl {
namespace {

TEST(Roles, AProfileHasEachTeacherByItsNameAndNoGroupThatIsNotThere) {
  Roles roles;
  const auto names = [&] {
    std::vector<std::string> all;
    for (const ProfiledGroup& group : roles.profiled_groups()) all.push_back(group.role);
    return all;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(names(), (Names{"policy", "reward"}));
  roles.teachers.push_back({.named = {.name = "t", .model_key = "", .rows = ""}, .model = "/t"});
  EXPECT_EQ(names(), (Names{"policy", "reward", "teacher"})) << "the only one needs no name";
  roles.teachers = {{.named = {.name = "maths", .model_key = "", .rows = "a"}, .model = "/m"},
                    {.named = {.name = "code", .model_key = "", .rows = "b"}, .model = "/c"}};
  EXPECT_EQ(names(), (Names{"policy", "reward", "teacher_maths", "teacher_code"}));
}

}  // namespace
}  // namespace rl
