#include "runtime/node/node_options.h"

#include <unistd.h>

#include "runtime/process/machine.h"

namespace runtime {

NodePortsOptions ports_options(const NodeOptions& node) {
  NodePortsOptions ports;
  ports.bind = node.bind;
  ports.advertise_host = node.advertise_host;
  ports.aliases = node.aliases;
  ports.plain = node.plain;
  ports.socket = node.session_dir / "node.sock";
  return ports;
}

ObjectStoreOptions store_options(const NodeOptions& node, const NodeSetting& setting) {
  ObjectStoreOptions store;
  store.credentials = setting.credentials;
  store.endpoint = setting.address;
  store.capacity_bytes = node.object_store_bytes;
  store.spill = node.spill;
  return store;
}

WorkerPoolOptions pool_options(const NodeOptions& node, const NodeSetting& setting) {
  WorkerPoolOptions pool;
  pool.logs = setting.logs;
  pool.cluster = node.cluster;
  pool.node = node.node;
  pool.node_address = setting.address;
  pool.session_dir = node.session_dir.string();
  pool.gpu_names = setting.gpus;
  return pool;
}

NodeJobsOptions jobs_options(const NodeOptions& node, const NodeSetting& setting,
                             const std::filesystem::path& cache) {
  NodeJobsOptions jobs;
  jobs.node = node.node;
  jobs.credentials = setting.credentials;
  jobs.job_user = node.job_user;
  jobs.user_jobs_max = node.users.jobs;
  jobs.gpu_names = setting.gpus;
  jobs.runner.logs = setting.logs;
  jobs.runner.node_address = setting.address;
  jobs.runner.session_dir = node.session_dir.string();
  jobs.runner.token = setting.credentials.token;
  jobs.runner.token_file = (node.session_dir.parent_path() / "token").string();
  jobs.files.cache = cache / "files";
  jobs.files.programs = cache / "programs";
  jobs.files.folders = cache / "jobs" / node.node.hex();
  if (node.job_size_limit != 0) jobs.files.job_bytes_max = node.job_size_limit;
  return jobs;
}

DepartureOptions departure_options(const NodeOptions& node, const NodeSetting& setting) {
  return {node.node, setting.address, node.preemption, node.drain_time};
}

HeadConnectionOptions head_options(const NodeOptions& node, const NodeSetting& setting) {
  HeadConnectionOptions head;
  head.head = node.head;
  head.credentials = setting.credentials;
  head.link = node.link;
  if (!node.is_head) return head;
  HeadChildOptions& child = head.child.emplace();
  child.program = node.program;
  child.cluster = node.cluster;
  child.node = node.node;
  child.session_dir = node.session_dir;
  child.socket = node.session_dir / "head.sock";
  child.journal = node.journal;
  child.durable = node.durable;
  child.token = setting.credentials.token;
  child.logs = setting.logs;
  return head;
}

AutoscalerProcessOptions autoscaler_options(const NodeOptions& node, const NodeSetting& setting) {
  AutoscalerProcessOptions autoscaler;
  autoscaler.program = node.program;
  autoscaler.arguments = node.autoscaler;
  autoscaler.address = setting.address;
  autoscaler.session_dir = node.session_dir;
  autoscaler.logs = setting.logs;
  autoscaler.stop_time = node.autoscaler_stop;
  return autoscaler;
}

NodeInfo node_info(const NodeOptions& node, const NodeSetting& setting) {
  NodeInfo info;
  info.node = node.node;
  info.address = setting.address;
  info.hostname = machine_hostname();
  info.pid = ::getpid();
  info.is_head = node.is_head;
  info.resources = node.resources;
  info.labels = node.labels;
  return info;
}

}  // namespace runtime
