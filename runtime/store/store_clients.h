// StoreClients: the connections of an object store, and the numbers that its tables know them by.
// Private to this folder.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/core/clock.h"
#include "runtime/store/extent_table.h"
#include "runtime/store/object_wire.h"
#include "runtime/store/store_memory.h"
#include "runtime/transport/channel.h"

namespace runtime::object_detail {

/// What the answer to a request needs of it.
Message without_content(const Message& message);
/// Nothing where no answer is wanted.
void answer(const std::shared_ptr<Channel>& channel, const Message& request, Buffer meta,
            Payload payload = {});

/// Lives on the event loop.
class StoreClients {
 public:
  using Client = ExtentTable::Client;
  using Open = std::pair<Client, std::shared_ptr<Channel>>;

  Client number_of(const std::shared_ptr<Channel>& channel);
  /// The connection has ended; the number that it had.
  std::optional<Client> remove(const Channel& channel);
  /// Null: it has ended.
  std::shared_ptr<Channel> channel_of(Client client) const;
  std::vector<Open> open() const;
  /// The drivers and workers here, which refer to objects.
  std::vector<std::shared_ptr<Channel>> processes() const;
  /// What a process said; `gone`: nothing, since it has ended.
  using Heard = std::function<void(const PeerInfo&, Result<object_wire::Reply> reply, bool gone)>;
  /// Asks these processes; `heard` for each that answers or does not, then `done`, once.
  void ask_processes(const object_wire::Request& request, std::chrono::milliseconds timeout,
                     Heard heard, UniqueFunction<void()> done) const;

 private:
  struct Connected {
    Client client;
    std::weak_ptr<Channel> channel;
  };

  std::map<std::uint64_t, Connected> clients_;  // by their channel's serial
  Client next_client_ = kStoreItself + 1;
};

}  // namespace runtime::object_detail
