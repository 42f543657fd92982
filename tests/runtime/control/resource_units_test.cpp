#include "runtime/control/resource_units.h"

#include <gtest/gtest.h>

#include <limits>

namespace runtime {
namespace {

TEST(ResourceUnits, ImpossibleAmountsAreRefusedByName) {
  EXPECT_TRUE(check_resources({}).ok());
  EXPECT_TRUE(check_resources({{"CPU", 0}, {"GPU", 0.0001}, {"tape", 1e14}}).ok());
  const auto message = [](const std::string& name, double amount) {
    const Status status = check_resources({{name, amount}});
    EXPECT_EQ(status.code(), ErrorCode::kInvalidArgument);
    return status.message();
  };
  EXPECT_EQ(message("CPU", -1), "resource 'CPU' is -1; it must be a number from 0 to 1e14");
  EXPECT_EQ(message("CPU", 1e300), "resource 'CPU' is 1e+300; it must be a number from 0 to 1e14");
  EXPECT_EQ(message("x", std::numeric_limits<double>::quiet_NaN()),
            "resource 'x' is nan; it must be a number from 0 to 1e14");
  EXPECT_EQ(message("x", 0.00001), "resource 'x' is 1e-05, below the smallest share, 0.0001");
}

TEST(ResourceUnits, NamesAreBounded) {
  const auto message = [](const ResourceMap& amounts) {
    return check_resources(amounts).message();
  };
  EXPECT_EQ(message({{"", 1}}), "a resource needs a name");
  EXPECT_EQ(message({{std::string("a\0b", 3), 1}}),
            "the name of a resource has control characters in it");
  EXPECT_EQ(message({{"\x1b[2J", 1}}), "the name of a resource has control characters in it");
  EXPECT_TRUE(check_resources({{std::string(256, 'x'), 1}}).ok());
  EXPECT_EQ(message({{std::string(100'000, 'x'), 1}}),
            "a resource's name has 100000 bytes, of at most 256: " + std::string(40, 'x') + "...");
  ResourceMap many;
  for (int i = 0; i < 257; ++i) many["r" + std::to_string(i)] = 1;
  EXPECT_EQ(message(many), "257 resources are named; at most 256 may be");
}

}  // namespace
}  // namespace runtime
