// The arguments that start a node of a type, and that node's labels.
#include "placement/autoscaler/provider.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "placement/autoscaler/config.h"

namespace placement {
namespace {

using Words = std::vector<std::string>;

NodeRequest request_of(const runtime::ResourceMap& resources, runtime::Labels labels = {}) {
  NodeRequest request;
  request.id = "node-1";
  request.type.resources = *Resources::from_map(resources);
  request.labels = std::move(labels);
  return request;
}

Words arguments(const NodeRequest& request) {
  NodeStart start;
  start.address = "10.0.0.1:6399";
  return start_arguments(start, request);
}

TEST(StartArguments, WhatATypeDoesNotHaveIsNotTheMachines) {
  EXPECT_EQ(arguments(request_of({})),
            (Words{"start", "--address", "10.0.0.1:6399", "--num-cpus", "0", "--num-gpus", "0"}));
}

TEST(StartArguments, AmountsLoseNoDigits) {
  EXPECT_EQ(arguments(request_of({{"CPU", 4}, {"GPU", 0.5}, {"memory", 8589934592}, {"tpu", 2}})),
            (Words{"start", "--address", "10.0.0.1:6399", "--num-cpus", "4", "--num-gpus", "0.5",
                   "--resources", "{\"memory\":8589934592.0,\"tpu\":2.0}"}));
}

TEST(StartArguments, EachLabelIsSaid) {
  const Words words = arguments(request_of({}, {{"a", "x=y"}, {"zone", "b c"}}));
  ASSERT_GE(words.size(), 4u);
  EXPECT_EQ(Words(words.end() - 4, words.end()),
            (Words{"--label", "a=x=y", "--label", "zone=b c"}));
}

TEST(NodeType, IsLabelledSoThatTheAutoscalerKnowsItAgain) {
  NodeType type;
  type.name = "big";
  type.labels = {{"zone", "b"}, {std::string(kNodeTypeLabel), "what a user wrote"}};
  const runtime::Labels labels = type.labels_of("node-1", Capacity::kSpot);
  EXPECT_EQ(labels, (runtime::Labels{{"zone", "b"},
                                     {std::string(kAutoscalerIdLabel), "node-1"},
                                     {std::string(kNodeTypeLabel), "big"},
                                     {std::string(kCapacityLabel), "spot"}}));
}

TEST(AutoscalerConfig, FindsATypeByItsWholeName) {
  AutoscalerConfig config;
  config.types.resize(2);
  config.types[0].name = "big";
  config.types[1].name = "bigger";
  EXPECT_EQ(config.type("bigger"), &config.types[1]);
  EXPECT_EQ(config.type("bigg"), nullptr);
}

}  // namespace
}  // namespace placement
