// Weights on their way from a policy that trains to one that only generates; see weight_channel.h.
#include <chrono>
#include <utility>

#include "rl/actor/actors.h"

namespace rl {

using runtime::Result;
using runtime::Status;

namespace {

// A version is published before it is asked for: what takes longer has been lost.
constexpr std::chrono::minutes kArrival{5};

}  // namespace

Status PolicyActor::publish_weights(const std::string& name, std::uint64_t version) {
  const Offload::Stay here = worker_->stay();
  if (const Status there = worker_->await_weights(); !there.ok()) return there;
  return WeightPublisher(runtime_, name).publish(worker_->learner().model(), version);
}

Result<Generated> PolicyActor::generate_with(const PromptBatch& prompts, const std::string& name,
                                             std::uint64_t version) {
  WeightReceiver& receiver =
      receivers_.try_emplace(name, runtime_, name, worker_->model()).first->second;
  const std::uint64_t before = receiver.version();
  const Status arrived = receiver.wait(version, kArrival);
  if (!arrived.ok()) return arrived;
  if (receiver.version() != before) worker_->weights_changed(receiver.version());
  return generate(prompts, /*validation=*/false);
}

}  // namespace rl
