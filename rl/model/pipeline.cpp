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
  const std::int64_t at = layer - cuts_.layers().first(stage());
  return at >= 0 && at < cuts_.layers().size(stage());
}

at::Tensor Pipeline::at_layer(std::int64_t layer, const at::Tensor& x, std::int64_t rows,
                              std::int64_t width, bool trains, const Told& told,
                              const Behind& behind) const {
  const std::optional<int> begun = cuts_.begun_by(layer);
  if (!begun) return x;
  at::Tensor taken =
      team_->handed(at_place(*begun - 1), at_place(*begun), x.defined() ? x.detach() : x,
                    {rows, width}, "activations of a stage");
  if (stage() != *begun) return x;
  if (!trains || !c10::GradMode::is_enabled()) return taken;
  autograd::connect("stage's input backward", taken, {autograd::anchor()},
                    [this, begun = *begun, layer, rows, width, told,
                     behind](const std::vector<at::Tensor>& grads) {
                      (void)back_at(begun, grads[0], rows, width);
                      for (std::int64_t below = layer - 1; below >= 0; --below) {
                        told(below);
                        const std::optional<int> other = cuts_.begun_by(below);
                        if (other) (void)back_at(*other, {}, rows, width);
                      }
                      behind();
                      return std::vector<at::Tensor>(1);
                    });
  return taken;
}

// The gradient of what the stage `begun` took, which the one before it gets.
at::Tensor Pipeline::back_at(int begun, const at::Tensor& gradient, std::int64_t rows,
                             std::int64_t width) const {
  const bool has_none = stage() == begun && !gradient.defined();
  return team_->handed(at_place(begun), at_place(begun - 1),
                       has_none ? at::zeros({rows, width}) : gradient, {rows, width}, kBack);
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
  // They share the node, and are the tensors of `there`.
  autograd::connect("stage's outputs backward", with_graph, {x},
                    [this, end = cuts_.layers().first(stage() + 1), layers = cuts_.layers().total(),
                     rows = x.size(0), width = x.size(1), told](const std::vector<at::Tensor>&) {
                      at::Tensor gradient;
                      for (std::int64_t layer = layers - 1; layer >= end; --layer) {
                        told(layer);
                        if (const std::optional<int> begun = cuts_.begun_by(layer))
                          gradient = back_at(*begun, {}, rows, width);
                      }
                      return std::vector<at::Tensor>{gradient};
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
