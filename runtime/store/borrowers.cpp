#include "runtime/store/borrowers.h"

#include <utility>

#include "runtime/core/timer.h"

namespace runtime::object_detail {
namespace {

constexpr std::chrono::seconds kOwnerTimeout{10};
constexpr int kRenewalsMax = 6;
constexpr std::chrono::milliseconds kRenewalPause{50};

}  // namespace

void Borrowers::tell_other_node(const ObjectLocation& location, bool borrowed,
                                UniqueFunction<void(Status)> done) {
  if (borrowed) {
    return peers_->ask(location.endpoint, object_wire::Keep{{location}},
                       deadline_after(kOwnerTimeout),
                       [done = std::move(done)](Result<object_wire::Reply> reply) mutable {
                         if (done) done(reply.status());
                       });
  }
  peers_->with(location.endpoint, 0, [location](Result<std::shared_ptr<Channel>> channel) {
    // Without one: that store has dropped what it knew with the connection.
    if (channel.ok())
      (void)(*channel)->send(object_wire::request_message(object_wire::Release{{location}}),
                             Flush::kSoon);
  });
}

void Borrowers::tell_owner(const ObjectLocation& location, bool borrowed,
                           UniqueFunction<void(Status)> done) {
  if (!is_here(location)) return tell_other_node(location, borrowed, std::move(done));
  const Client owner = memory_->table.holder_of(location.extent);
  if (auto channel = owner == 0 ? nullptr : clients_->channel_of(owner); channel) {
    object_wire::Request request = object_wire::Hold{{location}};
    if (!borrowed) request = object_wire::Unhold{{location}};
    // Not sent: the owner ends, and its objects with it.
    (void)channel->send(object_wire::request_message(request), Flush::kSoon);
  }
  if (done) done(memory_->table.find(location.extent) ? Status() : ended_->lost(location.extent));
}

void Borrowers::keep(const std::shared_ptr<Channel>& channel, const Message& message,
                     const object_wire::Keep& keep) {
  const Client client = clients_->number_of(channel);
  struct Asking {
    std::size_t outstanding = 1;
    Status first;
    std::shared_ptr<Channel> channel;
    Message request;
    void end(const Status& status) {
      if (first.ok() && !status.ok()) first = status;
      if (--outstanding > 0) return;
      answer(channel, request,
             first.ok() ? object_wire::encode_reply(object_wire::Done{})
                        : object_wire::encode_failure(first));
    }
  };
  auto asking = std::make_shared<Asking>();
  asking->channel = channel;
  asking->request = without_content(message);
  // A node speaks for all its processes, and repeats itself after a broken connection.
  const bool counted = channel->peer().role != Role::kNode;
  for (const ObjectLocation& location : keep.locations) {
    const bool first = table_.add(client, location, counted);
    if (!first && is_here(location)) {
      if (!memory_->table.find(location.extent) && asking->first.ok())
        asking->first = ended_->lost(location.extent);
    } else if (first || message.id != 0) {
      ++asking->outstanding;
      tell_owner(location, true, [asking](const Status& status) { asking->end(status); });
    }
  }
  asking->end({});
}

void Borrowers::release(const std::shared_ptr<Channel>& channel,
                        const object_wire::Release& release) {
  const Client client = clients_->number_of(channel);
  for (const ObjectLocation& location : release.locations) {
    if (table_.remove(client, location)) returned(location);
  }
}

void Borrowers::client_ended(Client client) {
  for (const ObjectLocation& location : table_.drop(client)) returned(location);
}

void Borrowers::returned(const ObjectLocation& location) {
  if (is_here(location) && on_returned_ && on_returned_(location)) return;
  tell_owner(location, false, {});
}

void Borrowers::renew(const std::string& endpoint, int attempt) {
  if (table_.at(endpoint, node_).empty()) return;
  peers_->with(
      endpoint, 0,
      [weak = weak_from_this(), endpoint, attempt](Result<std::shared_ptr<Channel>> channel) {
        auto self = weak.lock();
        if (!self) return;
        if (channel.ok()) {
          // Not sent: then this connection has ended too, and on_first_lost comes again.
          (void)(*channel)->send(object_wire::request_message(
              object_wire::Keep{self->table_.at(endpoint, self->node_)}));
          return;
        }
        if (attempt >= kRenewalsMax) return;
        auto pause =
            std::make_shared<Timer>(self->memory_->loop.context(), kRenewalPause * (1 << attempt));
        pause->async_wait([weak, endpoint, attempt, pause](const boost::system::error_code&) {
          if (auto again = weak.lock()) again->renew(endpoint, attempt + 1);
        });
      });
}

}  // namespace runtime::object_detail
