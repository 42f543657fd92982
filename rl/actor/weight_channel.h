// Weight sync from the trainer to generators in other processes: published by one, received by any
// number of them between two of their steps.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include "rl/model/transformer.h"
#include "rl/rollout/engine.h"
#include "runtime/core/result.h"
#include "runtime/runtime.h"

namespace rl {

/// The side of the trainer. A version is what it trains of its model (all weights, or the adapter),
/// as one object of the cluster under one name. It costs one copy into the node's shared memory,
/// and nothing more for however many readers of that node. Other nodes fetch it once each, from one
/// another. The last two versions stay.
class WeightPublisher {
 public:
  WeightPublisher(runtime::Runtime& runtime, std::string name)
      : runtime_(runtime), name_(std::move(name)) {}

  /// Versions grow. Nothing may change the weights meanwhile. Errors: those of Runtime::put and
  /// rt.published().publish.
  runtime::Status publish(const Transformer& model, std::uint64_t version);

 private:
  runtime::Runtime& runtime_;
  std::string name_;
};

/// The side of the engine: fetches each new version in the background, and has it taken over when
/// the engine is between two steps. One thread at a time, and no thread works in the model
/// meanwhile. Borrows the runtime and the model. The model's shape must be the trainer's, with the
/// same adapter in use.
class WeightReceiver {
 public:
  /// Listens from now on, beginning with the version that there is.
  WeightReceiver(runtime::Runtime& runtime, std::string name, Transformer& model);
  ~WeightReceiver();
  WeightReceiver(const WeightReceiver&) = delete;
  WeightReceiver& operator=(const WeightReceiver&) = delete;

  /// Takes over the newest version that has arrived since, if there is one: one copy into the
  /// model. Does not wait. True: the weights have changed. kInvalidArgument: it is of another
  /// model. A version that was lost on its way is no error: a newer one will come.
  runtime::Result<bool> take();

  /// Waits until the model has that version or a newer one. kDeadlineExceeded names what there is;
  /// others as take().
  runtime::Status wait(std::uint64_t at_least, runtime::Until until);

  /// Of the weights that the model has; 0: those that it was loaded with.
  std::uint64_t version() const { return version_; }

 private:
  struct Arrived {
    std::uint64_t version = 0;
    runtime::ArrayView<float> weights;
  };

  void fetch(const runtime::PublishedEvent& event);

  runtime::Runtime& runtime_;
  std::string name_;
  Transformer& model_;
  std::uint64_t version_ = 0;
  std::uint64_t refused_ =
      0;  // the newest that was of another model: two events may bring the same one
  std::mutex mutex_;
  std::condition_variable arrival_;
  std::optional<Arrived> arrived_;  // guarded by mutex_; the newest that was not taken
  runtime::Watch watch_;            // last: its callbacks end before the rest goes
};

/// To be called between two steps: takes over what has arrived and tells the engine, whose tokens
/// carry the version from then on. What becomes of requests that have begun is the policy's.
/// Errors: as WeightReceiver::take.
runtime::Status take_weights(WeightReceiver& receiver, Engine& engine, OnNewWeights policy);

}  // namespace rl
