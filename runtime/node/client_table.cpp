#include "runtime/node/client_table.h"

#include <utility>
#include <vector>

#include "runtime/control/control_channel.h"

namespace runtime {

void ClientTable::add(std::shared_ptr<Channel> channel) {
  const Channel* key = channel.get();
  clients_[key] = {std::move(channel)};
}

std::optional<ClientTable::Client> ClientTable::remove(const Channel& channel) {
  auto entry = clients_.extract(&channel);
  if (entry.empty()) return {};
  return std::move(entry.mapped());
}

ClientTable::Client* ClientTable::find(const Channel& channel) {
  auto found = clients_.find(&channel);
  return found == clients_.end() ? nullptr : &found->second;
}

ClientTable::Client* ClientTable::driver_of(JobId job) {
  for (auto& [channel, client] : clients_) {
    if (client.job == job && client.role() == Role::kDriver) return &client;
  }
  return nullptr;
}

void ClientTable::tell_programs(const ControlEvent& event) const {
  for_each([&](const Client& client) {
    if (client.role() == Role::kWorker || client.role() == Role::kDriver)
      send_event(*client.channel, event);
  });
}

void ClientTable::tell_job(JobId job, const ControlEvent& event) const {
  for_each([&](const Client& client) {
    if (client.job == job && !client.job.is_none()) send_event(*client.channel, event);
  });
}

void ClientTable::count(Numbers& numbers) const {
  for (const char* role : {"node", "worker", "driver", "tool"})
    numbers["connections_" + std::string(role)] = 0;
  for_each([&](const Client& client) {
    ++numbers[client.role() == Role::kNode     ? "connections_node"
              : client.role() == Role::kWorker ? "connections_worker"
              : client.role() == Role::kDriver ? "connections_driver"
                                               : "connections_tool"];
  });
}

void ClientTable::close_all(const Status& why) {
  std::vector<std::shared_ptr<Channel>> open;
  for_each([&](const Client& client) { open.push_back(client.channel); });
  for (const auto& channel : open) channel->close(why);
}

}  // namespace runtime
