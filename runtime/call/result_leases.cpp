#include "runtime/call/result_leases.h"

#include <utility>

#include "runtime/call/call_numbers.h"
#include "runtime/call/call_wire.h"
#include "runtime/call/stored_object.h"

namespace runtime {

namespace {

void visit_stored(const ObjectValue& value, bool in_flight,
                  const std::function<void(const ObjectLocation&, bool)>& visit) {
  if (value.stored) visit(value.stored->location(), in_flight);
  for (const ObjectStatePtr& ref : value.refs) {
    if (ref->is_settled() && ref->failure().ok()) visit_stored(ref->value(), in_flight, visit);
  }
}

}  // namespace

/// The process of a shared actor outlives it, and the loan with it.
class ResultLeases::Loan {
 public:
  Loan(std::shared_ptr<ResultLeases> leases, std::weak_ptr<Channel> channel, ActorId actor,
       std::uint64_t lend_id)
      : leases_(std::move(leases)), channel_(std::move(channel)), actor_(actor), lend_id_(lend_id) {
    ++leases_->results_held_;
  }
  Loan(const Loan&) = delete;
  Loan& operator=(const Loan&) = delete;
  ~Loan() {
    --leases_->results_held_;
    if (auto channel = channel_.lock())
      send_notice(*channel, {actor_, lend_id_, CallNotice::Kind::kResultReleased});
  }

 private:
  std::shared_ptr<ResultLeases> leases_;
  std::weak_ptr<Channel> channel_;
  ActorId actor_;
  std::uint64_t lend_id_;
};

ObjectValue ResultLeases::take_back(std::uint64_t sequence) {
  auto node = lent_.extract(sequence);
  return node ? std::move(node.mapped()) : ObjectValue{};
}

std::vector<ObjectValue> ResultLeases::take_all_back() {
  std::vector<ObjectValue> values;
  for (auto& [sequence, value] : std::exchange(lent_, {})) values.push_back(std::move(value));
  return values;
}

void ResultLeases::visit(const CallNumbers& numbers,
                         const std::function<void(const ObjectLocation&, bool)>& visit) const {
  for (const auto& [sequence, value] : lent_)
    visit_stored(value, !numbers.has_ended(sequence), visit);
}

std::shared_ptr<const void> ResultLeases::hold(std::shared_ptr<ResultLeases> self,
                                               std::weak_ptr<Channel> channel, ActorId actor,
                                               std::uint64_t lend_id) {
  return std::make_shared<const Loan>(std::move(self), std::move(channel), actor, lend_id);
}

}  // namespace runtime
