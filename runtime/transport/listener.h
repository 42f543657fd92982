// connect() and Listener: how channels come to be.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/core/result.h"
#include "runtime/transport/channel.h"
#include "runtime/transport/endpoint.h"
#include "runtime/transport/event_loop.h"
#include "runtime/transport/handshake.h"
#include "runtime/transport/unique_function.h"

namespace runtime {

struct ConnectOptions {
  Deadline deadline = deadline_after(std::chrono::seconds(5));
  /// A peer whose incarnation is older is refused: the caller has seen a newer one. kUnavailable.
  std::uint64_t incarnation_min = 0;
  ChannelOptions channel = {};
  /// Over TCP the connection outlives its socket for ChannelOptions::interruption_max. A socket
  /// that breaks is replaced, and what was under way is sent again: every frame arrives once and in
  /// order. With a peer that does not know of this, and on Unix sockets, a lost socket is a lost
  /// connection.
  bool lasting = false;
};

/// Connects, proves the token both ways, exchanges Hello.
/// Errors: kUnavailable (no listener, unreachable, peer went away), kDeadlineExceeded.
/// kInvalidArgument: wrong token, not a Starling port, another cluster, address unknown.
/// kUnimplemented: no common protocol version. kNotFound: the node has no such worker. Each names
/// the endpoint.
asio::awaitable<Result<std::shared_ptr<Channel>>> async_connect(EventLoop& loop, Endpoint endpoint,
                                                                Credentials credentials,
                                                                ConnectOptions options);
/// The same for a plain thread; not from a handler.
Result<std::shared_ptr<Channel>> connect(EventLoop& loop, const Endpoint& endpoint,
                                         const Credentials& credentials,
                                         const ConnectOptions& options = {});
/// The same with a callback, which runs on the loop exactly once.
void connect(EventLoop& loop, const Endpoint& endpoint, const Credentials& credentials,
             const ConnectOptions& options,
             UniqueFunction<void(Result<std::shared_ptr<Channel>>)> done);

struct ListenerOptions {
  std::chrono::milliseconds handshake_timeout{5000};
  /// Connections not yet authenticated. One more, and the oldest is closed, of the address (IPv6:
  /// network of 64 bits) that has most of them.
  std::size_t handshakes_max = 256;
  /// By which addresses callers reach this listener over TCP, besides those that it binds to and
  /// that a connection arrives at. Port 0 is the bound one. A caller that dialled another one is
  /// refused.
  std::vector<Endpoint> also_reached_at;
  /// What follows a handshake over TCP is neither encrypted nor authenticated.
  bool plain = false;
  /// Whether callers with a submitter's token are let in (PeerInfo::is_submitter).
  bool admits_submitters = false;
  ChannelOptions channel;
};

struct ListenerCallbacks {
  /// Whether a caller that has proved itself is let in; it is told why not. Without this hook all
  /// are. Runs on the loop.
  std::function<Status(const PeerInfo& peer)> admit;
  /// A connection finished its handshake. Set its handler here; receiving begins after this
  /// returns. Runs on the loop.
  std::function<void(std::shared_ptr<Channel>)> on_channel;
  /// A connection asks for another worker than this process. Take `socket` (send it to the worker
  /// as kAttach) and return ok, or say why not (kNotFound: no such worker); the caller is told.
  /// Without this hook such connections are refused. Runs on the loop.
  std::function<Status(const Inbound& inbound, FileDescriptor& socket)> on_inbound;
  /// A peer speaks HTTP, or TLS, and has sent these bytes so far; it has proved nothing. Without
  /// this hook it is refused. Runs on the loop.
  std::function<void(FileDescriptor socket, std::string received)> on_http;
  /// A connection failed its handshake; for logs and metrics. Optional. Runs on the loop.
  std::function<void(const std::string& peer_address, const Status& why)> on_refused;
};

/// Accepts connections on one endpoint and authenticates them. Stop it before its callbacks'
/// captures go away.
class Listener {
 public:
  /// Binds and starts accepting. A stale Unix socket file (without a listener) is replaced; the
  /// file's mode is 0600. Errors: kUnavailable (address in use), kInvalidArgument (bad address).
  static Result<std::unique_ptr<Listener>> listen(EventLoop& loop, const Endpoint& endpoint,
                                                  Credentials credentials,
                                                  ListenerCallbacks callbacks,
                                                  ListenerOptions options = {});
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  ~Listener();

  /// Finishes the handshake on a connection that another process accepted (kAttach); ends in
  /// on_channel or on_refused. Any thread.
  void adopt(FileDescriptor socket, const Inbound& inbound);

  /// Where it really listens: with the port that was picked.
  const Endpoint& endpoint() const { return endpoint_; }

  /// Accepts no more connections; `done` runs on the loop once those in their handshakes are
  /// through it, or have failed. A connection that its caller takes for made is so here too then.
  /// Any thread; once.
  void finish(UniqueFunction<void()> done);

  /// Stops accepting, drops unfinished handshakes, removes the Unix socket file. No callback runs
  /// after it returned, provided that it is called on the loop, or on another thread while the loop
  /// is being driven. Idempotent.
  void stop();

 private:
  struct State;
  static Result<std::unique_ptr<Listener>> listen_simulated(EventLoop& loop,
                                                            const Endpoint& endpoint,
                                                            Credentials credentials,
                                                            ListenerCallbacks callbacks,
                                                            ListenerOptions options);
  Listener(std::shared_ptr<State> state, Endpoint endpoint);
  std::shared_ptr<State> state_;
  Endpoint endpoint_;
};

}  // namespace runtime
