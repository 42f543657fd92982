// Messages between the stages of a pipeline. Stages are threads.
#include "rl/model/stage_stream.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "rl/comm/thread_links.h"
#include "rl/model/autograd.h"
#include "rl/model/guarded.h"

namespace rl {
namespace {

using runtime::ErrorCode;
using runtime::Status;

// What each stage's body has ended with; its links go with it.
std::vector<Status> on_stages(int count, const std::function<void(const StageStream&)>& body,
                              int chunks = 1) {
  auto stages = make_thread_links(count), losses = make_thread_links(count);
  std::vector<Status> ended(static_cast<std::size_t>(count));
  std::vector<std::thread> threads;
  for (std::size_t stage = 0; stage < ended.size(); ++stage) {
    threads.emplace_back([&, stage] {
      PipelineLinks links;
      links.stages = std::make_unique<PeerMessages>(std::move(stages[stage]));
      links.losses = std::make_unique<PeerMessages>(std::move(losses[stage]));
      const StageStream stream(links, chunks);
      ended[stage] = guarded<void>("a stage", [&] { body(stream); });
      const Status flushed = links.stages->flush();
      if (ended[stage].ok()) ended[stage] = flushed;
    });
  }
  for (std::thread& thread : threads) thread.join();
  return ended;
}

void expect_all_ok(const std::vector<Status>& ended) {
  for (std::size_t stage = 0; stage < ended.size(); ++stage)
    EXPECT_TRUE(ended[stage].ok()) << "stage " << stage << ": " << ended[stage].to_string();
}

// Rows of a pass, another number each.
at::Tensor rows_of_pass(std::int64_t pass, std::int64_t rows, std::int64_t width) {
  return at::arange(rows * width, at::kFloat).view({rows, width}) + 1000.0 * (pass + 1);
}

// y = x * factor with a graph, as a stage's layers have one; x may have none.
at::Tensor times(const at::Tensor& x, double factor) {
  at::Tensor y = x.detach() * factor;
  autograd::connect("times", y, {x, autograd::anchor()},
                    [factor](const std::vector<at::Tensor>& grads) {
                      return std::vector<at::Tensor>{grads[0] * factor, {}};
                    });
  return y;
}

TEST(StageStream, KnowsItsPlace) {
  expect_all_ok(on_stages(3, [](const StageStream& stream) {
    EXPECT_EQ(stream.stages(), 3);
    EXPECT_EQ(stream.is_first(), stream.stage() == 0);
    EXPECT_EQ(stream.is_last(), stream.stage() == 2);
  }));
}

TEST(StageStream, ChunksOfAllStagesAreInTurn) {
  expect_all_ok(on_stages(
      3,
      [](const StageStream& stream) {
        EXPECT_EQ(stream.chunk_at(0), stream.stage());
        EXPECT_EQ(stream.chunk_at(1), stream.stage() + 3);
        EXPECT_FALSE(stream.ends_with(stream.chunk_at(0)));
        EXPECT_EQ(stream.ends_with(stream.chunk_at(1)), stream.is_last());
      },
      /*chunks=*/2));
}

// Both borders from the first stage to the second have rows on their way, and the second stage
// takes those of its later chunk first.
TEST(StageStream, ChunksHaveTheirOwnMessages) {
  expect_all_ok(on_stages(
      2,
      [](const StageStream& stream) {
        const std::int64_t width = 4;
        if (stream.is_first()) {
          stream.give(0, rows_of_pass(0, 1, width));
          stream.give(2, rows_of_pass(2, 3, width));
          const at::Tensor back = stream.taken(2, 2, width, /*trains=*/false);
          EXPECT_TRUE(back.equal(rows_of_pass(1, 2, width)));
          EXPECT_TRUE(stream.taken_back(0, rows_of_pass(0, 1, width)).equal(at::ones({1, width})));
          EXPECT_FALSE(stream.taken_back(2, rows_of_pass(2, 3, width)).defined());
          return;
        }
        EXPECT_TRUE(stream.taken(3, 3, width, /*trains=*/false).equal(rows_of_pass(2, 3, width)));
        const at::Tensor x = stream.taken(1, 1, width, /*trains=*/true);
        EXPECT_TRUE(x.equal(rows_of_pass(0, 1, width)));
        stream.give(1, rows_of_pass(1, 2, width));
        stream.give_back_nothing(3, /*tied=*/false);
        autograd::backward({times(x, 1.0)}, {at::ones({1, width})});
      },
      /*chunks=*/2));
}

// All forward passes, and then all backward passes, of rows of other numbers: each stage multiplies
// by its number plus two.
TEST(StageStream, RowsGoForwardAndGradientsBackInTheOrderOfPasses) {
  constexpr std::int64_t kPasses = 3, kWidth = 4;
  expect_all_ok(on_stages(3, [](const StageStream& stream) {
    const double own = stream.stage() + 2.0;
    std::vector<at::Tensor> made;
    for (std::int64_t pass = 0; pass < kPasses; ++pass) {
      at::Tensor x = rows_of_pass(pass, pass + 1, kWidth);
      if (!stream.is_first()) {
        const double before = stream.stage() == 1 ? 2.0 : 6.0;  // of the stages before
        const at::Tensor expected = x * before;
        x = stream.taken(stream.stage(), pass + 1, kWidth, /*trains=*/true);
        EXPECT_TRUE(x.equal(expected)) << "stage " << stream.stage() << ", pass " << pass;
        EXPECT_TRUE(x.requires_grad());
      }
      made.push_back(times(x, own));
      if (!stream.is_last()) stream.give(stream.stage(), made.back());
    }
    for (std::int64_t pass = 0; pass < kPasses; ++pass) {
      const at::Tensor& output = made[static_cast<std::size_t>(pass)];
      const at::Tensor of_loss = rows_of_pass(10 + pass, pass + 1, kWidth);
      if (stream.is_last()) {
        autograd::backward({output}, {of_loss});
        continue;
      }
      const double behind = stream.stage() == 1 ? 4.0 : 12.0;  // of the stages behind
      const at::Tensor gradient = stream.taken_back(stream.stage(), output);
      EXPECT_TRUE(gradient.equal(of_loss * behind)) << "stage " << stream.stage();
      autograd::backward({output}, {gradient});
    }
  }));
}

TEST(StageStream, WhereNothingIsLearnedNoGradientComesBack) {
  expect_all_ok(on_stages(3, [](const StageStream& stream) {
    for (const bool tied : {false, true}) {
      at::Tensor x = rows_of_pass(0, 2, 4);
      if (!stream.is_first()) x = stream.taken(stream.stage(), 2, 4, /*trains=*/true);
      if (!stream.is_last()) {
        stream.give(stream.stage(), times(x, 2.0));
        EXPECT_FALSE(stream.taken_back(stream.stage(), x).defined());
      }
      stream.give_back_nothing(stream.stage(), tied);
      if (stream.is_last() && tied) {
        EXPECT_FALSE(stream.gradient_of_first(8, 4).defined());
      }
    }
  }));
}

TEST(StageStream, WhatDoesNotTrainHasNoGraph) {
  expect_all_ok(on_stages(2, [](const StageStream& stream) {
    const at::Tensor rows = rows_of_pass(0, 2, 4);
    if (stream.is_first()) {
      stream.give(stream.stage(), rows);
      return stream.give(stream.stage(), rows);
    }
    EXPECT_FALSE(stream.taken(stream.stage(), 2, 4, /*trains=*/false).requires_grad());
    const at::NoGradGuard no_graph;
    EXPECT_FALSE(stream.taken(stream.stage(), 2, 4, /*trains=*/true).requires_grad());
  }));
}

// The last stage asks for gradients of embeddings in the midst of the first one's other messages,
// the oldest pass first. The first one goes on with its own.
TEST(StageStream, GradientsOfEmbeddingsGoToTheLastStageToo) {
  expect_all_ok(on_stages(3, [](const StageStream& stream) {
    if (stream.is_first()) {
      for (std::int64_t pass = 0; pass < 2; ++pass) {
        at::Tensor own;
        at::Tensor embeddings = rows_of_pass(pass, 2, 4);
        autograd::connect("embeddings", embeddings, {autograd::anchor()},
                          [&own](const std::vector<at::Tensor>& grads) {
                            own = grads[0];
                            return std::vector<at::Tensor>(1);
                          });
        const at::Tensor same = stream.giving_gradient_to_last(embeddings);
        EXPECT_TRUE(same.equal(embeddings));
        autograd::backward({same}, {rows_of_pass(20 + pass, 2, 4)});
        EXPECT_TRUE(own.equal(rows_of_pass(20 + pass, 2, 4)));
      }
      const at::Tensor plain = rows_of_pass(0, 2, 4);
      EXPECT_TRUE(stream.giving_gradient_to_last(plain).is_same(plain)) << "it needs no gradient";
    }
    if (!stream.is_last()) return;
    for (std::int64_t pass = 0; pass < 2; ++pass)
      EXPECT_TRUE(stream.gradient_of_first(2, 4).equal(rows_of_pass(20 + pass, 2, 4)));
  }));
}

TEST(StageStream, WhatIsGivenLivesUntilItIsSent) {
  expect_all_ok(on_stages(2, [](const StageStream& stream) {
    if (!stream.is_first()) {
      EXPECT_TRUE(
          stream.taken(stream.stage(), 4, 2, /*trains=*/false).equal(rows_of_pass(0, 2, 4).t()));
      return;
    }
    stream.give(stream.stage(), rows_of_pass(0, 2, 4).t());  // not contiguous, and gone at once
  }));
}

TEST(StageStream, RowsOfAnotherPassAreAnError) {
  const std::vector<Status> ended = on_stages(2, [](const StageStream& stream) {
    if (stream.is_first()) return stream.give(stream.stage(), rows_of_pass(0, 2, 4));
    (void)stream.taken(stream.stage(), 3, 4, /*trains=*/true);
  });
  EXPECT_TRUE(ended[0].ok()) << ended[0].to_string();
  EXPECT_EQ(ended[1].code(), ErrorCode::kInternal);
  EXPECT_NE(ended[1].message().find("activations of a stage of another pass"), std::string::npos)
      << ended[1].message();
}

TEST(StageStream, APassWithoutRowsIsAnError) {
  const std::vector<Status> ended = on_stages(2, [](const StageStream& stream) {
    if (stream.is_first()) return stream.give(stream.stage(), {});
    (void)stream.taken(stream.stage(), 3, 4, /*trains=*/true);
  });
  EXPECT_EQ(ended[1].code(), ErrorCode::kInternal) << ended[1].to_string();
}

// The middle stage fails before it goes back: the one before it waits for gradients, the one behind
// it for rows.
TEST(StageStream, AStageThatFailsIsAnErrorOfItsNeighbours) {
  const std::vector<Status> ended = on_stages(3, [](const StageStream& stream) {
    const at::Tensor rows = rows_of_pass(0, 2, 4);
    if (stream.stage() == 1) {
      (void)stream.taken(stream.stage(), 2, 4, /*trains=*/true);
      throw StatusException(runtime::task_failed("no layers today"));
    }
    if (stream.is_last()) return (void)stream.taken(stream.stage(), 2, 4, /*trains=*/true);
    stream.give(stream.stage(), rows);
    (void)stream.taken_back(stream.stage(), rows);
  });
  EXPECT_EQ(ended[1].code(), ErrorCode::kTaskFailed);
  EXPECT_EQ(ended[0].code(), ErrorCode::kUnavailable) << ended[0].to_string();
  EXPECT_NE(ended[0].message().find("gradients of a stage"), std::string::npos);
  EXPECT_EQ(ended[2].code(), ErrorCode::kUnavailable) << ended[2].to_string();
  EXPECT_NE(ended[2].message().find("activations of a stage"), std::string::npos);
}

}  // namespace
}  // namespace rl
