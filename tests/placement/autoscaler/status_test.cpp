// The texts of the autoscaler's status. The status itself: autoscaler_test.cpp.
#include "placement/autoscaler/status.h"

#include <gtest/gtest.h>

#include <string>

namespace placement {
namespace {

class AutoscalerStatusTest : public ::testing::Test {
 protected:
  using Json = nlohmann::ordered_json;
  static constexpr std::int64_t kNow = 1'700'000'000'000;

  bool says(const std::string& words) const { return text().find(words) != std::string::npos; }
  std::string text() const { return status_text(status_, kNow); }

  Json status_ = Json::object();
};

TEST_F(AutoscalerStatusTest, PartsThatAreMissingAreLeftOut) {
  EXPECT_TRUE(says("0 nodes")) << text();
  EXPECT_TRUE(says("waiting:\n")) << text();
  status_["nodes"] = "damaged";
  status_["node_types"] = Json::array({Json::object()});
  EXPECT_TRUE(says("0 nodes")) << text();
}

TEST_F(AutoscalerStatusTest, ANodeHasItsWorkOrWhyItHasNone) {
  status_["nodes"] = Json::array({{{"id", "n-1"},
                                   {"phase", "joined"},
                                   {"since_ms", kNow - 90'000},
                                   {"capacity", "spot"},
                                   {"work", "2 actors"},
                                   {"reason", "idle"}},
                                  {{"id", "n-2"}, {"phase", "joined"}, {"reason", "idle"}}});
  EXPECT_TRUE(says("n-1  joined for 90 s  spot  2 actors\n")) << text();
  EXPECT_TRUE(says("n-2  joined for 0 s    idle\n")) << text();
}

TEST_F(AutoscalerStatusTest, ALongListOfNodesIsCut) {
  status_["nodes"] = Json::array();
  for (int i = 0; i < 53; ++i) status_["nodes"].push_back({{"id", "n-" + std::to_string(i) + "."}});
  EXPECT_TRUE(says("53 nodes"));
  EXPECT_TRUE(says("n-49.") && !says("n-50."));
  EXPECT_TRUE(says("and 3 more\n")) << text();
}

TEST_F(AutoscalerStatusTest, TroublesOfATypeAreNamed) {
  Json type{{"name", "gpu"}, {"spot_short_until_ms", kNow + 60'000}};
  type["troubles"] =
      Json::array({{{"capacity", "spot"}, {"failures", 3}, {"last", "no such machines"}}});
  status_["node_types"] = Json::array({type});
  EXPECT_TRUE(says("on demand instead for 60 s more")) << text();
  EXPECT_TRUE(says("spot has failed 3 times; last: no such machines")) << text();
  status_["node_types"][0]["spot_short_until_ms"] = kNow;
  EXPECT_FALSE(says("instead")) << "that is over";
}

TEST_F(AutoscalerStatusTest, WhatWaitsSaysWhatItWaitsFor) {
  status_["demand"] =
      Json::array({{{"what", "2 of CPU 1"}, {"unmet", 0}},
                   {{"what", "1 of GPU 8"}, {"unmet", 1}, {"reason", "no type has GPU 8"}}});
  status_["bound"] = 4;
  EXPECT_TRUE(says("2 of CPU 1: nodes are there or on their way")) << text();
  EXPECT_TRUE(says("1 of GPU 8: 1 have no place: no type has GPU 8")) << text();
  EXPECT_TRUE(says("4 actors for one node")) << text();
}

TEST_F(AutoscalerStatusTest, OfManyNotesTheLastAreShown) {
  status_["failures"] = Json::array();
  for (int i = 0; i < 12; ++i)
    status_["failures"].push_back(
        {{"at_ms", kNow - 1000}, {"text", "failure " + std::to_string(i) + "."}});
  EXPECT_TRUE(says("failures:\n  1 s ago: failure 2.")) << text();
  EXPECT_TRUE(says("failure 11."));
}

}  // namespace
}  // namespace placement
