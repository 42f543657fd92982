#include "runtime/store/store_clients.h"

namespace runtime::object_detail {

Message without_content(const Message& message) {
  Message request;
  request.kind = message.kind;
  request.id = message.id;
  return request;
}

void answer(const std::shared_ptr<Channel>& channel, const Message& request, Buffer meta,
            Payload payload) {
  if (request.id == 0) return;
  // A failure means that the connection is gone, and detach() follows.
  (void)channel->send(reply_to(request, std::move(meta), std::move(payload)));
}

StoreClients::Client StoreClients::number_of(const std::shared_ptr<Channel>& channel) {
  auto [known, fresh] = clients_.try_emplace(channel->serial(), Connected{next_client_, channel});
  if (fresh) ++next_client_;
  return known->second.client;
}

std::optional<StoreClients::Client> StoreClients::remove(const Channel& channel) {
  auto found = clients_.extract(channel.serial());
  return found.empty() ? std::nullopt : std::optional(found.mapped().client);
}

std::shared_ptr<Channel> StoreClients::channel_of(Client client) const {
  for (const auto& [serial, connected] : clients_) {
    if (connected.client == client) return connected.channel.lock();
  }
  return nullptr;
}

std::vector<StoreClients::Open> StoreClients::open() const {
  std::vector<Open> all;
  for (const auto& [serial, connected] : clients_) {
    auto channel = connected.channel.lock();
    if (channel && !channel->closed()) all.emplace_back(connected.client, std::move(channel));
  }
  return all;
}

std::vector<std::shared_ptr<Channel>> StoreClients::processes() const {
  std::vector<std::shared_ptr<Channel>> all;
  for (auto& [client, channel] : open()) {
    if (channel->peer().role == Role::kDriver || channel->peer().role == Role::kWorker)
      all.push_back(std::move(channel));
  }
  return all;
}

void StoreClients::ask_processes(const object_wire::Request& request,
                                 std::chrono::milliseconds timeout, Heard heard,
                                 UniqueFunction<void()> done) const {
  struct Asking {
    Heard heard;
    UniqueFunction<void()> done;
    std::size_t outstanding = 1;
    void end() {
      if (--outstanding == 0) done();
    }
  };
  auto asking = std::make_shared<Asking>();
  asking->heard = std::move(heard);
  asking->done = std::move(done);
  const Buffer meta = object_wire::encode_request(request);
  for (const auto& channel : processes()) {
    ++asking->outstanding;
    channel->request(object_wire::request_message(meta), deadline_after(timeout),
                     [asking, peer = channel->peer()](Result<Message> replied) {
                       asking->heard(peer,
                                     replied.ok() ? object_wire::decode_reply(replied->meta)
                                                  : Result<object_wire::Reply>(replied.status()),
                                     replied.status().code() == ErrorCode::kUnavailable);
                       asking->end();
                     });
  }
  asking->end();
}

}  // namespace runtime::object_detail
