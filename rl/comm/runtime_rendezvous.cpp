#include "rl/comm/runtime_rendezvous.h"

#include <utility>

#include "runtime/transport/endpoint.h"

namespace rl {
namespace {

using runtime::Result;

class RuntimeRendezvous : public Rendezvous {
 public:
  explicit RuntimeRendezvous(runtime::Runtime& runtime) : runtime_(runtime) {}

  runtime::Status put(const std::string& key, std::span<const std::uint8_t> value) override {
    return runtime_.kv().put(key, std::string(value.begin(), value.end()));
  }

  Result<std::vector<std::uint8_t>> get(const std::string& key,
                                        std::chrono::milliseconds wait) override {
    const Result<std::string> value =
        wait.count() > 0 ? runtime_.kv().get(key, wait) : runtime_.kv().try_get(key);
    if (!value.ok()) {
      return value.status().code() == runtime::ErrorCode::kNotFound
                 ? runtime::deadline_exceeded("no rank has put '" + key + "'")
                 : value.status();
    }
    return std::vector<std::uint8_t>(value->begin(), value->end());
  }

  Result<std::int64_t> add(const std::string& key, std::int64_t amount) override {
    return runtime_.kv().add(key, amount);
  }

 private:
  runtime::Runtime& runtime_;
};

}  // namespace

std::shared_ptr<Rendezvous> make_runtime_rendezvous(runtime::Runtime& runtime) {
  return std::make_shared<RuntimeRendezvous>(runtime);
}

Result<std::string> host_of_node(const std::string& address) {
  Result<runtime::Endpoint> endpoint = runtime::Endpoint::parse(address);
  if (!endpoint.ok()) return endpoint.status();
  return std::move(endpoint->host);
}

Result<std::string> node_host(runtime::Runtime& runtime) {
  const Result<runtime::ClusterState> state = runtime.cluster().state();
  if (!state.ok()) return state.status();
  for (const runtime::NodeInfo& node : state->nodes) {
    if (node.node == runtime.cluster().node_id()) return host_of_node(node.address);
  }
  return runtime::internal_error("this process's node is not in the cluster");
}

}  // namespace rl
