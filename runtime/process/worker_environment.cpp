#include "runtime/process/worker_environment.h"

#include <filesystem>

#include "runtime/core/environment.h"
#include "runtime/process/session.h"

namespace runtime {

namespace {

constexpr const char* kWorker = "STARLING_WORKER";
constexpr const char* kNode = "STARLING_NODE";
constexpr const char* kCluster = "STARLING_CLUSTER";
constexpr const char* kJob = "STARLING_JOB";
constexpr const char* kSessionDir = "STARLING_SESSION_DIR";
constexpr const char* kNodeAddress = "STARLING_NODE_ADDRESS";
// Of the id, in the socket file's name: a Unix socket's path may have 107 bytes, and users choose
// the folder.
constexpr std::size_t kSocketDigits = 16;

Result<std::string> variable(const char* name) {
  const char* value = environment_variable(name);
  if (!value || !*value) {
    return invalid_argument(
        std::string(name) +
        " is not set: only a node starts worker processes (is STARLING_WORKER set by hand?)");
  }
  return std::string(value);
}

template <class IdType>
Status read_id(const char* name, IdType& id) {
  auto text = variable(name);
  if (!text.ok()) return text.status();
  auto parsed = IdType::from_hex(*text);
  if (!parsed.ok()) return parsed.status().with_context(name);
  id = *parsed;
  return {};
}

}  // namespace

std::string WorkerEnvironment::socket_path() const {
  return session_dir + "/w-" + worker.hex().substr(0, kSocketDigits) + ".sock";
}

bool is_worker_process() {
  const char* value = environment_variable(kWorker);
  return value && *value;
}

Result<WorkerEnvironment> read_worker_environment() {
  WorkerEnvironment environment;
  if (Status status = read_id(kWorker, environment.worker); !status.ok()) return status;
  if (Status status = read_id(kNode, environment.node); !status.ok()) return status;
  if (Status status = read_id(kCluster, environment.cluster); !status.ok()) return status;
  if (Status status = read_id(kJob, environment.job); !status.ok()) return status;
  auto session_dir = variable(kSessionDir);
  if (!session_dir.ok()) return session_dir.status();
  environment.session_dir = *session_dir;
  auto node_address = variable(kNodeAddress);
  if (!node_address.ok()) return node_address.status();
  environment.node_address = *node_address;
  return environment;
}

std::vector<std::string> worker_variables(const WorkerEnvironment& environment) {
  auto line = [](const char* name, const std::string& value) {
    return std::string(name) + "=" + value;
  };
  std::vector<std::string> variables =
      token_variables(std::filesystem::path(environment.session_dir).parent_path() / "token");
  variables.insert(
      variables.end(),
      {line(kWorker, environment.worker.hex()), line(kNode, environment.node.hex()),
       line(kCluster, environment.cluster.hex()), line(kJob, environment.job.hex()),
       line(kSessionDir, environment.session_dir), line(kNodeAddress, environment.node_address)});
  return variables;
}

}  // namespace runtime
