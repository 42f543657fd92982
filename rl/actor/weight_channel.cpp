#include "rl/actor/weight_channel.h"

#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "runtime/core/log.h"

namespace rl {

using runtime::Result;
using runtime::Status;

Status WeightPublisher::publish(const Transformer& model, std::uint64_t version) {
  const at::Tensor arena = model.trained_parameters().arena().cpu();
  const std::span<const float> values(arena.const_data_ptr<float>(),
                                      static_cast<std::size_t>(arena.numel()));
  const auto weights = runtime_.put(runtime::ArrayView<float>(values, nullptr));
  if (!weights.ok()) return weights.status().with_context("publishing weights " + name_);
  return runtime_.published().publish(name_, version, *weights);
}

WeightReceiver::WeightReceiver(runtime::Runtime& runtime, std::string name, Transformer& model)
    : runtime_(runtime),
      name_(std::move(name)),
      model_(model),
      watch_(runtime.published().watch(
          name_, [this](const runtime::PublishedEvent& event) { fetch(event); })) {}

WeightReceiver::~WeightReceiver() = default;

// On the watch's own thread, so that the bytes travel while the engine works.
void WeightReceiver::fetch(const runtime::PublishedEvent& event) {
  const auto latest =
      runtime_.published().latest<runtime::ArrayView<float>>(name_, {.at_least = event.version});
  if (!latest.ok())
    return LOG(warn, "weights {} {}: {}", name_, event.version, latest.status().message());
  Result<runtime::ArrayView<float>> view = runtime_.objects().view(latest->ref);
  if (!view.ok())
    return LOG(warn, "weights {} {}: {}", name_, latest->version, view.status().message());
  const std::lock_guard lock(mutex_);
  if (arrived_ && arrived_->version >= latest->version) return;
  arrived_ = Arrived{latest->version, std::move(*view)};
  arrival_.notify_all();
}

Result<bool> WeightReceiver::take() {
  std::optional<Arrived> newest;
  {
    const std::lock_guard lock(mutex_);
    newest = std::exchange(arrived_, std::nullopt);
  }
  if (!newest || newest->version <= std::max(version_, refused_)) return false;
  const at::Tensor& arena = model_.trained_parameters().arena();
  if (static_cast<std::int64_t>(newest->weights.size()) != arena.numel()) {
    refused_ = newest->version;
    return runtime::invalid_argument(
        "weights " + name_ + ": version " + std::to_string(newest->version) + " has " +
        std::to_string(newest->weights.size()) + " numbers, this model trains " +
        std::to_string(arena.numel()) + ": both sides need the same model and adapter");
  }
  arena.copy_(
      at::from_blob(const_cast<float*>(newest->weights.data()), {arena.numel()}, at::kFloat));
  version_ = newest->version;
  return true;
}

Status WeightReceiver::wait(std::uint64_t at_least, runtime::Until until) {
  while (version_ < at_least) {
    {
      std::unique_lock lock(mutex_);
      const auto there = [&] { return arrived_.has_value(); };
      const runtime::Deadline deadline = until.at();
      if (deadline == runtime::Deadline::max())
        arrival_.wait(lock, there);
      else if (!arrival_.wait_until(lock, deadline, there)) {
        return runtime::deadline_exceeded("weights " + name_ + ": version " +
                                          std::to_string(at_least) + " has not come; there is " +
                                          std::to_string(version_));
      }
    }
    const Result<bool> taken = take();
    if (!taken.ok()) return taken.status();
  }
  return {};
}

Status take_weights(WeightReceiver& receiver, Engine& engine, OnNewWeights policy) {
  const Result<bool> taken = receiver.take();
  if (!taken.ok()) return taken.status();
  if (*taken) engine.weights_changed(receiver.version(), policy);
  return {};
}

}  // namespace rl
