// connect(): from an endpoint to an authenticated channel.
#include <optional>
#include <utility>

#include "runtime/core/log.h"
#include "runtime/transport/listener.h"
#include "runtime/transport/socket.h"

namespace runtime {

namespace {

using Done = UniqueFunction<void(Result<std::shared_ptr<Channel>>)>;

asio::awaitable<void> connect_and_tell(EventLoop& loop, Endpoint endpoint, Credentials credentials, ConnectOptions options, Done done) {
  auto channel = co_await async_connect(loop, std::move(endpoint), std::move(credentials), options);
  done(std::move(channel));
}

}  // namespace

asio::awaitable<Result<std::shared_ptr<Channel>>> async_connect(EventLoop& loop, Endpoint endpoint, Credentials credentials,
                                                                 ConnectOptions options) {
  Channel::Socket unconnected(loop.context());
  auto timed = std::make_shared<transport_detail::TimedSocket>(loop.context(), std::move(unconnected));
  timed->arm(options.deadline);
  Endpoint place = endpoint.for_worker({});
  const std::string where = place.to_string();

  Status status = co_await transport_detail::connect_socket(*timed, place);
  if (!status.ok()) {
    timed->disarm();
    co_return timed->explain(status, where + ": could not connect within the deadline; is the machine up and the port open?");
  }
  auto peer = co_await handshake_caller(timed->socket, endpoint.target, credentials, where);
  timed->disarm();
  if (!peer.ok()) {
    co_return timed->explain(peer.status(), where + ": no answer to the handshake within the deadline; the process there is stopped, or it is not a Starling port");
  }
  if (timed->expired) co_return deadline_exceeded(where + ": the handshake took too long");
  if (peer->incarnation < options.incarnation_min) {
    co_return unavailable(where + ": incarnation " + std::to_string(peer->incarnation) + " is older than " +
                          std::to_string(options.incarnation_min) + ", which was seen before");
  }
  co_return std::make_shared<Channel>(loop, std::move(timed->socket), std::move(*peer), options.channel);
}

void connect(EventLoop& loop, const Endpoint& endpoint, const Credentials& credentials, const ConnectOptions& options, Done done) {
  loop.post([&loop, endpoint, credentials, options, done = std::move(done)]() mutable {
    asio::co_spawn(loop.executor(), connect_and_tell(loop, std::move(endpoint), std::move(credentials), options, std::move(done)),
                   [](std::exception_ptr error) {
                     if (error) LOG(error, "connect: a coroutine ended with an exception");
                   });
  });
}

Result<std::shared_ptr<Channel>> connect(EventLoop& loop, const Endpoint& endpoint, const Credentials& credentials,
                                         const ConnectOptions& options) {
  struct Waiting {
    explicit Waiting(EventLoop& loop) : done(loop) {}
    Event done;
    std::optional<Result<std::shared_ptr<Channel>>> result;
  };
  auto waiting = std::make_shared<Waiting>(loop);
  connect(loop, endpoint, credentials, options, [waiting](Result<std::shared_ptr<Channel>> result) {
    waiting->result = std::move(result);
    waiting->done.set();
  });
  // A name server that does not answer holds the coroutine beyond its deadline, but not the caller.
  Deadline patience = options.deadline > Deadline::max() - std::chrono::seconds(1) ? Deadline::max()
                                                                                  : options.deadline + std::chrono::seconds(1);
  if (!loop.run_until(waiting->done, patience)) {
    return deadline_exceeded(endpoint.to_string() + ": could not connect within the deadline");
  }
  return std::move(*waiting->result);
}

}  // namespace runtime
