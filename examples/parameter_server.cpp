// A parameter server: one actor keeps the weights of a model, four workers compute gradients on
// their part of the data. The driver moves references alone: weights and gradients go from actor to
// actor through shared memory.
//
//   build/release/bin/parameter_server [--address HOST:PORT] [workers] [rounds]
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "runtime/runtime.h"

using runtime::ArrayView;
using runtime::ObjectRef;
using runtime::Result;
using runtime::Runtime;
using runtime::Status;

constexpr std::size_t kFeatures = 50'000;  // 200 kB of weights: large enough for shared memory

/// Keeps the weights and takes steps against the mean of the gradients.
class ParameterServer {
 public:
  explicit ParameterServer(float learning_rate)
      : learning_rate_(learning_rate), weights_(kFeatures) {}

  std::vector<float> weights() const { return weights_; }

  /// Takes the sum of `count` gradients and returns the new weights.
  std::vector<float> step(ArrayView<float> gradients, int count) {
    for (std::size_t i = 0; i < kFeatures; ++i)
      weights_[i] -= learning_rate_ / static_cast<float>(count) * gradients[i];
    return weights_;
  }

 private:
  float learning_rate_;
  std::vector<float> weights_;
};

/// Knows some noisy observations of the weights that are to be found.
class Worker {
 public:
  Worker(Runtime& runtime, int rank) : runtime_(runtime), observed_(kFeatures) {
    std::mt19937 noise(static_cast<unsigned>(rank));
    std::normal_distribution<float> normal(0, 0.01F);
    for (std::size_t i = 0; i < kFeatures; ++i)
      observed_[i] = static_cast<float>(i % 7) + normal(noise);
  }

  /// Of half the mean squared error. Reads the weights in place.
  std::vector<float> gradient(ArrayView<float> weights) const {
    std::vector<float> result(kFeatures);
    for (std::size_t i = 0; i < kFeatures; ++i) result[i] = weights[i] - observed_[i];
    return result;
  }

  double loss(ArrayView<float> weights) const {
    double sum = 0;
    for (std::size_t i = 0; i < kFeatures; ++i)
      sum += (weights[i] - observed_[i]) * (weights[i] - observed_[i]);
    return sum / 2 / kFeatures;
  }

  /// Of gradients that this worker and others computed: an actor may wait for objects too.
  Result<std::vector<float>> sum(const std::vector<ObjectRef<std::vector<float>>>& gradients) {
    std::vector<float> total(kFeatures);
    for (const auto& ref : gradients) {
      auto gradient = runtime_.objects().view(ref);
      if (!gradient.ok()) return gradient.status();
      for (std::size_t i = 0; i < kFeatures; ++i) total[i] += (*gradient)[i];
    }
    return total;
  }

 private:
  Runtime& runtime_;
  std::vector<float> observed_;
};

Status driver_main(Runtime& rt) {
  const auto& arguments = rt.arguments();
  const int workers = arguments.size() > 1 ? std::atoi(arguments[1].c_str()) : 4;
  const int rounds = arguments.size() > 2 ? std::atoi(arguments[2].c_str()) : 20;
  if (workers < 1 || rounds < 1)
    return runtime::invalid_argument("usage: parameter_server [workers] [rounds]");

  auto server = rt.spawn<ParameterServer>({.name = "server"}, 0.5F);
  if (!server.ok()) return server.status();
  std::vector<int> ranks(static_cast<std::size_t>(workers));
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) ranks[rank] = static_cast<int>(rank);
  auto group = rt.spawn_group<Worker>(ranks.size(), {.name = "worker"}, runtime::split(ranks));
  if (!group.ok()) return group.status();

  // Nothing here waits: each round's calls take the references of the round before, and run as
  // these come in.
  ObjectRef<std::vector<float>> weights = server->call(&ParameterServer::weights);
  std::vector<ObjectRef<double>> losses;
  for (int round = 0; round < rounds; ++round) {
    losses.push_back((*group)[0].call(&Worker::loss, weights));
    auto gradients = group->call(&Worker::gradient, weights);
    auto total = (*group)[0].call(&Worker::sum, gradients);
    weights = server->call(&ParameterServer::step, total, workers);
  }
  losses.push_back((*group)[0].call(&Worker::loss, weights));
  auto values = rt.objects().gather(losses);
  if (!values.ok()) return values.status();
  for (std::size_t round = 0; round < values->size(); round += 5)
    std::printf("round %2zu  loss %.6f\n", round, (*values)[round]);
  return values->back() < 0.001 ? Status() : runtime::internal_error("the loss did not fall");
}

int main(int argc, char** argv) {
  Runtime rt(argc, argv);
  rt.register_actor<ParameterServer>("ParameterServer", &ParameterServer::weights,
                                     &ParameterServer::step);
  rt.register_actor<Worker>("Worker", &Worker::gradient, &Worker::loss, &Worker::sum);
  return rt.run(driver_main);
}
