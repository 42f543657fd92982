// connect(): from an endpoint to an authenticated channel.
#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "runtime/core/log.h"
#include "runtime/core/timer.h"
#include "runtime/transport/listener.h"
#include "runtime/transport/socket.h"
#include "runtime/transport/socket_stream.h"

namespace runtime {

namespace {

/// Between tries to make a connection, and to make one again.
constexpr std::chrono::milliseconds kConnectPauseMin{2};
constexpr std::chrono::milliseconds kLastFirstPause{64};
constexpr std::chrono::milliseconds kConnectPauseMax{500};

std::uint64_t random_session() {
  const auto bytes = ids_detail::random_bytes();
  std::uint64_t session = 0;
  std::memcpy(&session, bytes.data(), sizeof session);
  return session | 1;  // never 0
}

struct Connected {
  ConnectionSocket socket;
  Handshaken handshaken;
};

/// By the present token alone. `terms`: in, ours; out, the peer's.
asio::awaitable<Result<Connected>> connect_by_token(EventLoop& loop, Endpoint endpoint,
                                                    Credentials credentials, ConnectOptions options,
                                                    SessionTerms& terms) {
  ConnectionSocket unconnected(loop.context());
  auto timed =
      std::make_shared<transport_detail::TimedSocket>(loop.context(), std::move(unconnected));
  timed->arm(options.deadline);
  Endpoint place = endpoint.for_worker({});
  const std::string where = place.to_string();

  Status status = co_await transport_detail::connect_socket(*timed, place);
  if (!status.ok()) {
    timed->disarm();
    co_return timed->explain(
        status,
        where + ": could not connect within the deadline; is the machine up and the port open?");
  }
  const Preamble preamble{.target = endpoint.target,
                          .dialled = digest_of(place),
                          .reached = digest_of_peer_address(timed->socket.native_handle())};
  auto peer = co_await handshake_caller(timed->socket, preamble, credentials, where, terms);
  timed->disarm();
  if (!peer.ok()) {
    co_return timed->explain(peer.status(),
                             where +
                                 ": no answer to the handshake within the deadline; the process "
                                 "there is stopped, or it is not a Starling port");
  }
  if (timed->expired) co_return deadline_exceeded(where + ": the handshake took too long");
  if (peer->peer.incarnation < options.incarnation_min) {
    co_return unavailable(where + ": incarnation " + std::to_string(peer->peer.incarnation) +
                          " is older than " + std::to_string(options.incarnation_min) +
                          ", which was seen before");
  }
  Connected connected{std::move(timed->socket), *std::move(peer)};
  co_return connected;
}

/// While the cluster's token is being changed, the peer may not know the new one yet, or this
/// process may not. Then another one that counts is tried. If all are refused, the refusal of the
/// present one is told.
asio::awaitable<Result<Connected>> connect_once(EventLoop& loop, Endpoint endpoint,
                                                Credentials credentials, ConnectOptions options,
                                                SessionTerms& terms) {
  const std::vector<std::string> tokens = credentials.token.accepted();
  const SessionTerms offered = terms;
  std::optional<Status> failure;
  for (const std::string& token : tokens) {
    credentials.token = token;
    terms = offered;
    auto connected = co_await connect_by_token(loop, endpoint, credentials, options, terms);
    if (connected.ok()) co_return connected;
    // One that passes is for the caller to know: it may try again.
    const bool is_refusal = connected.status().code() == ErrorCode::kInvalidArgument;
    if (!is_refusal) co_return connected.status();
    if (!failure) failure = connected.status();
  }
  co_return *failure;
}

/// Brings a lasting connection whose socket broke another one, until it has one, has given up, or
/// no holder has it any more.
class Reconnect : public std::enable_shared_from_this<Reconnect> {
 public:
  Reconnect(EventLoop& loop, Endpoint endpoint, Credentials credentials, ConnectOptions options,
            std::uint64_t session, const std::shared_ptr<Channel>& channel)
      : loop_(loop),
        endpoint_(std::move(endpoint)),
        credentials_(std::move(credentials)),
        options_(options),
        session_(session),
        channel_(channel),
        pause_(loop.context()) {}

  void begin() {
    asio::co_spawn(loop_.executor(), run(shared_from_this()), [](std::exception_ptr error) {
      if (error) LOG(error, "reconnect: a coroutine ended with an exception");
    });
  }

