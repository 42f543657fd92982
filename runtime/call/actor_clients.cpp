#include "runtime/call/actor_clients.h"

#include <utility>

#include "runtime/call/actor_client.h"
#include "runtime/call/worker_link.h"

namespace runtime {

namespace {

template <class Map>
auto living(const Map& map) {
  std::vector<decltype(map.begin()->second.lock())> all;
  for (const auto& [id, weak] : map) {
    if (auto held = weak.lock()) all.push_back(std::move(held));
  }
  return all;
}

}  // namespace

std::shared_ptr<ActorClient> ActorClients::client_for(const CallerContextPtr& context,
                                                      const ActorAddress& address) {
  if (std::shared_ptr<ActorClient> known = find(address.actor)) {
    known->adopt(address);
    return known;
  }
  auto made = std::make_shared<ActorClient>(context, link_for(context, address), address);
  std::lock_guard lock(mutex_);
  auto& slot = clients_[address.actor];
  if (std::shared_ptr<ActorClient> known = slot.lock()) return known;  // another thread was faster
  slot = made;
  return made;
}

std::shared_ptr<ActorClient> ActorClients::find(ActorId actor) const {
  std::lock_guard lock(mutex_);
  auto found = clients_.find(actor);
  return found == clients_.end() ? nullptr : found->second.lock();
}

std::shared_ptr<WorkerLink> ActorClients::link_for(const CallerContextPtr& context,
                                                   const ActorAddress& address) {
  std::lock_guard lock(mutex_);
  auto& slot = links_[address.worker];
  std::shared_ptr<WorkerLink> link = slot.lock();
  if (!link) slot = link = std::make_shared<WorkerLink>(context, address);
  return link;
}

std::vector<std::shared_ptr<ActorClient>> ActorClients::clients() const {
  std::lock_guard lock(mutex_);
  return living(clients_);
}

std::vector<std::shared_ptr<WorkerLink>> ActorClients::links() const {
  std::lock_guard lock(mutex_);
  return living(links_);
}

void ActorClients::forget_client(ActorId actor) {
  std::lock_guard lock(mutex_);
  if (auto found = clients_.find(actor); found != clients_.end() && found->second.expired())
    clients_.erase(found);
}

void ActorClients::forget_link(WorkerId worker) {
  std::lock_guard lock(mutex_);
  if (auto found = links_.find(worker); found != links_.end() && found->second.expired())
    links_.erase(found);
}

}  // namespace runtime
