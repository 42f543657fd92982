// The kernels of libstarling_cuda.so, against the same in fp64 on the CPU. They run where
// STARLING_TEST_DEVICE=cuda says that there is a GPU.
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>

#include <cmath>
#include <limits>
#include <string>

#include "rl/cuda/cuda_library.h"
#include "rl/model/device.h"
#include "stand_in.h"

namespace rl {
namespace {

class KernelsDevice : public testing::DeviceTest {
 protected:
  void SetUp() override {
    if (std::string(testing::tested_device()).rfind("cuda", 0) != 0)
      GTEST_SKIP() << "needs STARLING_TEST_DEVICE=cuda and a GPU";
    auto library = CudaLibrary::load();
    ASSERT_TRUE(library.ok()) << library.status().to_string();
    library_ = std::move(*library);
    device_ = *find_device(testing::tested_device());
  }

  at::TensorOptions there(at::ScalarType type = at::kFloat) const {
    return at::TensorOptions(*device_).dtype(type);
  }

  // What nothing wrote is NaN.
  at::Tensor poisoned(at::IntArrayRef shape, at::ScalarType type = at::kFloat) const {
    return at::full(shape, std::numeric_limits<double>::quiet_NaN(), there(type));
  }

  void expect_ran(int code, const char* kernel) const {
    const runtime::Status status = library_->status(code, kernel);
    ASSERT_TRUE(status.ok()) << status.to_string();
  }

  std::unique_ptr<CudaLibrary> library_;
  std::optional<at::Device> device_;
};

double error_of_double(const at::Tensor& found, const at::Tensor& expected) {
  const at::Tensor wide = found.cpu().to(at::kDouble);
  return ((wide - expected).norm() / expected.norm()).item<double>();
}

TEST_F(KernelsDevice, AdamWTakesTheStepOfFp64) {
  const starling_cuda_adamw_options options{.learning_rate = 1e-2F,
                                            .beta1 = 0.9F,
                                            .beta2 = 0.999F,
                                            .epsilon = 1e-8F,
                                            .weight_decay = 0.1F,
                                            .gradient_scale = 0.5F,
                                            .correction1 = 1 - 0.9F * 0.9F,
                                            .correction2 = 1 - 0.999F * 0.999F};
  for (const std::int64_t count : {1, 255, 256, 257, 1'000'003}) {
    const at::Tensor weights = at::randn({count}), gradients = at::randn({count}),
                     first = at::randn({count}) * 0.1, second = at::randn({count}).square() * 0.01;
    const at::Tensor w = weights.to(*device_), g = gradients.to(*device_), m = first.to(*device_),
                     v = second.to(*device_);
    expect_ran(library_->adamw(w.mutable_data_ptr<float>(), g.const_data_ptr<float>(),
                               m.mutable_data_ptr<float>(), v.mutable_data_ptr<float>(),
                               static_cast<std::size_t>(count), &options, nullptr),
               "adamw");
    const at::Tensor scaled = gradients.to(at::kDouble) * 0.5;
    const at::Tensor moment = first.to(at::kDouble) * 0.9 + scaled * 0.1;
    const at::Tensor square = second.to(at::kDouble) * 0.999 + scaled.square() * 0.001;
    const at::Tensor expected =
        weights.to(at::kDouble) * (1 - 1e-3) -
        1e-2 * (moment / (1 - 0.81)) / ((square / (1 - 0.999 * 0.999)).sqrt() + 1e-8);
    // 1 - 0.999^2 in fp32 is right to four digits only.
    EXPECT_LT(error_of_double(w, expected), 1e-5) << count;
    EXPECT_LT(error_of_double(m, moment), 1e-6) << count;
    EXPECT_LT(error_of_double(v, square), 1e-5) << count;
  }
}

TEST_F(KernelsDevice, LogProbsOfTargetsAreThoseOfFp64AndTheSameBitsInAnyBatch) {
  for (const std::int64_t vocabulary : {1, 31, 256, 49'152, 151'936}) {
    const std::int64_t rows = 37;
    const at::Tensor logits = at::randn({rows, vocabulary}) * 5;
    const at::Tensor targets = at::randint(vocabulary, {rows}, at::kLong);
    const at::Tensor logits_there = logits.to(*device_), targets_there = targets.to(*device_);
    const auto logprobs = [&](std::int64_t first, std::int64_t count) {
      const at::Tensor found = poisoned({count});
      expect_ran(
          library_->target_logprobs(
              logits_there.const_data_ptr<float>() + first * vocabulary,
              targets_there.const_data_ptr<std::int64_t>() + first, found.mutable_data_ptr<float>(),
              static_cast<std::size_t>(count), static_cast<std::size_t>(vocabulary), 0.7F, nullptr),
          "target_logprobs");
      return found.cpu();
    };
    const at::Tensor all = logprobs(0, rows);
    const at::Tensor expected =
        at::log_softmax(logits.to(at::kDouble) / 0.7, 1).gather(1, targets.unsqueeze(1)).squeeze(1);
    EXPECT_LT((all.to(at::kDouble) - expected).abs().max().item<double>(), 1e-4) << vocabulary;
    for (const std::int64_t row : {0L, 17L, rows - 1})
      EXPECT_TRUE(logprobs(row, 1).equal(all.narrow(0, row, 1))) << vocabulary << ", row " << row;
  }
}

TEST_F(KernelsDevice, ATargetOutsideTheVocabularyIsNaN) {
  const at::Tensor logits = at::randn({3, 5}).to(*device_);
  const at::Tensor targets = at::full({3}, 5, there(at::kLong));
  const at::Tensor found = at::full({3}, 1.0, there());
  expect_ran(library_->target_logprobs(logits.const_data_ptr<float>(),
                                       targets.const_data_ptr<std::int64_t>(),
                                       found.mutable_data_ptr<float>(), 3, 5, 1.0F, nullptr),
             "target_logprobs");
  EXPECT_TRUE(found.isnan().all().item<bool>());
}

TEST_F(KernelsDevice, TheSquaredNormIsThatOfFp64AndTheSameBitsEachTime) {
  for (const std::int64_t count : {1, 1000, 10'000'019}) {
    const at::Tensor values = at::randn({count});
    const at::Tensor values_there = values.to(*device_);
    const at::Tensor scratch = poisoned({STARLING_CUDA_NORM_BLOCKS}, at::kDouble);
    const auto norm = [&] {
      const at::Tensor sum = poisoned({1}, at::kDouble);
      expect_ran(library_->squared_norm(
                     values_there.const_data_ptr<float>(), static_cast<std::size_t>(count),
                     scratch.mutable_data_ptr<double>(), sum.mutable_data_ptr<double>(), nullptr),
                 "squared_norm");
      return sum.item<double>();
    };
    const double first = norm();
    const double expected = values.to(at::kDouble).square().sum().item<double>();
    EXPECT_NEAR(first / expected, 1.0, 1e-12) << count;
    for (int again = 0; again < 5; ++again) EXPECT_EQ(norm(), first) << count;
  }
}

}  // namespace
}  // namespace rl