 private:
  static asio::awaitable<void> run(std::shared_ptr<Reconnect> self) {
    for (auto wait = kConnectPauseMin;; wait = std::min(2 * wait, kConnectPauseMax)) {
      auto channel = self->channel_.lock();
      if (!channel || channel->closed() || !channel->is_interrupted()) co_return;
      const Channel::Detached detached = channel->detach();
      SessionTerms terms{self->session_, true, detached.received};
      ConnectOptions options = self->options_;
      options.deadline = deadline_after(kTryTime);
      auto connected =
          co_await connect_once(self->loop_, self->endpoint_, self->credentials_, options, terms);
      if (connected.ok() && terms.session != self->session_)
        connected =
            not_found(self->endpoint_.to_string() + ": the session is not known there any more");
      if (connected.ok() &&
          channel->resume(std::move(connected->socket), std::move(connected->handshaken.stream),
                          terms.received, detached))
        co_return;
      // What is no handshake may come from an attacker in between, or be a passing fault. That the
      // peer is gone for good is believed.
      const ErrorCode code = connected.status().code();
      const bool again =
          connected.ok() || (code != ErrorCode::kNotFound && code != ErrorCode::kCancelled);
      if (!again) co_return channel->close(unavailable(connected.status().message()));
      channel.reset();  // it may end meanwhile
      self->pause_.expires_after(wait);
      auto [ec] = co_await self->pause_.async_wait(asio::as_tuple(asio::use_awaitable));
      if (ec) co_return;
    }
  }

  static constexpr std::chrono::seconds kTryTime{2};

  EventLoop& loop_;
  const Endpoint endpoint_;
  const Credentials credentials_;
  const ConnectOptions options_;
  const std::uint64_t session_;
  const std::weak_ptr<Channel> channel_;
  Timer pause_;
};

using Done = UniqueFunction<void(Result<std::shared_ptr<Channel>>)>;

asio::awaitable<void> connect_and_tell(EventLoop& loop, Endpoint endpoint, Credentials credentials,
                                       ConnectOptions options, Done done) {
  auto channel = co_await async_connect(loop, std::move(endpoint), std::move(credentials), options);
  done(std::move(channel));
}

}  // namespace

asio::awaitable<Result<std::shared_ptr<Channel>>> async_connect(EventLoop& loop, Endpoint endpoint,
                                                                Credentials credentials,
                                                                ConnectOptions options) {
  if (!loop.status().ok()) co_return loop.status();
  const bool lasting = options.lasting && !endpoint.is_unix();
  const std::uint64_t session = lasting ? random_session() : 0;
  Timer pause(loop.context());
  for (auto wait = kConnectPauseMin;; wait *= 2) {
    SessionTerms terms;
    terms.session = session;
    auto connected = co_await connect_once(loop, endpoint, credentials, options, terms);
    if (connected.ok()) {
      auto channel = std::make_shared<Channel>(
          loop, std::move(connected->socket), std::move(connected->handshaken.stream),
          std::move(connected->handshaken.peer), options.channel);
      if (session != 0 && terms.session == session) {
        auto reconnect = std::make_shared<Reconnect>(
            loop, std::move(endpoint), std::move(credentials), options, session, channel);
        channel->make_lasting(session, [reconnect] { reconnect->begin(); });
      }
      co_return channel;
    }
    // Cut while it was being made: another try has the same session, should the other side have it
    // already.
    const bool again =
        lasting && connected.status().code() == ErrorCode::kUnavailable && wait <= kLastFirstPause;
    if (!again || steady_now() + wait >= options.deadline) co_return connected.status();
    pause.expires_after(wait);
    auto [ec] = co_await pause.async_wait(asio::as_tuple(asio::use_awaitable));
    if (ec) co_return connected.status();
  }
}

void connect(EventLoop& loop, const Endpoint& endpoint, const Credentials& credentials,
             const ConnectOptions& options, Done done) {
  loop.post([&loop, endpoint, credentials, options, done = std::move(done)]() mutable {
    asio::co_spawn(loop.executor(),
                   connect_and_tell(loop, std::move(endpoint), std::move(credentials), options,
                                    std::move(done)),
                   [](std::exception_ptr error) {
                     if (error) LOG(error, "connect: a coroutine ended with an exception");
                   });
  });
}

Result<std::shared_ptr<Channel>> connect(EventLoop& loop, const Endpoint& endpoint,
                                         const Credentials& credentials,
                                         const ConnectOptions& options) {
  struct Waiting {
    explicit Waiting(EventLoop& loop) : done(loop) {}
    Event done;
    std::optional<Result<std::shared_ptr<Channel>>> result;
  };
  if (!loop.status().ok()) return loop.status();
  if (loop.is_forked()) return forked_status();
  auto waiting = std::make_shared<Waiting>(loop);
  connect(loop, endpoint, credentials, options, [waiting](Result<std::shared_ptr<Channel>> result) {
    waiting->result = std::move(result);
    waiting->done.set();
  });
  // A name server that does not answer holds the coroutine beyond its deadline, but not the caller.
  Deadline patience = options.deadline > Deadline::max() - std::chrono::seconds(1)
                          ? Deadline::max()
                          : options.deadline + std::chrono::seconds(1);
  if (!loop.run_until(waiting->done, patience)) {
    return deadline_exceeded(endpoint.to_string() + ": could not connect within the deadline");
  }
  return std::move(*waiting->result);
}

}  // namespace runtime
