// The only file that knows c10d: it adapts our rendezvous to c10d::Store, a process group to Links,
// and translates exceptions.
#define USE_C10D_GLOO
#include "rl/comm/gloo_communicator.h"

#include <ATen/ops/from_blob.h>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <functional>
#include <mutex>
#include <set>
#include <stdexcept>
#include <utility>

#include "rl/comm/shared_memory_links.h"

namespace rl {

using runtime::Status;

namespace {

// c10d records each collective in a table of the process (its flight recorder), without a lock.
// Ranks that are threads of one process, as in tests, would change it at the same time. Nothing
// here reads it. At the program's start, since it changes the environment.
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
                    text.find("no rank put") != std::string::npos;
  return late ? runtime::deadline_exceeded(what + ": " + text)
              : runtime::unavailable(what + ": " + text);
}

// The ranks' process group, which the links and their exchanges use, and why it has ended.
class GlooGroup {
 public:
  using Group = c10::intrusive_ptr<c10d::ProcessGroupGloo>;
  using Work = c10::intrusive_ptr<c10d::Work>;

  GlooGroup(Group group, std::chrono::milliseconds deadline)
      : group_(std::move(group)), deadline_(deadline) {}

  /// The time limit of one exchange.
  std::chrono::milliseconds deadline() const { return deadline_; }

  int rank() const { return rank_; }
  int size() const { return size_; }

  /// Begins a transfer, and has abort() end it. Null: the group has ended.
  Work begin(const std::function<Work(c10d::ProcessGroupGloo&)>& transfer) {
    const std::lock_guard lock(mutex_);
    if (!why_.ok()) return {};
    Work work = transfer(*group_);
    under_way_.insert(work.get());
    return work;
  }

  void finished(const Work& work) {
    const std::lock_guard lock(mutex_);
    under_way_.erase(work.get());
    close_if_idle();
  }

  void abort(const Status& why) {
    const std::lock_guard lock(mutex_);
    if (!why_.ok()) return;
    why_ = why;
    for (c10d::Work* work : under_way_) work->abort();
    close_if_idle();
  }

  /// Ok while it has not ended.
  Status why() const {
    const std::lock_guard lock(mutex_);
    return why_;
  }

 private:
  // Other ranks notice by their closed connections.
  void close_if_idle() {
    if (!why_.ok() && under_way_.empty()) group_.reset();
  }

  mutable std::mutex mutex_;
  Group group_;
  const std::chrono::milliseconds deadline_;
  const int rank_ = group_->getRank();
  const int size_ = group_->getSize();
  std::set<c10d::Work*> under_way_;
  Status why_;
};

class GlooExchange : public Exchange {
 public:
  explicit GlooExchange(std::shared_ptr<GlooGroup> group) : group_(std::move(group)) {}

  ~GlooExchange() override {
    if (!waited_) (void)wait();
  }

  // c10d keeps the tensor, not the memory behind it.
  void sends(int peer, std::span<const std::byte> bytes, int tag) {
    add(peer, [&](c10d::ProcessGroupGloo& group) {
      std::vector<at::Tensor> tensors{
          as_tensor(const_cast<std::byte*>(bytes.data()), bytes.size())};
      return group.send(tensors, peer, tag);
    });
  }

  void receives(int peer, std::span<std::byte> bytes, int tag) {
    add(peer, [&](c10d::ProcessGroupGloo& group) {
      std::vector<at::Tensor> tensors{as_tensor(bytes.data(), bytes.size())};
      return group.recv(tensors, peer, tag);
    });
  }

  Status wait() override {
    waited_ = true;
    Status result = failed_;
    for (const Transfer& transfer : transfers_) {
      const Status ended = wait_for(transfer);
      group_->finished(transfer.work);
      if (!result.ok() || ended.ok()) continue;
      result = ended;
      group_->abort(result);  // the other transfers' memory is given back when this returns
    }
    transfers_.clear();  // Gloo writes to what an ended receive was given as long as it is there
    return result;
  }

 private:
  struct Transfer {
    int peer;
    GlooGroup::Work work;
  };

  static at::Tensor as_tensor(std::byte* bytes, std::size_t size) {
    return at::from_blob(bytes, {static_cast<std::int64_t>(size)}, at::kByte);
  }

  template <class Begin>
  void add(int peer, Begin&& begin) {
    if (!failed_.ok()) return;
    try {
      GlooGroup::Work work = group_->begin(begin);
      if (work)
        transfers_.push_back({peer, std::move(work)});
      else
        failed_ = group_->why();
    } catch (const std::exception& error) {
      failed_ = translate(error, "rank " + std::to_string(peer));
      group_->abort(failed_);
    }
  }

  Status wait_for(const Transfer& transfer) {
    try {
      if (transfer.work->wait(group_->deadline())) return {};
    } catch (const std::exception& error) {
      const Status why = group_->why();
      return why.ok() ? translate(error, "rank " + std::to_string(transfer.peer)) : why;
    }
    const Status why = group_->why();
    return why.ok() ? runtime::unavailable("rank " + std::to_string(transfer.peer)) : why;
  }

  std::shared_ptr<GlooGroup> group_;
  std::vector<Transfer> transfers_;
  Status failed_;
  bool waited_ = false;
};

class GlooLinks : public Links {
 public:
  GlooLinks(GlooGroup::Group group, std::chrono::milliseconds deadline)
      : group_(std::make_shared<GlooGroup>(std::move(group), deadline)) {}

  int rank() const override { return group_->rank(); }
  int size() const override { return group_->size(); }

  // Gloo's tags have 31 bits: numbers that far apart are never under way together.
  std::unique_ptr<Exchange> start(std::span<const Outgoing> sent,
                                  std::span<const Incoming> received,
                                  std::uint64_t operation) override {
    const int tag = static_cast<int>((operation ^ operation >> 24) & 0x7FFFFFFF);
    auto exchange = std::make_unique<GlooExchange>(group_);
    for (const Incoming& part : received) exchange->receives(part.peer, part.bytes, tag);
    for (const Outgoing& part : sent) exchange->sends(part.peer, part.bytes, tag);
    return exchange;
  }

  void abort(const Status& why) override { group_->abort(why); }

 private:
  std::shared_ptr<GlooGroup> group_;
};

}  // namespace

runtime::Result<std::unique_ptr<Links>> make_gloo_links(std::shared_ptr<Rendezvous> rendezvous,
                                                        const GlooOptions& options) {
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
    std::unique_ptr<Links> links =
        std::make_unique<GlooLinks>(std::move(group), options.exchange_deadline);
    if (!options.shares_memory) return links;
    return share_memory(std::move(links),
                        {.deadline = options.exchange_deadline, .ring_bytes = options.ring_bytes});
  } catch (const std::exception& error) {
    return translate(error, "group '" + options.group + "', rank " + std::to_string(options.rank) +
                                " of " + std::to_string(options.size));
  }
}

runtime::Result<std::unique_ptr<Communicator>> make_gloo_communicator(
    std::shared_ptr<Rendezvous> rendezvous, const GlooOptions& options) {
  runtime::Result<std::unique_ptr<Links>> links = make_gloo_links(std::move(rendezvous), options);
  if (!links.ok()) return links.status();
  return std::make_unique<Communicator>(std::move(*links), options.collectives);
}

}  // namespace rl
