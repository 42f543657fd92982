#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>

#include "rl/model/autograd.h"
#include "rl/model/ops.h"
#include "rl/model/parallel.h"
#include "rl/model/pass_team.h"
#include "rl/model/products.h"
#include "rl/model/tied_table_sum.h"

namespace rl::ops {
namespace {

constexpr std::int64_t kLogitRowsLeast = 16;  // rows of logits are long

// One stretch of rows: what backward needs of it.
struct Chunk {
  std::int64_t first = 0;
  std::int64_t rows = 0;
  at::Tensor logits;         // [own rows, V], or undefined when they are computed again
  forward::RowLogprobs out;  // of own rows
};

struct Head {
  at::Tensor x;  // [N, I]
  Linear layer;
  at::Tensor factor;  // the weight as it is multiplied; of a team the rank's rows
  std::vector<std::int32_t> targets;
  LmHeadOptions options;
  std::vector<Chunk> chunks;

  std::int64_t vocabulary() const { return layer.cut ? layer.cut->total() : factor.size(0); }
};

// Of a stretch of rows those whose softmax the rank computes: a team deals each stretch.
struct OwnRows {
  std::int64_t first = 0;
  std::int64_t count = 0;
  std::optional<ColumnCut> dealt;  // nullopt: all of them

  OwnRows(const PassContext& pass, const Head& head, std::int64_t chunk_first,
          std::int64_t chunk_rows)
      : first(chunk_first), count(chunk_rows) {
    if (!head.layer.dealt && !head.layer.cut) return;
    dealt.emplace(chunk_rows, 1, pass.team->size());
    first += dealt->first(pass.team->rank());
    count = dealt->size(pass.team->rank());
  }

