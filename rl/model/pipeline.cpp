#include "rl/model/pipeline.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <cstring>
#include <optional>
#include <span>
#include <utility>

#include "rl/model/autograd.h"
#include "rl/model/guarded.h"
#include "runtime/core/check.h"

namespace rl {
namespace {

constexpr const char* kBack = "gradients of a stage";

// Of an output: whether there is one, whether it has a graph, its sizes.
struct OutputHead {
  std::int64_t dims = -1;
  std::int64_t has_graph = 0;
  std::int64_t sizes[2] = {0, 0};
};

void append(std::vector<std::byte>& bytes, const void* data, std::size_t size) {
  const auto* from = static_cast<const std::byte*>(data);
  bytes.insert(bytes.end(), from, from + size);
}

std::vector<std::byte> encoded(std::span<const at::Tensor> outputs) {
  std::vector<std::byte> bytes;
  for (const at::Tensor& output : outputs) {
    OutputHead head;
    if (output.defined()) {
      CHECK(output.dim() <= 2 && output.scalar_type() == at::kFloat);
      head.dims = output.dim();
      head.has_graph = output.requires_grad() ? 1 : 0;
      for (std::int64_t i = 0; i < head.dims; ++i) head.sizes[i] = output.size(i);
    }
    append(bytes, &head, sizeof head);
    if (!output.defined()) continue;
    const at::Tensor dense = output.detach().contiguous();
    append(bytes, dense.const_data_ptr(), dense.nbytes());
  }
  return bytes;
}

struct Decoded {
  std::vector<at::Tensor> outputs;
  std::vector<bool> has_graph;
};

Decoded decoded(std::span<const std::byte> bytes) {
  Decoded all;
  while (!bytes.empty()) {
    OutputHead head;
    CHECK(bytes.size() >= sizeof head);
    std::memcpy(&head, bytes.data(), sizeof head);
    bytes = bytes.subspan(sizeof head);
    at::Tensor output;
    if (head.dims >= 0) {
      output = at::empty(at::IntArrayRef(head.sizes, static_cast<std::size_t>(head.dims)));
      CHECK(bytes.size() >= output.nbytes());
      std::memcpy(output.mutable_data_ptr(), bytes.data(), output.nbytes());
      bytes = bytes.subspan(output.nbytes());
    }
    all.outputs.push_back(std::move(output));
    all.has_graph.push_back(head.has_graph != 0);
  }
  return all;
}

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
  at::Tensor taken = team_->handed(*begun - 1, *begun, x.defined() ? x.detach() : x, {rows, width},
                                   "activations of a stage");
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
  return team_->handed(begun, begun - 1, has_none ? at::zeros({rows, width}) : gradient,
                       {rows, width}, kBack);
}

std::vector<at::Tensor> Pipeline::outputs(const at::Tensor& x, std::vector<at::Tensor> made,
                                          const Told& told) const {
  const int last = team_->size() - 1;
  const std::vector<std::byte> bytes =
      team_->from(last, is_last() ? encoded(made) : std::vector<std::byte>(), "outputs of a pass");
  if (is_last()) return made;
  Decoded there = decoded(bytes);
  std::vector<at::Tensor> with_graph;
  for (std::size_t i = 0; i < there.outputs.size(); ++i)
    if (there.has_graph[i]) with_graph.push_back(there.outputs[i]);
  if (with_graph.empty() || !autograd::needed({x})) return std::move(there.outputs);
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
  return std::move(there.outputs);
}

at::Tensor Pipeline::giving_gradient_to_last(const at::Tensor& embeddings) const {
  if (!autograd::needed({embeddings})) return embeddings;
  at::Tensor same = embeddings.detach();
  autograd::connect("gradient of embeddings", same, {embeddings},
                    [this](const std::vector<at::Tensor>& grads) {
                      (void)team_->handed(0, team_->size() - 1, grads[0], grads[0].sizes(),
                                          "gradients of embeddings");
                      return grads;
                    });
  return same;
}

at::Tensor Pipeline::gradient_of_first(std::int64_t rows, std::int64_t width) const {
  return team_->handed(0, team_->size() - 1, {}, {rows, width}, "gradients of embeddings");
}

}  // namespace rl
