// The only file that knows c10d: it adapts our rendezvous to c10d::Store and translates exceptions.
#define USE_C10D_GLOO
#include "rl/comm/gloo_communicator.h"

#include <ATen/ops/from_blob.h>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <utility>

#include "rl/profile/recorder.h"

namespace rl {
namespace {

// c10d records each collective in a table of the process (its flight recorder), which ranks that
// are threads of one process, as in tests, change at the same time without a lock. Nothing here
// reads it. At the program's start, since it changes the environment.
[[maybe_unused]] const bool kNoFlightRecorder = ::setenv("TORCH_FR_BUFFER_SIZE", "0", 0) == 0;

// Gloo asks for `get`, `set`, `wait`, `add` and `check`; the rest of c10d::Store is for other back
// ends.
class RendezvousStore : public c10d::Store {
 public:
  RendezvousStore(std::shared_ptr<Rendezvous> rendezvous, std::string prefix,
                  std::chrono::milliseconds deadline)
      : c10d::Store(deadline), rendezvous_(std::move(rendezvous)), prefix_(std::move(prefix)) {}

  c10::intrusive_ptr<c10d::Store> clone() override {
    return c10::make_intrusive<RendezvousStore>(rendezvous_, prefix_, timeout_);
  }

  void set(const std::string& key, const std::vector<std::uint8_t>& value) override {
    expect(rendezvous_->put(prefix_ + key, value));
  }

  std::vector<std::uint8_t> get(const std::string& key) override {
    return expect(rendezvous_->get(prefix_ + key, timeout_));
  }

  std::int64_t add(const std::string& key, std::int64_t value) override {
    return expect(rendezvous_->add(prefix_ + key, value));
  }

  bool check(const std::vector<std::string>& keys) override {
    return std::all_of(keys.begin(), keys.end(), [&](const std::string& key) {
      return rendezvous_->get(prefix_ + key, std::chrono::milliseconds(0)).ok();
    });
  }

  void wait(const std::vector<std::string>& keys) override { wait(keys, timeout_); }

  void wait(const std::vector<std::string>& keys,
            const std::chrono::milliseconds& timeout) override {
    const auto deadline = std::chrono::steady_clock::now() + timeout;
    for (const std::string& key : keys) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
          deadline - std::chrono::steady_clock::now());
      expect(rendezvous_->get(prefix_ + key, std::max(left, std::chrono::milliseconds(0))));
    }
  }

  bool deleteKey(const std::string&) override {
    throw std::logic_error("the rendezvous keeps its keys");
  }
  std::int64_t getNumKeys() override {
    throw std::logic_error("the rendezvous does not count its keys");
  }

 private:
  static void expect(const runtime::Status& status) {
    if (!status.ok()) throw std::runtime_error(status.message());
  }
  template <class T>
  static T expect(runtime::Result<T> result) {
    expect(result.status());
    return std::move(result).value();
  }

  std::shared_ptr<Rendezvous> rendezvous_;
  std::string prefix_;
};

// c10d reports everything as an exception with text; a late peer is the one kind worth telling
// apart.
runtime::Status translate(const std::exception& error, const std::string& what) {
  std::string text = error.what();
  text = text.substr(0, text.find('\n'));  // the lines after it are c10's own stack
  const auto place =
      text.find("] ");  // "[/.../pair.cc:547] Connection closed": where in Gloo's source
  if (text.starts_with("[/") && place != std::string::npos) text = text.substr(place + 2);
  const bool late = text.find("imed out") != std::string::npos ||
                    text.find("imeout") != std::string::npos ||
                    text.find("nobody put") != std::string::npos;
  return late ? runtime::deadline_exceeded(what + ": " + text)
              : runtime::unavailable(what + ": " + text);
}

