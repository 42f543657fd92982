#include "rl/comm/communicator.h"

#include <utility>

#include "rl/comm/thread_links.h"
#include "rl/profile/recorder.h"
#include "runtime/core/check.h"

namespace rl {

using runtime::Result;
using runtime::Status;

// One operation: its number, what is said about it when it fails, and its place in a profile.
class Communicator::Operation {
 public:
  Operation(Communicator& group, std::string_view name, std::string_view what)
      : group_(group), label_(name) {
    if (!what.empty()) label_.append(" of ").append(what);
    number_ = group_.recorder_.begin(label_);
  }
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;
  ~Operation() { group_.recorder_.end(); }

  std::uint64_t number() const { return number_; }

  // A failed operation breaks the group: nothing of this rank may wait for the others any more.
  Status ended(const Status& status) const {
    if (status.ok()) return status;
    group_.links_->abort(status);
    return status.with_context(label_ + ", operation " + std::to_string(number_) + " of rank " +
                               std::to_string(group_.rank()) + " of " +
                               std::to_string(group_.size()));
  }

 private:
  Communicator& group_;
  std::string label_;
  std::uint64_t number_ = 0;
};

Communicator::Communicator(std::unique_ptr<Links> links, const Options& options)
    : links_(std::move(links)), options_(options) {
  CHECK(links_ != nullptr);
  CHECK(options_.bucket_bytes >= sizeof(double));
}

Status Communicator::all_reduce_sum(std::span<float> values, std::string_view what) {
  return reduce(values, what);
}

Status Communicator::all_reduce_sum(std::span<double> values, std::string_view what) {
  return reduce(values, what);
}

template <class T>
SumPlan Communicator::plan_of(std::span<T> values, std::span<const ArenaRange> homes) const {
  const std::size_t bucket = options_.bucket_bytes / sizeof(T);
  return homes.empty() ? SumPlan::of_buckets(values.size(), size(), bucket)
                       : SumPlan::of_homes(homes, bucket);
}

template <class T>
OrderedSum<T> Communicator::sum(const SumPlan& plan, const Operation& operation) {
  return OrderedSum<T>(*links_, plan, operation.number(), [this] { recorder_.step(); });
}

template <class T>
Status Communicator::reduce(std::span<T> values, std::string_view what) {
  if (size() == 1) return {};
  const profile::Span span("all-reduce");
  const Operation operation(*this, "all-reduce", what);
  const SumPlan plan = plan_of(values, {});
  return operation.ended(sum<T>(plan, operation).all_reduce(values));
}

Status Communicator::reduce_round(std::span<float> values, SumRounds<float>& rounds,
                                  std::span<const std::uint8_t> adds, bool last,
                                  std::span<const ArenaRange> homes, std::string_view what) {
  const char* const name = homes.empty() ? "all-reduce" : "reduce-scatter";
  const profile::Span span(name);
  const Operation operation(*this, name, what);
  const SumPlan plan = plan_of(values, homes);
  return operation.ended(
      sum<float>(plan, operation).add_round(values, rounds, adds, last, homes.empty()));
}

Status Communicator::gather_homes(std::span<float> values, std::span<const ArenaRange> homes,
                                  std::string_view what) {
  CHECK(homes.size() == static_cast<std::size_t>(size()));
  const profile::Span span("all-gather");
  const Operation operation(*this, "all-gather", what);
  const SumPlan plan = plan_of(values, homes);
  return operation.ended(sum<float>(plan, operation).all_gather(values));
}

Result<std::vector<std::uint64_t>> Communicator::all_gather(std::uint64_t value,
                                                            std::string_view what) {
  std::vector<std::uint64_t> values(static_cast<std::size_t>(size()), value);
  std::vector<std::span<std::byte>> others;
  for (std::uint64_t& other : values)
    others.push_back(std::as_writable_bytes(std::span<std::uint64_t>(&other, 1)));
  const Status gathered = all_gather(std::as_bytes(std::span(&value, 1)), others, what);
  if (!gathered.ok()) return gathered;
  return values;
}

Status Communicator::all_gather(std::span<const std::byte> mine,
                                std::span<const std::span<std::byte>> others,
                                std::string_view what) {
  return gather("all-gather", mine, others, what);
}

Status Communicator::gather(const char* name, std::span<const std::byte> mine,
                            std::span<const std::span<std::byte>> others, std::string_view what) {
  CHECK(others.size() == static_cast<std::size_t>(size()));
  std::vector<Outgoing> sent;
  std::vector<Incoming> received;
  for (int peer = 0; peer < size(); ++peer) {
    sent.push_back({peer, mine});
    received.push_back({peer, others[static_cast<std::size_t>(peer)]});
  }
  return exchange(name, sent, received, what);
}

Status Communicator::all_to_all(std::span<const Outgoing> sent, std::span<const Incoming> received,
                                std::string_view what) {
  return exchange("all-to-all", sent, received, what);
}

Status Communicator::barrier(std::string_view what) {
  const std::byte here{};
  std::vector<std::byte> there(static_cast<std::size_t>(size()));
  std::vector<std::span<std::byte>> others;
  for (std::byte& one : there) others.emplace_back(&one, 1);
  return gather("barrier", std::span(&here, 1), others, what);
}

Transfer Communicator::begin_exchange(std::span<const Outgoing> sent,
                                      std::span<const Incoming> received, std::string what) {
  const Operation operation(*this, "begin of transfer", what);
  return {true, std::move(what), start(sent, received, operation.number())};
}

Status Communicator::finish(Transfer& transfer) {
  const Transfer begun = std::exchange(transfer, Transfer());
  if (!begun.is_begun) return {};
  const profile::Span span("transfer");
  // Also where this rank moves nothing: operations have the same numbers on all ranks.
  const Operation operation(*this, "transfer", begun.what);
  return begun.exchange == nullptr ? Status() : operation.ended(begun.exchange->wait());
}

Status Communicator::exchange(const char* name, std::span<const Outgoing> sent,
                              std::span<const Incoming> received, std::string_view what) {
  const profile::Span span(name);
  const Operation operation(*this, name, what);
  const std::unique_ptr<Exchange> begun = start(sent, received, operation.number());
  return begun == nullptr ? Status() : operation.ended(begun->wait());
}

// Null: there is nothing to move.
std::unique_ptr<Exchange> Communicator::start(std::span<const Outgoing> sent,
                                              std::span<const Incoming> received,
                                              std::uint64_t operation) {
  std::vector<Outgoing> outgoing;
  std::vector<Incoming> incoming;
  for (const Outgoing& part : sent)
    if (part.peer != rank() && !part.bytes.empty()) outgoing.push_back(part);
  for (const Incoming& part : received)
    if (part.peer != rank() && !part.bytes.empty()) incoming.push_back(part);
  if (outgoing.empty() && incoming.empty()) return nullptr;
  return links_->start(outgoing, incoming, operation << 24);
}

std::unique_ptr<Communicator> make_single_communicator() {
  return std::make_unique<Communicator>(std::move(make_thread_links(1).front()));
}

}  // namespace rl
