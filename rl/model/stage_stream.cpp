#include "rl/model/stage_stream.h"

#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "rl/model/autograd.h"
#include "rl/model/guarded.h"

namespace rl {
namespace {

struct Channel {
  std::uint64_t number = 0;
  const char* what = "";
};
constexpr std::uint64_t kKinds = 3;
constexpr Channel kEmbeddings{2, "gradients of embeddings"};

// Two stages may have several borders in common. Each has its own channels, those of the chunk
// behind it: passes come to it in one order.
Channel activations(int chunk) {
  return {kKinds * static_cast<std::uint64_t>(chunk), "activations of a stage"};
}

Channel gradients(int chunk) {
  return {kKinds * static_cast<std::uint64_t>(chunk) + 1, "gradients of a stage"};
}

// An undefined tensor is an empty message.
void send(PeerMessages& links, int peer, const at::Tensor& t, const Channel& channel) {
  const auto dense = std::make_shared<const at::Tensor>(t.defined() ? t.detach().contiguous() : t);
  const std::span<const std::byte> bytes =
      t.defined() ? std::span(static_cast<const std::byte*>(dense->const_data_ptr()),
                              static_cast<std::size_t>(dense->nbytes()))
                  : std::span<const std::byte>();
  throw_unless_ok(links.send(peer, channel.number, bytes, dense, channel.what));
}

at::Tensor receive(PeerMessages& links, int peer, at::IntArrayRef shape, const Channel& channel) {
  const auto message = links.receive(peer, channel.number, channel.what);
  throw_unless_ok(message.status());
  if (message->empty()) return {};
  at::Tensor t = at::empty(shape);
  if (message->size() != t.nbytes())
    throw_unless_ok(runtime::internal_error(std::string(channel.what) + " of another pass"));
  std::memcpy(t.mutable_data_ptr(), message->data(), message->size());
  return t;
}

}  // namespace

at::Tensor StageStream::taken(int chunk, std::int64_t rows, std::int64_t width, bool trains) const {
  at::Tensor x = receive(*links_.stages, stage_of(chunk - 1), {rows, width}, activations(chunk));
  if (!x.defined()) throw_unless_ok(runtime::internal_error("no activations of a pass with rows"));
  if (!trains || !c10::GradMode::is_enabled()) return x;
  autograd::connect("stage's input backward", x, {autograd::anchor()},
                    [this, chunk](const std::vector<at::Tensor>& grads) {
                      send(*links_.stages, stage_of(chunk - 1), grads[0], gradients(chunk));
                      return std::vector<at::Tensor>(1);
                    });
  return x;
}

void StageStream::give(int chunk, const at::Tensor& output) const {
  send(*links_.stages, stage_of(chunk + 1), output, activations(chunk + 1));
}

at::Tensor StageStream::taken_back(int chunk, const at::Tensor& output) const {
  return receive(*links_.stages, stage_of(chunk + 1), output.sizes(), gradients(chunk + 1));
}

void StageStream::give_back_nothing(int chunk, bool tied) const {
  if (chunk > 0) send(*links_.stages, stage_of(chunk - 1), {}, gradients(chunk));
  if (chunk == 0 && tied) send(*links_.stages, stages() - 1, {}, kEmbeddings);
}

at::Tensor StageStream::giving_gradient_to_last(const at::Tensor& embeddings) const {
  if (!autograd::needed({embeddings})) return embeddings;
  at::Tensor same = embeddings.detach();
  autograd::connect("gradient of embeddings", same, {embeddings},
                    [this](const std::vector<at::Tensor>& grads) {
                      send(*links_.stages, stages() - 1, grads[0], kEmbeddings);
                      return grads;
                    });
  return same;
}

at::Tensor StageStream::gradient_of_first(std::int64_t rows, std::int64_t width) const {
  return receive(*links_.stages, 0, {rows, width}, kEmbeddings);
}

void StageStream::progress() const { links_.stages->progress(); }

}  // namespace rl
