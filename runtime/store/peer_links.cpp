#include "runtime/store/peer_links.h"

#include "runtime/core/log.h"
#include "runtime/transport/listener.h"

namespace runtime::object_detail {

namespace {
constexpr std::chrono::seconds kConnectTimeout{5};
}  // namespace

void PeerLinks::with(const std::string& where, int stream, Use use) {
  if (stopped_) return use(unavailable("object store: stopped"));
  auto& peer = peers_[{where, stream}];
  if (!peer) peer = std::make_shared<Peer>();
  if (peer->channel && !peer->channel->closed()) return use(peer->channel);
  peer->channel.reset();
  peer->waiting.push_back(std::move(use));
  if (peer->waiting.size() > 1) return;  // being made
  auto endpoint = Endpoint::parse(where);
  auto tell = [weak = weak_from_this(), peer, where,
               stream](Result<std::shared_ptr<Channel>> channel) {
    auto self = weak.lock();
    if (channel.ok()) {
      if (!self || self->stopped_) {
        (*channel)->close(cancelled("the object store was stopped"));
        channel = unavailable("object store: stopped");
      } else {
        peer->channel = *channel;
        self->watch(where, stream, *channel);
      }
    }
    for (auto& waiting : std::exchange(peer->waiting, {})) waiting(channel);
  };
  if (!endpoint.ok()) return tell(endpoint.status());
  ConnectOptions options;
  options.deadline = deadline_after(kConnectTimeout);
  connect(loop_, *endpoint, credentials_, options, tell);
}

void PeerLinks::watch(const std::string& endpoint, int stream,
                      const std::shared_ptr<Channel>& channel) {
  channel->set_handler([weak = weak_from_this()](const std::shared_ptr<Channel>& from,
                                                 Message message) {
    auto self = weak.lock();
    if (!self || message.kind != FrameKind::kObject) return;
    auto request = object_wire::decode_request(message.meta);
    if (!request.ok())
      return LOG(warn, "object store: {}: {}", from->describe_peer(), request.status().message());
    if (auto* ended = std::get_if<object_wire::Ended>(&*request); ended && self->on_ended)
      self->on_ended(ended->objects);
  });
  if (stream != 0) return;
  channel->set_on_close([weak = weak_from_this(), endpoint](const Status&) {
    auto self = weak.lock();
    if (self && !self->stopped_ && self->on_first_lost) self->on_first_lost(endpoint);
  });
}

void PeerLinks::ask(const std::string& endpoint, const object_wire::Request& request,
                    Deadline deadline, UniqueFunction<void(Result<object_wire::Reply>)> done) {
  with(endpoint, 0,
       [meta = object_wire::encode_request(request), deadline,
        done = std::move(done)](Result<std::shared_ptr<Channel>> channel) mutable {
         if (!channel.ok()) return done(channel.status());
         (*channel)->request(object_wire::request_message(std::move(meta)), deadline,
                             [done = std::move(done)](Result<Message> reply) mutable {
                               if (!reply.ok()) return done(reply.status());
                               done(object_wire::decode_reply(reply->meta));
                             });
       });
}

void PeerLinks::stop() {
  if (std::exchange(stopped_, true)) return;
  for (auto& [endpoint, peer] : peers_) {
    if (peer->channel) peer->channel->close(cancelled("the object store was stopped"));
    // A connection that is being made may never tell, when its loop ends as well.
    for (auto& waiting : std::exchange(peer->waiting, {}))
      waiting(unavailable("object store: stopped"));
  }
}

}  // namespace runtime::object_detail
