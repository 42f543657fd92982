#include "rl/model/trained_logits.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tanh.h>
#include <gtest/gtest.h>

#include <vector>

#include "rl/model/gradient_arena.h"
#include "rl/model/parameters.h"

namespace rl {
namespace {

at::Tensor two_numbers(const at::Tensor& logits) {
  return at::stack({at::log_softmax(logits, 1).select(1, 2), (logits / 3).logsumexp(1)}, 1);
}

// Of more rows than are computed at a time, with a cap: the numbers and gradients of all at once.
TEST(TrainedLogits, NumbersOfStretchesAreThoseOfAllRows) {
  const double cap = 2.0;
  const std::int64_t rows = 2 * kLogitRows + 9;
  const at::Generator random = at::make_generator<at::CPUGeneratorImpl>(5);
  const at::Tensor x = at::randn({rows, 8}, random), weight = at::randn({17, 8}, random);
  const at::Tensor share = at::randn({rows, 2}, random);
  kernel::ThreadPool pool(1);
  GradientArena gradients(Parameters::zeros(arena_layout({{.name = "w", .shape = {17, 8}}})));
  const at::Tensor grad = gradients.memory().view("w");
  const OutputLayer head{.layer = {.weight = {weight, grad, gradients.sum_of(grad)}, .bias = {}},
                         .softcap = cap};

  std::vector<std::int64_t> begun;
  const at::Tensor own_x = x.clone().set_requires_grad(true);
  const at::Tensor made = numbers_of_logits({pool, {}}, own_x, head,
                                            [&](const at::Tensor& logits_RV, std::int64_t first) {
                                              begun.push_back(first);
                                              return two_numbers(logits_RV);
                                            });
  EXPECT_EQ(begun, (std::vector<std::int64_t>{0, kLogitRows, 2 * kLogitRows}));
  (made * share).sum().backward();

  const at::Tensor all_x = x.clone().set_requires_grad(true);
  const at::Tensor all_weight = weight.clone().set_requires_grad(true);
  const at::Tensor expected = two_numbers(at::tanh(at::mm(all_x, all_weight.t()) / cap) * cap);
  (expected * share).sum().backward();
  EXPECT_TRUE(at::allclose(made, expected, 1e-5, 1e-5));
  EXPECT_TRUE(at::allclose(own_x.grad(), all_x.grad(), 1e-4, 1e-5));
  EXPECT_TRUE(at::allclose(gradients.settled().view("w"), all_weight.grad(), 1e-4, 1e-4));
}

}  // namespace
}  // namespace rl
