#include "runtime/metrics/metrics_text.h"

#include <gtest/gtest.h>

#include <string>

namespace runtime {
namespace {

class MetricsTextTest : public ::testing::Test {
 protected:
  bool says(const std::string& line) const {
    return metrics_text(report_).find("\n" + line + "\n") != std::string::npos;
  }
  bool names(const std::string& metric) const {
    return metrics_text(report_).find(metric) != std::string::npos;
  }

  MetricsReport report_;
};

TEST_F(MetricsTextTest, OnlyNumbersThatAreKnownAreSaid) {
  report_.load.numbers = {{"actors_serving", 3}, {"store_sent_bytes", 17}};
  EXPECT_TRUE(says("starling_actors{state=\"alive\"} 3")) << metrics_text(report_);
  EXPECT_FALSE(names("state=\"starting\"")) << "how many is not known";
  EXPECT_TRUE(says("# TYPE starling_actors gauge"));
  EXPECT_TRUE(says("# TYPE starling_transferred_bytes_total counter"));
  EXPECT_TRUE(says("starling_transferred_bytes_total{direction=\"sent\"} 17"));
  EXPECT_FALSE(names("starling_object_store_pins"));
}

TEST_F(MetricsTextTest, CallsAreCountedInBucketsThatAddUp) {
  ClassLoad load;
  load.name = "Counter";
  load.buckets = {2, 0, 3};
  load.buckets.resize(16);
  load.buckets[15] = 4;
  load.sum_ns = 1'500'000'000;
  load.failed = 1;
  load.waiting = 7;
  report_.load.classes = {load};
  const std::string bucket = "starling_call_seconds_bucket{class=\"Counter\",le=\"";
  EXPECT_TRUE(says(bucket + "1e-05\"} 2")) << metrics_text(report_);
  EXPECT_TRUE(says(bucket + "0.0001\"} 5"));
  EXPECT_TRUE(says(bucket + "600\"} 5"));
  EXPECT_TRUE(says(bucket + "+Inf\"} 9"));
  EXPECT_TRUE(says("starling_call_seconds_count{class=\"Counter\"} 9"));
  EXPECT_TRUE(says("starling_call_seconds_sum{class=\"Counter\"} 1.5"));
  EXPECT_TRUE(says("starling_call_failures_total{class=\"Counter\"} 1"));
  EXPECT_TRUE(says("starling_calls_waiting{class=\"Counter\"} 7"));
}

TEST_F(MetricsTextTest, TheHeadsNumbersAreItsNodesAlone) {
  report_.head = {{"actors_alive", 5}};
  EXPECT_FALSE(names("starling_cluster_actors"));
  EXPECT_FALSE(names("starling_head_answers"));
  report_.is_head = true;
  EXPECT_TRUE(says("starling_cluster_actors{state=\"alive\"} 5")) << metrics_text(report_);
  EXPECT_TRUE(says("starling_head_answers 1"));
  report_.head.clear();
  EXPECT_TRUE(says("starling_head_answers 0"));
  EXPECT_FALSE(names("starling_cluster_actors"));
}

TEST_F(MetricsTextTest, NamesOfClassesAreQuoted) {
  ClassLoad load;
  load.name = "a\"b\\c\nd";
  report_.load.classes = {load};
  EXPECT_TRUE(says("starling_class_actors{class=\"a\\\"b\\\\c\\nd\"} 0")) << metrics_text(report_);
}

}  // namespace
}  // namespace runtime
