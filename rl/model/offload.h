// Offload: a model on a device whose weights and gradients leave it while no pass computes with
// them.
#pragma once

#include <ATen/core/Tensor.h>

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "rl/mesh/arena_range.h"
#include "rl/model/layer_listener.h"
#include "rl/model/transformer.h"
#include "runtime/core/status.h"
#include "runtime/core/thread.h"

namespace rl {

/// What leaves: verl's param_offload and grad_offload. The optimizer's state is on the host either
/// way (docs/adr/0034).
struct OffloadOptions {
  bool parameters = false;
  bool gradients = false;

  bool any() const { return parameters || gradients; }
};

/// Gives the memory of a model's weights back to its device, which other roles share, until they
/// are wanted: while a Stay lives. A copy on the host has what they are. The weights come back in
/// the background: first what stands next to the layers, then layer by layer. A pass waits before
/// each layer for that one alone, so that copying overlaps computing. This is the prefetching of
/// Rajbhandari et al. 2021, "ZeRO-Infinity", arXiv:2104.07857. Gradients are zero between updates,
/// and need no copy. An adapter in use stays. Without effect for a model on the CPU. A resource;
/// one thread at a time; the model must outlive it, and does not change its adapters meanwhile.
class Offload : LayerListener {
 public:
  /// `host`: the weights on the host, which the code that changes those on the device keeps equal;
  /// undefined: a copy is made here. All leave at once.
  Offload(Transformer& model, const OffloadOptions& options, at::Tensor host = {});
  ~Offload() override;
  Offload(const Offload&) = delete;
  Offload& operator=(const Offload&) = delete;

  /// While one lives the weights are on the device, or on their way. Of several the last one lets
  /// them go.
  class Stay {
   public:
    Stay() = default;  // of a model that does not leave
    /// Of one that has come, and leaves with the last.
    explicit Stay(Offload& offload) : offload_(&offload) { ++offload.stays_; }
    Stay(Stay&& other) noexcept : offload_(std::exchange(other.offload_, nullptr)) {}
    Stay& operator=(Stay&&) = delete;
    ~Stay() {
      if (offload_ != nullptr) offload_->leave();
    }

   private:
    Offload* offload_ = nullptr;
  };

  /// `with_gradients`: room for them, too, at zero. What goes wrong is told by the pass that
  /// follows, or by await().
  [[nodiscard]] Stay stay(bool with_gradients = false);

  /// Returns when all weights are there: for callers that use them outside a pass.
  /// kResourceExhausted: the device has no memory for them. kInternal: it has failed.
  runtime::Status await();

 private:
  void before_forward(std::int64_t layer) override {
    await_stages(static_cast<std::size_t>(layer) + 2);
  }
  void come(bool first, bool with_gradients);
  void leave();
  void make_room(bool with_gradients);
  void fetch();
  void await_stages(std::size_t count);
  void join();

  Transformer& model_;
  OffloadOptions options_;
  bool active_ = false;  // the model is on a device
  at::Tensor host_;
  std::vector<std::vector<ArenaRange>>
      stages_;  // what is fetched together: all that is in no layer, then each layer's
  int stays_ = 0;
  bool with_gradients_ = false;
  runtime::Thread thread_;  // fetches

  std::mutex mutex_;  // guards what follows
  std::condition_variable arrived_;
  std::size_t stages_there_ = 0;
  std::exception_ptr failure_;
};

}  // namespace rl