class GlooCommunicator : public Communicator {
 public:
  GlooCommunicator(c10::intrusive_ptr<c10d::ProcessGroupGloo> group, const GlooOptions& options)
      : group_(std::move(group)),
        rank_(options.rank),
        size_(options.size),
        bucket_elements_(options.bucket_elements) {}

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  runtime::Status all_reduce_sum(std::span<float> values) override {
    return reduce(values, at::kFloat);
  }
  runtime::Status all_reduce_sum(std::span<double> values) override {
    return reduce(values, at::kDouble);
  }

  runtime::Status broadcast(std::span<float> values, int root) override {
    return run("broadcast", [&] {
      std::vector<at::Tensor> tensors{
          at::from_blob(values.data(), {static_cast<std::int64_t>(values.size())}, at::kFloat)};
      c10d::BroadcastOptions options;
      options.rootRank = root;
      group_->broadcast(tensors, options)->wait();
    });
  }

  runtime::Result<std::vector<std::uint64_t>> all_gather(std::uint64_t value) override {
    std::vector<std::uint64_t> values(static_cast<std::size_t>(size_));
    const runtime::Status status = run("all-gather", [&] {
      at::Tensor mine = at::from_blob(&value, {1}, at::kLong);
      at::Tensor all = at::from_blob(values.data(), {size_}, at::kLong);
      group_->_allgather_base(all, mine)->wait();
    });
    if (!status.ok()) return status;
    return values;
  }

  runtime::Status barrier() override {
    return run("barrier", [&] { group_->barrier()->wait(); });
  }

 private:
  // In buckets, two in flight: one's bytes travel while the other's are added up.
  template <class T>
  runtime::Status reduce(std::span<T> values, at::ScalarType type) {
    return run("all-reduce", [&] {
      c10::intrusive_ptr<c10d::Work> previous;
      for (std::size_t begin = 0; begin < values.size(); begin += bucket_elements_) {
        const std::size_t count = std::min(bucket_elements_, values.size() - begin);
        std::vector<at::Tensor> tensors{
            at::from_blob(values.data() + begin, {static_cast<std::int64_t>(count)}, type)};
        auto work = group_->allreduce(tensors);
        if (previous) previous->wait();
        previous = std::move(work);
      }
      if (previous) previous->wait();
    });
  }

  template <class Function>
  runtime::Status run(const char* what, Function&& function) {
    const profile::Span span(what);
    try {
      function();
      return {};
    } catch (const std::exception& error) {
      return translate(error, std::string(what) + " on rank " + std::to_string(rank_) + " of " +
                                  std::to_string(size_));
    }
  }

  c10::intrusive_ptr<c10d::ProcessGroupGloo> group_;
  int rank_;
  int size_;
  std::size_t bucket_elements_;
};

}  // namespace

runtime::Result<std::unique_ptr<Communicator>> make_gloo_communicator(
    std::shared_ptr<Rendezvous> rendezvous, const GlooOptions& options) {
  if (options.size < 1 || options.rank < 0 || options.rank >= options.size) {
    return runtime::invalid_argument("rank " + std::to_string(options.rank) +
                                     " is not in a group of " + std::to_string(options.size));
  }
  try {
    auto device = options.host.empty()
                      ? c10d::ProcessGroupGloo::createDefaultDevice()
                      : c10d::ProcessGroupGloo::createDeviceForHostname(options.host);
    auto settings = c10d::ProcessGroupGloo::Options::create(options.deadline);
    settings->devices.push_back(std::move(device));
    auto store = c10::make_intrusive<RendezvousStore>(
        std::move(rendezvous), "gloo/" + options.group + "/", options.deadline);
    auto group =
        c10::make_intrusive<c10d::ProcessGroupGloo>(store, options.rank, options.size, settings);
    return std::unique_ptr<Communicator>(new GlooCommunicator(std::move(group), options));
  } catch (const std::exception& error) {
    return translate(error, "group '" + options.group + "', rank " + std::to_string(options.rank) +
                                " of " + std::to_string(options.size));
  }
}

}  // namespace rl
