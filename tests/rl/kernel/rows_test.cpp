// All row-wise kernels: the same inputs, the same bits, whatever instructions run them.
#include <gtest/gtest.h>

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "for_each_isa.h"
#include "random_values.h"
#include "rl/kernel/kernel.h"

namespace rl::kernel {
namespace {

TEST(RowKernels, GiveTheSameBitsOnEveryInstructionSet) {
  std::vector<std::vector<float>> results;
  for_each_isa([&] {
    ThreadPool pool(2);
    const std::int64_t rows = 5, size = 203;
    const auto x = random_values(rows * size, 9, 30.0F), weight = random_values(size, 10);
    std::vector<float> normed(x.size()), gated(x.size()), powers(x.size()), logprob(rows),
        entropy(rows);
    rms_norm(pool, x.data(), rows, size, weight.data(), 1e-6F, normed.data());
    activate(pool, Activation::kSilu, x.data(), normed.data(), rows * size, gated.data());
    std::vector<float> others;
    for (const Activation activation :
         {Activation::kGelu, Activation::kGeluTanh, Activation::kRelu, Activation::kSigmoid}) {
      std::vector<float> y(x.size());
      activate(pool, activation, x.data(), nullptr, rows * size, y.data());
      others.insert(others.end(), y.begin(), y.end());
    }
    std::vector<float> centred(x.size()), capped(x.size());
    layer_norm(pool, x.data(), rows, size, weight.data(), weight.data(), 1e-6F, centred.data());
    softcap(pool, x.data(), rows * size, 20.0F, capped.data());
    exp(pool, x.data(), rows * size, powers.data());
    const std::vector<std::int32_t> targets = {1, 2, 3, 4, 5};
    log_softmax_gather(pool, x.data(), rows, size, 0, 0.9F, targets.data(),
                       {.logprob = logprob.data(), .entropy = entropy.data()});
    std::vector<float> cos(10 * 6), sin(10 * 6), turned(static_cast<std::size_t>(rows * 24));
    rope_tables(std::span(weight).first(6), 10, 1.0F, cos.data(), sin.data());
    rope(pool, {.heads = 2, .head_dim = 12, .half = 6}, x.data(), rows, 0, targets.data(),
         cos.data(), sin.data(), turned.data());
    std::vector<float> all;
    for (const auto* part :
         {&normed, &gated, &powers, &logprob, &entropy, &turned, &others, &centred, &capped})
      all.insert(all.end(), part->begin(), part->end());
    results.push_back(std::move(all));
  });
  for (const std::vector<float>& result : results) ASSERT_EQ(result, results.front());
}

}  // namespace
}  // namespace rl::kernel
