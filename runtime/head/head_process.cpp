#include "runtime/head/head_process.h"

#include <unistd.h>

#include <utility>

#include "runtime/control/control_channel.h"
#include "runtime/control/control_codec.h"
#include "runtime/core/log.h"
#include "runtime/process/job_user.h"
#include "runtime/transport/blocking.h"
#include "runtime/transport/refusal_log.h"

namespace runtime {

HeadProcess::HeadProcess(EventLoop& loop, HeadProcessOptions options)
    : loop_(loop), options_(std::move(options)), stopped_(loop) {}

Result<std::unique_ptr<HeadProcess>> HeadProcess::start(EventLoop& loop,
                                                        HeadProcessOptions options) {
  std::unique_ptr<HeadProcess> head(new HeadProcess(loop, std::move(options)));
  if (Status status = on_loop(loop, [&] { return head->open(); }); !status.ok()) return status;
  return head;
}

Status HeadProcess::open() {
  std::unique_ptr<Journal> journal;
  if (options_.open_journal) {
    auto opened = options_.open_journal(loop_);
    if (!opened.ok()) return opened.status();
    journal = std::move(*opened);
  }
  options_.service.host = options_.node;
  options_.head.keyring = options_.token;
  service_ = std::make_unique<HeadService>(loop_, options_.cluster, std::move(options_.scheduler),
                                           std::move(journal), options_.service, options_.head);
  if (Status status = service_->recover(); !status.ok()) return status;

  Credentials credentials;
  credentials.token = options_.head.keyring;
  credentials.cluster = options_.cluster;
  credentials.role = Role::kNode;
  credentials.node = options_.node;
  credentials.worker = head_target();
  ListenerCallbacks callbacks;
  callbacks.on_channel = [this](const std::shared_ptr<Channel>& channel) { accept(channel); };
  callbacks.on_refused = [log = std::make_shared<RefusalLog>()](
                             const std::string& peer, const Status& why) { log->note(peer, why); };
  auto endpoint = Endpoint::unix_socket(options_.socket.string());
  if (!endpoint.ok()) return endpoint.status();
  auto listener = Listener::listen(loop_, *endpoint, credentials, std::move(callbacks));
  if (!listener.ok()) return listener.status();
  listener_ = std::move(*listener);
  return {};
}

void HeadProcess::accept(const std::shared_ptr<Channel>& channel) {
  if (channel->peer().role != Role::kNode)
    return channel->close(invalid_argument("the head serves nodes: connect to one of those"));
  channels_[channel->serial()] = channel;
  channel->set_handler(
      lifetime_.guard([this](const std::shared_ptr<Channel>& from, Message message) {
        on_message(from, std::move(message));
      }));
  channel->set_on_close(lifetime_.guard([this, raw = channel.get()](const Status& why) {
    auto found = channels_.find(raw->serial());
    if (found == channels_.end()) return;
    const std::shared_ptr<Channel> closed = std::move(found->second);
    channels_.erase(found);
    service_->on_closed(*closed, why);
  }));
  close_unless_back(loop_, channel);
}

void HeadProcess::on_message(const std::shared_ptr<Channel>& channel, Message message) {
  if (message.kind == FrameKind::kAttach && channel->peer().node == options_.node) {
    FileDescriptor socket;
    auto inbound = decode_attach(message, &socket);
    if (!inbound.ok())
      return LOG(warn, "{}: {}", channel->describe_peer(), inbound.status().message());
    return listener_->adopt(std::move(socket), *inbound);
  }
  if (message.kind == FrameKind::kControlEvent) {
    auto event = decode_control_event(message.meta);
    if (!event.ok()) return LOG(warn, "{}: {}", channel->describe_peer(), event.status().message());
    return service_->handle_event(channel, *event);
  }
  if (message.kind != FrameKind::kControl) {
    return LOG(warn, "{} sent a frame of kind {}, which the head does not serve",
               channel->describe_peer(), static_cast<int>(message.kind));
  }
  ControlAnswerer answer = answerer_for(channel, message);
  auto request = decode_control_request(message.meta);
  if (!request.ok()) return answer(request.status());
  serve(channel, std::move(*request), std::move(answer));
}

// A cluster of root has no nodes of others: what they say of their drivers would be believed.
Status HeadProcess::check_owner(const PeerInfo& peer) const {
  const auto& nodes = service_->head().tables().nodes().all();
  const auto own_node = nodes.find(options_.node);
  if (::geteuid() != 0 || peer.node == options_.node || own_node == nodes.end()) return {};
  const std::optional<uid_t> user = peer_user(peer, own_node->second.address);
  if (!user || *user == 0) return {};
  return invalid_argument("this cluster runs as root, and " + user_name(*user) +
                          "'s node would bring actors of " + user_name(*user) +
                          " that run as root; start your own cluster");
}

void HeadProcess::serve(const std::shared_ptr<Channel>& channel, ControlRequest request,
                        ControlAnswerer answer) {
  if (std::holds_alternative<control::RegisterNode>(request.body)) {
    if (Status status = check_owner(channel->peer()); !status.ok()) return answer(status);
  }
  if (!std::holds_alternative<control::StopNode>(request.body))
    return service_->handle(channel, std::move(request), std::move(answer));
  if (channel->peer().node != options_.node)
    return answer(invalid_argument("only the head's local node can stop the cluster"));
  service_->stop_nodes(options_.node, request.timeout,
                       [answer = std::make_shared<ControlAnswerer>(std::move(answer))] {
                         (*answer)(ControlAnswer{});
                       });
}

Status HeadProcess::wait() {
  loop_.run_until(stopped_, Deadline::max());
  return stop_reason_;
}

void HeadProcess::quit(Status reason) {
  loop_.post(lifetime_.guard([this, reason = std::move(reason)] {
    stop_reason_ = reason;
    stopped_.set();
  }));
}

HeadProcess::~HeadProcess() {
  on_loop(loop_, [this] {
    lifetime_.end();
    if (listener_) listener_->stop();
    for (auto& [serial, channel] : std::exchange(channels_, {}))
      channel->close(unavailable("the head has stopped"));
    service_.reset();
    return 0;
  });
}

}  // namespace runtime
