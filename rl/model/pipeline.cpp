#include "rl/model/pipeline.h"

#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <optional>
#include <span>
#include <utility>

#include "rl/model/autograd.h"
#include "rl/model/guarded.h"
#include "rl/model/tensor_list.h"
#include "runtime/core/check.h"

namespace rl {
namespace {

constexpr const char* kBack = "gradients of a stage";

}  // namespace

bool Pipeline::has(std::int64_t layer) const {
  return cuts_.stage_of(cuts_.chunk_of(layer)) == stage();
}

// The layer behind a chunk's last one.
std::int64_t Pipeline::end_of(int chunk) const {
  return cuts_.layers().first(chunk) + cuts_.layers().size(chunk);
}

at::Tensor Pipeline::at_layer(std::int64_t layer, const at::Tensor& x, std::int64_t rows,
                              std::int64_t width, bool trains, const Told& told,
                              const Behind& behind) const {
  const std::optional<int> begun = cuts_.begun_by(layer);
  if (!begun) return x;
  at::Tensor taken =
      team_->handed(at_place(cuts_.stage_of(*begun - 1)), at_place(cuts_.stage_of(*begun)),
                    x.defined() ? x.detach() : x, {rows, width}, "activations of a stage");
  if (cuts_.stage_of(*begun) != stage()) return x;
  if (!trains || !c10::GradMode::is_enabled()) return taken;
  const bool is_first_chunk = *begun < cuts_.stages();
  autograd::connect("stage's input backward", taken, {is_first_chunk ? autograd::anchor() : x},
                    [this, begun = *begun, is_first_chunk, layer, rows, width, told,
                     behind](const std::vector<at::Tensor>& grads) -> std::vector<at::Tensor> {
                      (void)back_at(begun, grads[0], rows, width);
                      if (!is_first_chunk) {
                        const std::int64_t own = end_of(begun - cuts_.stages());
                        return {back_through(layer, own, rows, width, told)};
                      }
                      (void)back_through(layer, 0, rows, width, told);
                      behind();
                      return {at::Tensor()};
                    });
  return taken;
}

// The gradient of what the chunk `begun` took, which the one before it gets.
at::Tensor Pipeline::back_at(int begun, const at::Tensor& gradient, std::int64_t rows,
                             std::int64_t width) const {
  const int from = cuts_.stage_of(begun), to = cuts_.stage_of(begun - 1);
  const bool has_none = stage() == from && !gradient.defined();
  return team_->handed(at_place(from), at_place(to), has_none ? at::zeros({rows, width}) : gradient,
                       {rows, width}, kBack);
}

// Past the layers of other stages, from the one below `above` down to `lowest`. Returns what this
// stage gets at the last of them, if it is the one before it.
at::Tensor Pipeline::back_through(std::int64_t above, std::int64_t lowest, std::int64_t rows,
                                  std::int64_t width, const Told& told) const {
  at::Tensor gradient;
  for (std::int64_t layer = above - 1; layer >= lowest; --layer) {
    told(layer);
    if (const std::optional<int> begun = cuts_.begun_by(layer))
      gradient = back_at(*begun, {}, rows, width);
  }
  return gradient;
}

std::vector<at::Tensor> Pipeline::outputs(const at::Tensor& x, std::vector<at::Tensor> made,
                                          const Told& told) const {
  const int teller = (cuts_.stages() - 1) * stage_ranks();  // all of its stage have the same
  const std::vector<std::byte> bytes =
      team_->from(teller, team_->rank() == teller ? encode_tensors(made) : std::vector<std::byte>(),
                  "outputs of a pass");
  if (is_last()) return made;
  auto decoded = decode_tensors(bytes);
  throw_unless_ok(decoded.status());
  std::vector<at::Tensor> there = std::move(*decoded);
  std::vector<at::Tensor> with_graph;
  for (at::Tensor& output : there) {
    if (!output.defined() || !output.requires_grad()) continue;
    output = output.detach();
    with_graph.push_back(output);
  }
  if (with_graph.empty() || !autograd::needed({x})) return there;
  const int last_own = cuts_.layers().ranks() - cuts_.stages() + stage();
  // They share the node, and are the tensors of `there`.
  autograd::connect("stage's outputs backward", with_graph, {x},
                    [this, end = end_of(last_own), layers = cuts_.layers().total(),
                     rows = x.size(0), width = x.size(1), told](const std::vector<at::Tensor>&) {
                      return std::vector<at::Tensor>{back_through(layers, end, rows, width, told)};
                    });
  return there;
}

at::Tensor Pipeline::giving_gradient_to_last(const at::Tensor& embeddings) const {
  if (!autograd::needed({embeddings})) return embeddings;
  at::Tensor same = embeddings.detach();
  autograd::connect("gradient of embeddings", same, {embeddings},
                    [this](const std::vector<at::Tensor>& grads) {
                      (void)team_->handed(at_place(0), at_place(cuts_.stages() - 1), grads[0],
                                          grads[0].sizes(), "gradients of embeddings");
                      return grads;
                    });
  return same;
}

at::Tensor Pipeline::gradient_of_first(std::int64_t rows, std::int64_t width) const {
  return team_->handed(at_place(0), at_place(cuts_.stages() - 1), {}, {rows, width},
                       "gradients of embeddings");
}

}  // namespace rl
