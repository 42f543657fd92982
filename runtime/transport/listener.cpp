#include "runtime/transport/listener.h"

#include <unistd.h>

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/core/log.h"
#include "runtime/core/timer.h"
#include "runtime/transport/simulated_network.h"
#include "runtime/transport/socket.h"
#include "runtime/transport/socket_stream.h"

namespace runtime {

using transport_detail::Acceptor;
using transport_detail::TimedSocket;

namespace {

// After running out of descriptors the listener waits this long before it tries to accept again.
constexpr std::chrono::milliseconds kAcceptPause{100};

// What a submitter sends are requests, with parts of files of some MiB in their messages.
constexpr std::uint64_t kSubmitterMetaMax = 16 << 20;

bool is_same(const PeerInfo& one, const PeerInfo& other) {
  return one.role == other.role && one.node == other.node && one.worker == other.worker &&
         one.is_submitter == other.is_submitter;
}

void report_end(std::exception_ptr error) {
  if (error) LOG(error, "listener: a coroutine ended with an exception");
}

}  // namespace

/// Shared by the listener and its coroutines. Everything is touched on the loop only.
struct Listener::State : std::enable_shared_from_this<Listener::State> {
  State(EventLoop& event_loop, Acceptor bound, Endpoint bound_to, Credentials own_credentials,
        ListenerCallbacks user_callbacks, ListenerOptions user_options)
      : loop(event_loop),
        acceptor(std::move(bound)),
        pause(event_loop.context()),
        endpoint(std::move(bound_to)),
        credentials(std::move(own_credentials)),
        callbacks(std::move(user_callbacks)),
        options(std::move(user_options)),
        addresses(endpoint, options.also_reached_at) {
    if (acceptor.is_open()) close_in_child(acceptor.native_handle());
  }
  ~State() { close_acceptor(); }

  void close_acceptor() {
    if (!acceptor.is_open()) return;
    keep_in_child(acceptor.native_handle());
    boost::system::error_code ignored;
    acceptor.close(ignored);
  }

  static asio::awaitable<void> accept_all(std::shared_ptr<State> self);
  static asio::awaitable<void> serve(std::shared_ptr<State> self,
                                     std::shared_ptr<TimedSocket> timed,
                                     std::optional<Inbound> inbound);
  struct Handshake;
  asio::awaitable<Result<std::optional<Inbound>>> arrive(std::shared_ptr<TimedSocket> timed,
                                                         std::string address);
  asio::awaitable<Result<Handshaken>> authenticate(std::shared_ptr<TimedSocket> timed,
                                                   std::optional<Inbound> inbound,
                                                   std::string address, Handshake& handshake);
  Result<SessionTerms> answer(const PeerInfo& peer, const SessionTerms& caller,
                              Handshake& handshake);
  void begin(ConnectionSocket socket, std::optional<Inbound> inbound);
  void make_room();
  void stop();

  EventLoop& loop;
  Acceptor acceptor;
  Timer pause;
  const Endpoint endpoint;
  const Credentials credentials;
  ListenerCallbacks callbacks;
  const ListenerOptions options;
  const OwnAddresses addresses;
  struct Unfinished {
    std::shared_ptr<TimedSocket> timed;
    std::string source;
  };
  std::vector<Unfinished> handshakes;  // oldest first
  std::unordered_map<std::uint64_t, std::weak_ptr<Channel>>
      sessions;  // of lasting connections; those that ended leave with the next that comes
  UniqueFunction<void()> finished;  // to be called when no handshake is left
  bool finishing = false;
  bool stopped = false;

  ChannelOptions limits_of(const PeerInfo& peer) const {
    ChannelOptions limits = options.channel;
    if (!peer.is_submitter) return limits;
    limits.meta_bytes_max = std::min(limits.meta_bytes_max, kSubmitterMetaMax);
    limits.payload_bytes_max = std::min(limits.payload_bytes_max, kSubmitterMetaMax);
    return limits;
  }

