// ClientTable: a node's incoming connections: drivers, workers, commands and other nodes.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "runtime/control/control.h"
#include "runtime/process/process_watch.h"
#include "runtime/transport/channel.h"

namespace runtime {

/// Lives on the event loop.
class ClientTable {
 public:
  struct Client {
    std::shared_ptr<Channel> channel;
    JobId job{};                                 // of a registered driver, or a worker
    std::optional<std::int32_t> exit_code = {};  // of a driver that is done
    std::string stop_reason = {};                // of one that was told to end
    std::shared_ptr<ProcessWatch> process = {};  // of a driver on this machine

    Role role() const { return channel->peer().role; }
    bool is_driver_of_a_job() const { return role() == Role::kDriver && !job.is_none(); }
  };

  void add(std::shared_ptr<Channel> channel);
  /// Nothing: the connection is not in the table.
  std::optional<Client> remove(const Channel& channel);
  /// Null: it is not in the table.
  Client* find(const Channel& channel);
  /// Null: the job has no driver here.
  Client* driver_of(JobId job);

  /// Visits the clients in the order in which they came.
  template <class Visit>
  void for_each(Visit visit) const {
    for (const auto& [channel, client] : clients_) visit(client);
  }
  /// Sends the event to workers and drivers.
  void tell_programs(const ControlEvent& event) const;
  /// Sends the event to the clients of the job.
  void tell_job(JobId job, const ControlEvent& event) const;
  /// How many of each role there are, by "connections_driver" and so on.
  void count(Numbers& numbers) const;
  /// Their ends are heard meanwhile.
  void close_all(const Status& why);
  void clear() { clients_.clear(); }

 private:
  std::map<const Channel*, Client, ChannelOrder> clients_;
};

}  // namespace runtime