  // Gathers the numbers of all rows, one a row.
  at::Tensor all(const PassContext& pass, const at::Tensor& own) const {
    if (!dealt || !own.defined()) return own;
    return pass.team->all_rows(own.unsqueeze(1), *dealt, "log-probs").squeeze(1);
  }
};

// The gradients of a chunk's outputs; undefined where there is none.
struct OutputGradients {
  at::Tensor d_logprob;
  at::Tensor d_entropy;
};

// Of a chunk's own rows. Where ranks have parts of the layer each computes its part of all of the
// chunk's logits, and they exchange columns for rows.
at::Tensor logits_of(const PassContext& pass, const Head& head, const Chunk& chunk,
                     const OwnRows& own) {
  const forward::Linear layer{head.factor, head.layer.bias.value};
  at::Tensor logits;
  if (head.layer.cut) {
    logits = forward::linear(pass, head.x.narrow(0, chunk.first, chunk.rows), layer);
    logits = pass.team->rows_of_columns(logits, *head.layer.cut, *own.dealt, "logits");
  } else {
    logits = forward::linear(pass, head.x.narrow(0, own.first, own.count), layer);
  }
  forward::softcap_(pass, logits, head.options.softcap);
  return logits;
}

// In place: some rows of logits become their gradient. With z = logits / temperature and p =
// softmax(z), d logprob / dz = onehot - p and d entropy / dz = -p (log p + entropy).
void logits_to_gradient(at::Tensor logits, const forward::RowLogprobs& out,
                        const at::Tensor& targets, float temperature,
                        const OutputGradients& grads) {
  logits.mul_(1.0F / temperature).sub_(out.log_normalizer.unsqueeze(1));  // log p
  if (grads.d_entropy.defined()) {
    at::Tensor factor = logits + out.entropy.unsqueeze(1);
    factor.mul_(grads.d_entropy.unsqueeze(1));
    if (grads.d_logprob.defined()) factor.add_(grads.d_logprob.unsqueeze(1));
    logits.exp_().mul_(factor.neg_());
  } else {
    logits.exp_().mul_(grads.d_logprob.neg().unsqueeze(1));
  }
  if (grads.d_logprob.defined()) logits.scatter_add_(1, targets, grads.d_logprob.unsqueeze(1));
  if (temperature != 1.0F) logits.mul_(1.0F / temperature);
}

// The sum of p^2 = exp(2 z) / exp(2 log_normalizer), whose numerators add up to the normalizer of
// another softmax: that at half the temperature.
at::Tensor sum_of_squares(const PassContext& pass, const at::Tensor& logits,
                          std::span<const std::int32_t> targets, float temperature,
                          const at::Tensor& log_normalizer) {
  return (forward::row_logprobs(pass, logits, targets, temperature / 2, /*with_entropy=*/false)
              .log_normalizer -
          log_normalizer * 2)
      .exp_();
}

at::Tensor logit_rows(const at::Tensor& t, std::int64_t first, std::int64_t count) {
  return t.defined() ? t.narrow(0, first, count) : t;
}

// In place: logits of own rows become their gradients.
void own_gradients(const PassContext& pass, const Head& head, const OwnRows& own,
                   const Chunk& chunk, const at::Tensor& logits, const OutputGradients& grads) {
  const at::Tensor targets =
      at::from_blob(const_cast<std::int32_t*>(head.targets.data() + own.first), {own.count, 1},
                    at::TensorOptions().dtype(at::kInt))
          .to(logits.device(), at::kLong);
  for_blocks(
      pass.pool, cut(own.count, kLogitRowsLeast, logits.device()), logits.device(),
      [&](const Block& block) {
        const auto part = [&](const at::Tensor& t) {
          return logit_rows(t, block.first, block.count);
        };
        const auto of_all = [&](const at::Tensor& t) {
          return logit_rows(t, own.first + block.first, block.count);
        };
        const at::Tensor d_logits = part(logits);
        // d capped / dx = 1 - (capped / cap)^2
        const at::Tensor slope = head.options.softcap > 0.0F
                                     ? (d_logits / head.options.softcap).square_().neg_().add_(1)
                                     : at::Tensor();
        logits_to_gradient(d_logits, {{}, part(chunk.out.log_normalizer), part(chunk.out.entropy)},
                           part(targets), head.options.temperature,
                           {of_all(grads.d_logprob), of_all(grads.d_entropy)});
        if (slope.defined()) d_logits.mul_(slope);
      });
}

// dx = d_logits weight, of the columns of dx that the weight has.
void multiply_rows(const PassContext& pass, const at::Tensor& dx, const at::Tensor& d_logits,
                   const at::Tensor& weight) {
  const at::Tensor dy = d_logits.to(weight.scalar_type());
  std::vector<std::function<void()>> tasks;
  for (const ProductPart& part :
       product_parts(weight, dx.size(0), dx.size(1), pass.pool.threads(), kLogitRowsLeast))
    tasks.emplace_back([&, part] { multiply_part_into(dx, part, dy, weight); });
  run_tasks(pass.pool, tasks, dx.device());
}

// dW = d_logits^T x, or more of it.
void multiply_weight_gradient(kernel::ThreadPool& pool, const at::Tensor& into,
                              const at::Tensor& d_logits, const at::Tensor& x, bool adds) {
  std::vector<std::function<void()>> tasks;
  for (const ProductPart& part :
       product_parts(d_logits, into.size(0), into.size(1), pool.threads(), kLogitRowsLeast)) {
    tasks.emplace_back([&, part] { multiply_part_into(into, part, d_logits.t(), x, adds); });
  }
  run_tasks(pool, tasks, into.device());
}

// `weight`: of the columns of x's gradient that dx has.
void backward_chunk(const PassContext& pass, const Head& head, const Chunk& chunk,
                    const OwnRows& own, const at::Tensor& weight, at::Tensor logits,
                    const OutputGradients& grads, const at::Tensor& dx) {
  own_gradients(pass, head, own, chunk, logits, grads);
  const at::Tensor chunk_dx = dx.narrow(0, chunk.first, chunk.rows);
  if (head.layer.cut) {
    logits = pass.team->all_rows(logits, *own.dealt, "gradients of logits");
    multiply_rows(pass, chunk_dx, logits, weight);
    logits = pass.team->own_columns(logits, *head.layer.cut);
  } else {
    const at::Tensor own_dx = dx.narrow(0, own.first, own.count);
    multiply_rows(pass, own_dx, logits, weight);
    if (own.dealt) {
      chunk_dx.copy_(pass.team->all_rows(own_dx, *own.dealt, "gradient of the input"));
      logits =
          pass.team->columns_of_rows(logits, *own.dealt, *head.layer.dealt, "gradients of logits");
    }
  }
  if (head.layer.bias.trained()) head.layer.bias.add_gradient_of_rows(logits);
  if (!head.layer.weight.trained()) return;
  const at::Tensor x = pass.as_factor(head.x.narrow(0, chunk.first, chunk.rows));
  const at::Tensor d_logits = pass.as_factor(logits);
  const bool first = head.layer.weight.sum->begin();
  const at::Tensor& grad = head.layer.weight.grad;
  const TiedTableSum::Multiply multiply =
      [&pool = pass.pool](const at::Tensor& into, const at::Tensor& d_rows, const at::Tensor& of_x,
                          bool adds) { multiply_weight_gradient(pool, into, d_rows, of_x, adds); };
  if (head.options.tied_table != nullptr)
    head.options.tied_table->add_product(grad, d_logits, x, !first, multiply);
  else
    multiply(grad, d_logits, x, !first);
}

at::Tensor backward(const PassContext& pass, Head& head, const OutputGradients& grads) {
  at::Tensor weight = head.factor;
  ColumnCut columns;
  if (head.layer.cut) {
    columns = ColumnCut(head.x.size(1), 1, pass.team->size());
    weight = pass.team->columns_of_rows(head.factor, *head.layer.cut, columns, "weights' columns");
  }
  const at::Tensor dx = at::empty({head.x.size(0), weight.size(1)}, head.x.options());
  for (Chunk& chunk : head.chunks) {
    const OwnRows own(pass, head, chunk.first, chunk.rows);
    at::Tensor logits =
        chunk.logits.defined() ? std::move(chunk.logits) : logits_of(pass, head, chunk, own);
    backward_chunk(pass, head, chunk, own, weight, std::move(logits), grads, dx);
  }
  return head.layer.cut ? pass.team->all_columns(dx, columns, "gradient of the input") : dx;
}

}  // namespace

LmHeadOutputs lm_head_logprobs(const PassContext& pass, const at::Tensor& x, const Linear& layer,
                               std::span<const std::int32_t> targets,
                               const LmHeadOptions& options) {
  const bool build = autograd::needed({x});
  auto head = std::make_shared<Head>(Head{x.detach(),
                                          layer,
                                          pass.as_factor(layer.weight.value),
                                          {targets.begin(), targets.end()},
                                          options,
                                          {}});
  std::vector<at::Tensor> outputs = {at::empty({x.size(0)}, head->x.options())};
  if (options.with_entropy) outputs.push_back(at::empty({x.size(0)}, head->x.options()));
  const at::Tensor squares =
      options.with_squares ? at::empty({x.size(0)}, head->x.options()) : at::Tensor();
  {
    c10::AutoGradMode off(false);
    const std::int64_t row_bytes = head->vocabulary() * static_cast<std::int64_t>(sizeof(float));
    const std::int64_t kept_rows = options.kept_bytes_max / row_bytes;
    const std::int64_t chunk_rows = x.device().is_cpu()
                                        ? options.rows_max
                                        : std::max(options.rows_max, kDeviceLogitBytes / row_bytes);
    for (std::int64_t first = 0; first < x.size(0); first += chunk_rows) {
      Chunk chunk;
      chunk.first = first;
      chunk.rows = std::min(chunk_rows, x.size(0) - first);
      const OwnRows own(pass, *head, first, chunk.rows);
      at::Tensor logits = logits_of(pass, *head, chunk, own);
      const std::span<const std::int32_t> wanted =
          targets.subspan(static_cast<std::size_t>(own.first), static_cast<std::size_t>(own.count));
      chunk.out =
          forward::row_logprobs(pass, logits, wanted, options.temperature, options.with_entropy);
      const auto keep = [&](const at::Tensor& all, const at::Tensor& of_own) {
        all.narrow(0, first, chunk.rows).copy_(own.all(pass, of_own));
      };
      keep(outputs[0], chunk.out.logprob);
      if (options.with_entropy) keep(outputs[1], chunk.out.entropy);
      if (options.with_squares) {
        keep(squares,
             sum_of_squares(pass, logits, wanted, options.temperature, chunk.out.log_normalizer));
      }
      if (build && first + chunk.rows <= kept_rows) chunk.logits = std::move(logits);
      if (build) head->chunks.push_back(std::move(chunk));
    }
  }
  if (build) {
    autograd::connect(
        "log-probs backward", outputs, {x}, [pass, head](const std::vector<at::Tensor>& grads) {
          return std::vector<at::Tensor>{
              backward(pass, *head, {grads[0], grads.size() > 1 ? grads[1] : at::Tensor()})};
        });
  }
  return {outputs[0], options.with_entropy ? outputs[1] : at::Tensor(), squares};
}

}  // namespace rl::ops