  void tell_finished() {
    if (finished && handshakes.empty()) std::exchange(finished, nullptr)();
  }
};

/// One that is under way.
struct Listener::State::Handshake {
  bool handed_over = false;
  bool lasts = false;                // over TCP
  SessionTerms terms;                // the caller's
  std::shared_ptr<Channel> resumes;  // the connection that the socket is for
  Channel::Detached detached;
};

Result<SessionTerms> Listener::State::answer(const PeerInfo& peer, const SessionTerms& caller,
                                             Handshake& handshake) {
  if (callbacks.admit && !caller.resumes) {
    if (Status status = callbacks.admit(peer); !status.ok()) return status;
  }
  if (!handshake.lasts || caller.session == 0) return SessionTerms{};
  std::erase_if(sessions, [](const auto& session) { return session.second.expired(); });
  auto found = sessions.find(caller.session);
  std::shared_ptr<Channel> channel = found == sessions.end() ? nullptr : found->second.lock();
  if (channel && channel->closed()) channel = nullptr;
  if (!channel && caller.resumes)
    return not_found("the session is not known here any more: it was interrupted for too long");
  if (!channel) return SessionTerms{caller.session, false, 0};
  // The caller has given its old socket up, whatever that looks like from here.
  handshake.detached = channel->detach();
  handshake.resumes = std::move(channel);
  return SessionTerms{caller.session, true, handshake.detached.received};
}

asio::awaitable<void> Listener::State::accept_all(std::shared_ptr<State> self) {
  while (!self->stopped) {
    auto [ec, socket] = co_await self->acceptor.async_accept(asio::as_tuple(asio::use_awaitable));
    if (self->stopped || self->finishing) co_return;
    if (!ec) {
      transport_detail::tune(socket);
      self->begin(std::move(socket), std::nullopt);
      continue;
    }
    LOG(warn, "{}: accept: {}", self->endpoint.to_string(), ec.message());
    self->pause.expires_after(kAcceptPause);
    auto [waited] = co_await self->pause.async_wait(asio::as_tuple(asio::use_awaitable));
    if (waited) co_return;
  }
}

void Listener::State::begin(ConnectionSocket socket, std::optional<Inbound> inbound) {
  if (stopped || finishing) return;  // closes the socket
  if (handshakes.size() >= options.handshakes_max) make_room();
  std::string source = transport_detail::peer_source(socket);
  auto timed = std::make_shared<TimedSocket>(loop.context(), std::move(socket));
  timed->arm(deadline_after(options.handshake_timeout));
  handshakes.push_back({timed, std::move(source)});
  asio::co_spawn(loop.executor(), serve(shared_from_this(), std::move(timed), std::move(inbound)),
                 report_end);
}

// A holder of the token needs milliseconds for its handshake. So the oldest handshake gives way, of
// the source that has most of them. Neither many strangers nor one with many connections keep
// holders out.
void Listener::State::make_room() {
  std::unordered_map<std::string_view, std::size_t> counts;
  for (const Unfinished& unfinished : handshakes) ++counts[unfinished.source];
  auto oldest = handshakes.begin();
  for (auto other = handshakes.begin(); other != handshakes.end(); ++other) {
    if (counts[other->source] > counts[oldest->source]) oldest = other;
  }
  const std::shared_ptr<TimedSocket> timed = oldest->timed;
  handshakes.erase(oldest);
  timed->disarm();
  boost::system::error_code ignored;
  timed->socket.close(ignored);  // serve() finds that it has been dropped
}

// What it begins with: whom it is for. None: an HTTP client's, handed over.
asio::awaitable<Result<std::optional<Inbound>>> Listener::State::arrive(
    std::shared_ptr<TimedSocket> timed, std::string address) {
  auto received = co_await read_first_bytes(timed->socket);
  if (!received.ok()) co_return received.status().with_context(address);
  if ((is_http(*received) || is_tls(*received)) && callbacks.on_http && !stopped) {
    boost::system::error_code ec;
    FileDescriptor fd(timed->socket.release(ec));
    if (ec) co_return from_asio(ec, address);
    callbacks.on_http(std::move(fd), *std::move(received));
    co_return std::optional<Inbound>();
  }
  auto preamble = co_await read_preamble(timed->socket, *std::move(received));
  if (!preamble.ok()) co_return preamble.status().with_context(address);
  const bool meant =
      preamble->version != kWireVersion || address.starts_with("unix:") ||
      addresses.includes(preamble->dialled, preamble->reached, timed->socket.native_handle());
  if (!meant) {
    const Status why = invalid_argument(
        "the node that answers there does not go by that address. Start it with --alias and the "
        "address, if it is reached through a port that is forwarded");
    co_await refuse(timed->socket, *preamble, why);
    co_return invalid_argument(address + ": dialled another address than this node's");
  }
  co_return std::optional(Inbound{*preamble, options.plain});
}

// Whether it is for us or for a worker behind us, and then the proof.
asio::awaitable<Result<Handshaken>> Listener::State::authenticate(
    std::shared_ptr<TimedSocket> timed, std::optional<Inbound> inbound, std::string address,
    Handshake& handshake) {
  const bool adopted = inbound.has_value();
  if (!adopted) {
    auto arrived = co_await arrive(timed, address);
    if (!arrived.ok()) co_return arrived.status();
    handshake.handed_over = !arrived->has_value();
    if (handshake.handed_over) co_return cancelled("handed over");
    inbound = *arrived;
  }
  const Preamble& preamble = inbound->preamble;
  // A caller of another version is refused below, whomever it means.
  const bool is_spoken = preamble.version == kWireVersion;
  if (is_spoken && !preamble.target.is_none() && preamble.target != credentials.worker) {
    if (stopped) co_return cancelled("stopped");
    Status taken = not_found("worker " + preamble.target.short_hex() + " is not here");
    // An adopted connection that is not for us was routed wrongly; routing it again could go round
    // in circles.
    if (callbacks.on_inbound && !adopted) {
      boost::system::error_code ec;
      FileDescriptor fd(timed->socket.release(ec));
      if (ec) co_return from_asio(ec, address);
      taken = callbacks.on_inbound(*inbound, fd);
      if (taken.ok()) {
        handshake.handed_over = true;
        co_return cancelled("handed over");
      }
      if (!fd) co_return taken;
      auto back = transport_detail::adopt_socket(loop.context(), std::move(fd));
      if (!back.ok()) co_return back.status();
      timed->socket = std::move(*back);
    }
    co_await refuse(timed->socket, preamble, taken);
    co_return taken.with_context(address);
  }
  if (preamble.key == submitter_key_id() && !options.admits_submitters) {
    const Status why = invalid_argument(
        "a submitter's token is of no use here: it is for `starling submit` to a node of root");
    co_await refuse(timed->socket, preamble, why);
    co_return why.with_context(address);
  }
  // Who a submitter is follows from the socket's address: another socket may be another user's.
  handshake.lasts = handshake.lasts && preamble.key != submitter_key_id();
  const SessionAnswer answers = [this, &handshake](const PeerInfo& peer,
                                                   const SessionTerms& caller) {
    return answer(peer, caller, handshake);
  };
  co_return co_await handshake_callee(timed->socket, *inbound, credentials, address, answers,
                                      handshake.terms);
}

asio::awaitable<void> Listener::State::serve(std::shared_ptr<State> self,
                                             std::shared_ptr<TimedSocket> timed,
                                             std::optional<Inbound> inbound) {
  std::string address = transport_detail::peer_address(timed->socket, self->endpoint);
  Handshake handshake;
  handshake.lasts = !address.starts_with("unix:");
  auto proved = co_await self->authenticate(timed, inbound, address, handshake);
  timed->disarm();
  const bool gave_way = std::erase_if(self->handshakes, [&timed](const Unfinished& unfinished) {
                          return unfinished.timed == timed;
                        }) == 0;
  struct AtEnd {
    State& state;
    ~AtEnd() { state.tell_finished(); }
  } at_end{*self};
  if (self->stopped || handshake.handed_over) co_return;
  if (!proved.ok() || timed->expired || gave_way) {
    Status why = timed->explain(proved.ok() ? cancelled("expired") : proved.status(),
                                address + ": did not finish the handshake in time");
    if (gave_way)
      why = resource_exhausted(
          address + ": " + std::to_string(self->options.handshakes_max) +
          " handshakes were unfinished, and this one was the oldest of its address");
    LOG(debug, "{}: refused {}", self->endpoint.to_string(), why.message());
    if (self->callbacks.on_refused) self->callbacks.on_refused(address, why);
    co_return;
  }
  if (handshake.resumes && !is_same(handshake.resumes->peer(), proved->peer)) {
    LOG(warn, "{}: refused {}: a session is gone on with by who began it",
        self->endpoint.to_string(), address);
    co_return;
  }
  if (handshake.resumes) {
    (void)handshake.resumes->resume(
        std::move(timed->socket), std::move(proved->stream), handshake.terms.received,
        handshake.detached);  // else it has ended, or a newer socket came
    co_return;
  }
  const ChannelOptions limits = self->limits_of(proved->peer);
  auto channel =
      std::make_shared<Channel>(self->loop, std::move(timed->socket), std::move(proved->stream),
                                std::move(proved->peer), limits);
  if (handshake.lasts && handshake.terms.session != 0) {
    channel->make_lasting(handshake.terms.session, nullptr);
    self->sessions[handshake.terms.session] = channel;
  }
  self->callbacks.on_channel(std::move(channel));
}

void Listener::State::stop() {
  if (std::exchange(stopped, true)) return;
  finished = nullptr;
  close_acceptor();
  pause.cancel();
  boost::system::error_code ignored;
  for (const Unfinished& unfinished : handshakes) {
    unfinished.timed->disarm();
    unfinished.timed->socket.close(ignored);
  }
  if (SimulatedNetwork* simulated = simulated_network())
    simulated->stop_listening(endpoint);
  else if (endpoint.is_unix())
    ::unlink(endpoint.unix_path.c_str());
  callbacks = {};
}

Listener::Listener(std::shared_ptr<State> state, Endpoint endpoint)
    : state_(std::move(state)), endpoint_(std::move(endpoint)) {}

Listener::~Listener() { stop(); }

Result<std::unique_ptr<Listener>> Listener::listen(EventLoop& loop, const Endpoint& endpoint,
                                                   Credentials credentials,
                                                   ListenerCallbacks callbacks,
                                                   ListenerOptions options) {
  CHECK(callbacks.on_channel != nullptr);
  if (simulated_network())
    return listen_simulated(loop, endpoint, std::move(credentials), std::move(callbacks), options);
  if (!loop.status().ok()) return loop.status();
  Endpoint bound = endpoint;
  auto acceptor = transport_detail::bind_listener(loop.context(), bound);
  if (!acceptor.ok()) return acceptor.status();
  auto state = std::make_shared<State>(loop, std::move(*acceptor), bound, std::move(credentials),
                                       std::move(callbacks), options);
  loop.post(
      [state] { asio::co_spawn(state->loop.executor(), State::accept_all(state), report_end); });
  return std::unique_ptr<Listener>(new Listener(std::move(state), std::move(bound)));
}

Result<std::unique_ptr<Listener>> Listener::listen_simulated(EventLoop& loop,
                                                             const Endpoint& endpoint,
                                                             Credentials credentials,
                                                             ListenerCallbacks callbacks,
                                                             ListenerOptions options) {
  Endpoint bound = endpoint;
  auto shared = std::make_shared<std::weak_ptr<State>>();
  const int error = simulated_network()->listen(bound, [&loop, shared](int fd) {
    auto arrived = std::make_shared<FileDescriptor>(fd);
    loop.post([shared, arrived] {
      auto state = shared->lock();
      if (!state) return;
      auto socket = transport_detail::adopt_socket(state->loop.context(), std::move(*arrived));
      if (socket.ok()) state->begin(std::move(*socket), std::nullopt);
    });
  });
  if (error != 0)
    return unavailable(endpoint.to_string() + ": address in use: another process listens there");
  auto state = std::make_shared<State>(loop, Acceptor(loop.context()), bound,
                                       std::move(credentials), std::move(callbacks), options);
  *shared = state;
  return std::unique_ptr<Listener>(new Listener(std::move(state), std::move(bound)));
}

void Listener::adopt(FileDescriptor fd, const Inbound& inbound) {
  state_->loop.post([state = state_, fd = std::move(fd), inbound]() mutable {
    auto socket = transport_detail::adopt_socket(state->loop.context(), std::move(fd));
    if (socket.ok()) {
      state->begin(std::move(*socket), inbound);
    } else {
      LOG(warn, "{}: {}", state->endpoint.to_string(), socket.status().message());
    }
  });
}

void Listener::finish(UniqueFunction<void()> done) {
  state_->loop.post([state = state_, done = std::move(done)]() mutable {
    if (state->stopped) return;
    state->finishing = true;
    state->close_acceptor();
    state->finished = std::move(done);
    state->tell_finished();
  });
}

void Listener::stop() {
  EventLoop& loop = state_->loop;
  if (loop.in_loop()) return state_->stop();
  auto done = std::make_shared<Event>(loop);
  loop.post([state = state_, done] {
    state->stop();
    done->set();
  });
  loop.run_until(*done, Deadline::max());
}

}  // namespace runtime
