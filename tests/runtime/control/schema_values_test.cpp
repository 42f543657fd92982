// Decoding of the cluster's values from outside: bounds, defaults, and what is refused. That
// values come back equal: control_codec_test.cpp.
#include "runtime/control/schema_values.h"

#include <gtest/gtest.h>

#include <chrono>
#include <limits>
#include <string>
#include <vector>

#include "tests/runtime/control/written.h"

namespace runtime {
namespace {

using namespace std::chrono_literals;

TEST(SchemaValues, AnIdIsWholeOrNone) {
  const std::string whole(16, '\7'), part(15, '\7'), more(17, '\7');
  EXPECT_TRUE(schema_values::load_id<NodeId>({}).is_none());
  EXPECT_EQ(schema_values::load_id<NodeId>(schema_values::data(whole)).hex(),
            "07070707070707070707070707070707");
  for (const std::string& bad : {part, more})
    EXPECT_THROW(schema_values::load_id<NodeId>(schema_values::data(bad)), kj::Exception);
}

TEST(SchemaValues, AmountsAreFinite) {
  for (const double amount :
       {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    ActorSpec spec;
    spec.resources = {{"CPU", amount}};
    EXPECT_THROW(Written<schema::ActorSpec>(spec).read(), kj::Exception) << amount;
  }
}

TEST(SchemaValues, TimesAreBoundedSoThatSumsAre) {
  EXPECT_EQ(schema_values::load_milliseconds(1500), 1500ms);
  EXPECT_LT(schema_values::load_milliseconds(UINT64_MAX), std::chrono::milliseconds::max() / 1000);
  NodeDrain drain;
  drain.left = -5ms;
  EXPECT_EQ(Written<schema::NodeDrain>(drain).read().left, 0ms);
}

TEST(SchemaValues, AnActorsStartHasATime) {
  ActorSpec spec;
  spec.create_timeout = 0ms;
  EXPECT_EQ(Written<schema::ActorSpec>(spec).read().create_timeout, ActorSpec().create_timeout);
  spec.create_timeout = std::chrono::hours(24 * 400);
  EXPECT_EQ(Written<schema::ActorSpec>(spec).read().create_timeout, std::chrono::hours(24 * 7));
}

TEST(SchemaValues, WhatIsAbsentStaysSo) {
  ActorSpec spec;
  const ActorSpec absent = Written<schema::ActorSpec>(spec).read();
  EXPECT_FALSE(absent.saved_state || absent.node || absent.bundle);
  spec.saved_state = "";
  EXPECT_EQ(Written<schema::ActorSpec>(spec).read().saved_state, "")
      << "there is one, though empty";
}

TEST(SchemaValues, LabelsBelongToTheirBundle) {
  GroupSpec spec;
  spec.bundles.resize(3, {{"CPU", 1}});
  spec.bundle_labels = {{}, {{"zone", "b"}}};
  const GroupSpec read = Written<schema::GroupSpec>(spec).read();
  ASSERT_EQ(read.bundles.size(), 3u);
  EXPECT_EQ(read.bundle_labels, spec.bundle_labels);
}

TEST(SchemaValues, AWordOfANewerReleaseIsRefusedWhereItWouldChangeWhatIsDone) {
  const Written<schema::ActorSpec> actor{ActorSpec()};
  actor.to.setScheduling(3);
  EXPECT_THROW(actor.read(), kj::Exception);
  const Written<schema::GroupSpec> group{GroupSpec()};
  group.to.setStrategy(4);
  EXPECT_THROW(group.read(), kj::Exception);
  const Written<schema::JobInfo> job{JobInfo()};
  job.to.setOutcome(4);
  EXPECT_THROW(job.read(), kj::Exception);
  const Written<schema::JobFile> file{JobFile()};
  file.to.setKind(3);
  EXPECT_THROW(file.read(), kj::Exception);
  const Written<schema::ActorState> state{ActorState()};
  state.to.setPhase(9);
  EXPECT_EQ(state.read().phase, ActorPhase::kDead) << "it is only shown";
}

}  // namespace
}  // namespace runtime
