#include "rl/model/aten_spans.h"

#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "rl/model/autograd.h"
#include "rl/profile/recorder.h"

namespace rl {
namespace {

constexpr std::int64_t kSpansMax = 1000;

std::vector<profile::SpanKind> kinds_of(const profile::Recording& recording,
                                        const std::string& name) {
  std::vector<profile::SpanKind> kinds;
  for (std::size_t i = 0; i < recording.size(); ++i) {
    if (recording.names[recording.name[i]] == name) kinds.push_back(recording.kind[i]);
  }
  return kinds;
}

profile::Recording recording_of_a_product() {
  profile::start(kSpansMax);
  at::mm(at::ones({2, 2}), at::ones({2, 2}));
  return profile::stop();
}

TEST(AtenSpans, AnOperatorIsOneSpanHoweverOftenTheyWereAskedFor) {
  record_aten_spans();
  record_aten_spans();
  const auto kinds = kinds_of(recording_of_a_product(), "aten::mm");
  forget_aten_spans();
  EXPECT_EQ(kinds, std::vector<profile::SpanKind>{profile::SpanKind::kKernel});
}

TEST(AtenSpans, ForgottenOnesAreInNoRecordingUntilTheyAreAskedForAgain) {
  record_aten_spans();
  forget_aten_spans();
  EXPECT_TRUE(kinds_of(recording_of_a_product(), "aten::mm").empty());
  record_aten_spans();
  EXPECT_EQ(kinds_of(recording_of_a_product(), "aten::mm").size(), 1u);
  forget_aten_spans();
}

TEST(AtenSpans, AStepOfTheBackwardPassIsAnOperation) {
  const at::Tensor x = at::ones({2}).set_requires_grad(true);
  at::Tensor y = at::ones({2});
  autograd::connect("of the test backward", y, {x},
                    [](const auto& grads) { return std::vector<at::Tensor>{grads[0]}; });
  record_aten_spans();
  profile::start(kSpansMax);
  autograd::backward({y}, {at::ones({2})});
  const profile::Recording recording = profile::stop();
  forget_aten_spans();
  EXPECT_EQ(kinds_of(recording, "of the test backward"),
            std::vector<profile::SpanKind>{profile::SpanKind::kOperation});
}

}  // namespace
}  // namespace rl
