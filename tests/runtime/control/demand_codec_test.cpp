// Decoding of demand: absent fields, malformed values. Round trips: control_codec_test.cpp.
#include "runtime/control/demand_codec.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "tests/runtime/control/written.h"

namespace runtime {
namespace {

TEST(DemandCodec, AMessageWithoutItsFieldsIsOfNothing) {
  capnp::MallocMessageBuilder builder;
  const auto empty = builder.initRoot<schema::Demand>();
  EXPECT_EQ(schema_values::load(empty.asReader()), Demand());
}

TEST(DemandCodec, WhatIsMalformedDeepInItIsRefused) {
  Demand demand;
  demand.jobs = {{{{"CPU", 1}}, {}, 1, "job 1234"}};
  demand.groups = {{GroupSpec(), 3}};
  demand.nodes.resize(1);
  const Written<schema::Demand> endless(demand), unknown(demand), nameless(demand);
  EXPECT_EQ(endless.read(), demand);
  endless.to.getJobs()[0].getResources()[0].setValue(std::numeric_limits<double>::infinity());
  EXPECT_THROW(endless.read(), kj::Exception) << "an amount";
  unknown.to.getGroups()[0].getSpec().setStrategy(4);
  EXPECT_THROW(unknown.read(), kj::Exception) << "a strategy";
  const std::string part(15, '\7');
  nameless.to.getNodes()[0].getInfo().setNode(schema_values::data(part));
  EXPECT_THROW(nameless.read(), kj::Exception) << "an id";
}

}  // namespace
}  // namespace runtime
