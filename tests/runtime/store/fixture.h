// A node with a store and processes on it, all inside of this one, with real sockets and real
// shared memory between them.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "runtime/store/object_client.h"
#include "runtime/store/object_store.h"
#include "runtime/transport/listener.h"
#include "tests/support/eventually.h"
#include "tests/support/temporary_folder.h"

namespace runtime {

using std::chrono::milliseconds;
using std::chrono::seconds;

inline Deadline soon() { return deadline_after(seconds(20)); }

inline std::vector<std::byte> pattern(std::size_t bytes, unsigned seed = 1) {
  std::vector<std::byte> data(bytes);
  for (std::size_t i = 0; i < bytes; ++i)
    data[i] = static_cast<std::byte>((i * 2654435761u + seed) >> 11);
  return data;
}

inline bool equal(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0);
}

class StoreNode {
 public:
  explicit StoreNode(std::uint64_t capacity = 64 << 20, std::uint64_t slab = 1 << 20,
                     std::uint64_t retained = 256 << 20, SpillOptions spill = {},
                     milliseconds retained_for = milliseconds(200)) {
    credentials.token = "secret";
    credentials.role = Role::kNode;
    credentials.node = NodeId::random();
    ObjectStoreOptions options;
    options.credentials = credentials;
    options.capacity_bytes = capacity;
    options.slab_bytes = slab;
    options.retained_bytes_max = retained;
    options.retained_for = retained_for;
    options.chunk_bytes = 256 << 10;
    options.spill = spill;
    auto made = ObjectStore::create(loop, options);
    EXPECT_TRUE(made.ok()) << made.status().to_string();
    store = std::move(*made);
    unix_listener = serve(*Endpoint::unix_socket(dir.file("node")));
    tcp_listener = serve(Endpoint::tcp("127.0.0.1", 0));
    store->set_endpoint(tcp_listener->endpoint().to_string());
    on_loop([] {});
  }
  ~StoreNode() {
    unix_listener.reset();
    tcp_listener.reset();
    on_loop([this] {
      for (auto& channel : channels) channel->close(cancelled("node gone"));
      channels.clear();
      store.reset();
    });
    // The closing itself comes behind, and what a handler posts may come behind what we post
    // meanwhile.
    on_loop([] {});
    on_loop([] {});
  }

  std::unique_ptr<Listener> serve(const Endpoint& endpoint) {
    ListenerCallbacks callbacks;
    callbacks.on_channel = [this](std::shared_ptr<Channel> channel) {
      channels.push_back(channel);
      channel->set_handler([this](const std::shared_ptr<Channel>& from, Message message) {
        EXPECT_TRUE(store->handle(from, message));
      });
      channel->set_on_close([this, channel](Status) {
        if (store) store->detach(*channel);
      });
    };
    auto listener = Listener::listen(loop, endpoint, credentials, std::move(callbacks));
    EXPECT_TRUE(listener.ok()) << listener.status().to_string();
    return std::move(*listener);
  }

  /// Runs it on the node's loop and waits.
  template <class F>
  void on_loop(F f) {
    std::promise<void> done;
    loop.post([&] {
      f();
      done.set_value();
    });
    done.get_future().get();
  }

  ObjectStoreStats stats() {
    ObjectStoreStats stats;
    on_loop([&] { stats = store->stats(); });
    return stats;
  }

  /// Waits until `condition(stats)`; one-way frames take a moment.
  template <class F>
  bool wait_for_stats(F condition) {
    return support::eventually([&] { return condition(stats()); }, std::chrono::seconds(20),
                               milliseconds(2));
  }

  support::TemporaryFolder dir;
  EventLoop loop;
  Credentials credentials;
  std::unique_ptr<ObjectStore> store;
  std::vector<std::shared_ptr<Channel>> channels;  // on the loop
  std::unique_ptr<Listener> unix_listener;
  std::unique_ptr<Listener> tcp_listener;
};

/// A process on a node, with its own loop.
class StoreUser {
 public:
  explicit StoreUser(StoreNode& node, ObjectClientOptions options = {}) {
    Credentials credentials;
    credentials.token = "secret";
    credentials.role = Role::kDriver;
    auto connected = connect(loop, node.unix_listener->endpoint(), credentials);
    EXPECT_TRUE(connected.ok()) << connected.status().to_string();
    channel = *connected;
    objects = std::make_unique<ObjectClient>(channel, options);
    channel->set_handler([this](const std::shared_ptr<Channel>& from, Message message) {
      if (objects) objects->handle(from, message);
    });
  }
  ~StoreUser() {
    end();
    channel->set_handler(nullptr);
  }
  /// As if it were killed.
  void end() { channel->close(cancelled("process gone")); }

  EventLoop loop;
  std::shared_ptr<Channel> channel;
  std::unique_ptr<ObjectClient> objects;
};

}  // namespace runtime
