#include "runtime/call/actor_handle.h"

#include <algorithm>

#include "runtime/call/actor_client.h"
#include "runtime/call/actor_group.h"
#include "runtime/call/process.h"
#include "runtime/call/stream_state.h"
#include "runtime/call/worker_link.h"

namespace runtime {

std::chrono::milliseconds CallOptions::timeout_or(std::chrono::milliseconds otherwise) const {
  const std::chrono::milliseconds time =
      timeout.count() != 0 ? std::max(timeout, std::chrono::milliseconds(0)) : otherwise;
  if (until == Deadline::max()) return time;
  if (until <= steady_now()) return std::chrono::milliseconds(0);
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - steady_now());
  return std::clamp(left, std::chrono::milliseconds(0), time);
}

}  // namespace runtime

namespace runtime::handle_detail {

void encode_handle(Encoder& encoder, const ActorClient* client, const CallDefaults& defaults) {
  encode_value(encoder, client != nullptr);
  if (!client) return;
  const ActorAddress address = client->address();
  encode_value(encoder, address.actor);
  encode_value(encoder, address.worker);
  encode_value(encoder, address.node);
  encode_value(encoder, address.class_name);
  encode_value(encoder, address.unix_path);
  encode_value(encoder, address.node_address);
  encode_value(encoder, address.incarnation);
  encode_value(encoder, address.pid);
  encode_value(encoder, address.shared);
  encode_value(encoder, defaults.timeout);
  encode_value(encoder, defaults.max_task_retries);
  encode_value(encoder, address.caller_options);
}

std::shared_ptr<ActorClient> decode_handle(Decoder& decoder, CallDefaults* defaults) {
  if (!decoder.read_bool()) return nullptr;
  ActorAddress address;
  decode_value(decoder, address.actor);
  decode_value(decoder, address.worker);
  decode_value(decoder, address.node);
  decode_value(decoder, address.class_name);
  decode_value(decoder, address.unix_path);
  decode_value(decoder, address.node_address);
  decode_value(decoder, address.incarnation);
  decode_value(decoder, address.pid);
  decode_value(decoder, address.shared);
  decode_value(decoder, defaults->timeout);
  decode_value(decoder, defaults->max_task_retries);
  decode_value(decoder, address.caller_options);
  if (defaults->timeout.count() <= 0) decoder.fail("an actor handle without a time for its calls");
  if (!decode_caller_options(address.caller_options).ok())
    decoder.fail("an actor handle with malformed options");
  if (!decoder.context()) decoder.fail("an actor handle outside of a running program");
  if (!decoder.ok()) return nullptr;
  const auto& context = static_cast<const ObjectContext&>(*decoder.context());
  return context.references.client_for(address);
}

namespace {

ObjectStatePtr empty_handle() {
  return ObjectState::failed(
      nullptr, invalid_argument("a call through an ActorHandle that refers to no actor"));
}

}  // namespace

ActorId actor_of(const ActorClient& client) { return client.id(); }
NodeId node_of(const ActorClient& client) { return client.worker()->node(); }
std::int32_t pid_of(const ActorClient& client) { return client.worker()->pid(); }

ObjectStatePtr start_call(ActorClient* client, std::type_index type, const MethodKey& method,
                          Encoder& arguments, std::chrono::milliseconds timeout,
                          std::int32_t retries) {
  if (!client) return empty_handle();
  return client->call(type, method, arguments, timeout, retries);
}

OpenStream open_stream(ActorClient* client, std::type_index type, const MethodKey& method,
                       Encoder& arguments, std::chrono::milliseconds timeout,
                       std::uint32_t window) {
  if (!client) return {nullptr, empty_handle()};
  if (window == 0)
    return {nullptr,
            ObjectState::failed(
                nullptr, invalid_argument("a stream_window of 0: no value could ever come"))};
  auto stream = std::make_shared<StreamState>(client->context(), window);
  ObjectStatePtr result = client->call_stream(type, method, arguments, timeout, stream);
  return {std::move(stream), std::move(result)};
}

}  // namespace runtime::handle_detail

namespace runtime::group_detail {

std::vector<ObjectStatePtr> start_calls(const std::vector<ActorClient*>& clients,
                                        std::type_index type, const MethodKey& method,
                                        Encoder& arguments, std::chrono::milliseconds timeout,
                                        std::int32_t retries) {
  return ActorClient::call_all(clients, type, method, arguments, timeout, retries);
}

ObjectStatePtr wrong_split(std::size_t group_size) {
  return ObjectState::failed(nullptr,
                             invalid_argument("split() needs one part for each of the group's " +
                                              std::to_string(group_size) + " members"));
}

}  // namespace runtime::group_detail
