#include "runtime/control/schema_values.h"

#include <algorithm>
#include <cmath>

namespace runtime::schema_values {

namespace {

void store(const FileSpec& from, schema::FileSpec::Builder to) {
  to.setPath(text(from.path));
  to.setBytes(from.bytes);
  to.setHash(text(from.hash));
}

FileSpec load(schema::FileSpec::Reader from) {
  return {load_text(from.getPath()), from.getBytes(), load_text(from.getHash())};
}

}  // namespace

std::string load_text(capnp::Text::Reader reader) {
  return std::string(reader.begin(), reader.size());
}

std::string load_bytes(capnp::Data::Reader reader) {
  return std::string(reinterpret_cast<const char*>(reader.begin()), reader.size());
}

void store(const ResourceMap& from, capnp::List<schema::Amount>::Builder to) {
  unsigned i = 0;
  for (const auto& [name, value] : from) {
    to[i].setName(text(name));
    to[i++].setValue(value);
  }
}

ResourceMap load(capnp::List<schema::Amount>::Reader from) {
  ResourceMap to;
  for (auto amount : from) {
    KJ_REQUIRE(std::isfinite(amount.getValue()), "a resource is a finite number");
    to[load_text(amount.getName())] = amount.getValue();
  }
  return to;
}

void store(const std::vector<std::uint32_t>& from, capnp::List<std::uint32_t>::Builder to) {
  for (unsigned i = 0; i < from.size(); ++i) to.set(i, from[i]);
}

std::vector<std::uint32_t> load(capnp::List<std::uint32_t>::Reader from) {
  std::vector<std::uint32_t> to;
  to.reserve(from.size());
  for (std::uint32_t number : from) to.push_back(number);
  return to;
}

void store(const Environment& from, capnp::List<schema::Pair>::Builder to) {
  unsigned i = 0;
  for (const auto& [key, value] : from) {
    to[i].setKey(text(key));
    to[i++].setValue(text(value));
  }
}

Environment load(capnp::List<schema::Pair>::Reader from) {
  Environment to;
  for (auto pair : from) to[load_text(pair.getKey())] = load_text(pair.getValue());
  return to;
}

void store(const std::vector<std::string>& from, capnp::List<capnp::Text>::Builder to) {
  for (unsigned i = 0; i < from.size(); ++i) to.set(i, text(from[i]));
}

std::vector<std::string> load(capnp::List<capnp::Text>::Reader from) {
  std::vector<std::string> to;
  to.reserve(from.size());
  for (auto item : from) to.push_back(load_text(item));
  return to;
}

void store(const DriverInfo& from, schema::DriverInfo::Builder to) {
  store(from.executable, to.initExecutable());
  auto libraries = to.initLibraries(count(from.libraries));
  for (unsigned i = 0; i < from.libraries.size(); ++i) store(from.libraries[i], libraries[i]);
  store(from.argv, to.initArgv(count(from.argv)));
  to.setPid(from.pid);
  to.setWarmWorkers(from.warm_workers);
  to.setWorkingDir(text(from.working_dir));
  to.setNameSpace(text(from.name_space));
}

DriverInfo load(schema::DriverInfo::Reader from) {
  DriverInfo to;
  to.executable = load(from.getExecutable());
  for (auto library : from.getLibraries()) to.libraries.push_back(load(library));
  to.argv = load(from.getArgv());
  to.pid = from.getPid();
  to.warm_workers = from.getWarmWorkers();
  to.working_dir = load_text(from.getWorkingDir());
  to.name_space = load_text(from.getNameSpace());
  return to;
}

void store(const ActorSpec& from, schema::ActorSpec::Builder to) {
  to.setActor(data(from.actor));
  to.setClassName(text(from.class_name));
  to.setName(text(from.name));
  store(from.resources, to.initResources(count(from.resources)));
  store(from.env, to.initEnv(count(from.env)));
  to.setThreads(from.threads);
  if (from.bundle) {
    to.setGroup(data(from.bundle->group));
    to.setBundle(from.bundle->index);
  }
  if (from.node) to.setNode(data(*from.node));
  store(from.labels, to.initLabels(count(from.labels)));
  to.setConstructorArgs(data(from.constructor_args));
  to.setNameSpace(text(from.name_space));
  to.setGetIfExists(from.get_if_exists);
  to.setDetached(from.detached);
  to.setOutlivesJob(from.outlives_job);
  to.setMaxRestarts(from.max_restarts);
  to.setCreateTimeoutMs(
      static_cast<std::uint64_t>(std::max<std::int64_t>(0, from.create_timeout.count())));
  if (!from.owner.is_none()) to.setOwner(data(from.owner));
  to.setOwnerIncarnation(from.owner_incarnation);
  to.setLogPrefix(text(from.log_prefix));
  to.setHasSavedState(from.saved_state.has_value());
  if (from.saved_state) to.setSavedState(data(*from.saved_state));
  to.setCallerOptions(data(from.caller_options));
  to.setShared(from.shared);
  to.setNodeIsPreferred(from.node_is_preferred);
  to.setScheduling(static_cast<std::uint16_t>(from.scheduling));
}

ActorSpec load(schema::ActorSpec::Reader from) {
  ActorSpec to;
  to.actor = load_id<ActorId>(from.getActor());
  to.class_name = load_text(from.getClassName());
  to.name = load_text(from.getName());
  to.resources = load(from.getResources());
  to.env = load(from.getEnv());
  to.threads = from.getThreads();
  if (from.getGroup().size() > 0)
    to.bundle = BundleSlot{load_id<GroupId>(from.getGroup()), from.getBundle()};
  if (from.getNode().size() > 0) to.node = load_id<NodeId>(from.getNode());
  to.labels = load(from.getLabels());
  to.constructor_args = load_bytes(from.getConstructorArgs());
  to.name_space = load_text(from.getNameSpace());
  to.get_if_exists = from.getGetIfExists();
  to.detached = from.getDetached();
  to.outlives_job = from.getOutlivesJob();
  to.max_restarts = from.getMaxRestarts();
  constexpr std::uint64_t kCreateTimeoutMaxMs = 7ull * 24 * 3600 * 1000;
  if (std::uint64_t ms = from.getCreateTimeoutMs(); ms > 0)
    to.create_timeout = std::chrono::milliseconds(std::min(ms, kCreateTimeoutMaxMs));
  to.owner = load_id<ActorId>(from.getOwner());
  to.owner_incarnation = from.getOwnerIncarnation();
  to.log_prefix = load_text(from.getLogPrefix());
  if (from.getHasSavedState()) to.saved_state = load_bytes(from.getSavedState());
  to.caller_options = load_bytes(from.getCallerOptions());
  to.shared = from.getShared();
  to.node_is_preferred = from.getNodeIsPreferred();
  KJ_REQUIRE(from.getScheduling() <= static_cast<std::uint16_t>(ActorScheduling::kSpread),
             "an unknown way to place an actor");
  to.scheduling = static_cast<ActorScheduling>(from.getScheduling());
  return to;
}

void store(const ActorAddress& from, schema::ActorAddress::Builder to) {
  to.setActor(data(from.actor));
  to.setWorker(data(from.worker));
  to.setNode(data(from.node));
  to.setClassName(text(from.class_name));
  to.setUnixPath(text(from.unix_path));
  to.setNodeAddress(text(from.node_address));
  to.setIncarnation(from.incarnation);
  to.setShared(from.shared);
  to.setPid(from.pid);
  to.setCallerOptions(data(from.caller_options));
}

ActorAddress load(schema::ActorAddress::Reader from) {
  ActorAddress to;
  to.actor = load_id<ActorId>(from.getActor());
  to.worker = load_id<WorkerId>(from.getWorker());
  to.node = load_id<NodeId>(from.getNode());
  to.class_name = load_text(from.getClassName());
  to.unix_path = load_text(from.getUnixPath());
  to.node_address = load_text(from.getNodeAddress());
  to.incarnation = from.getIncarnation();
  to.shared = from.getShared();
  to.pid = from.getPid();
  to.caller_options = load_bytes(from.getCallerOptions());
  return to;
}

void store(const DeathCause& from, schema::DeathCause::Builder to) {
  to.setText(text(from.text));
  to.setPid(from.pid);
  to.setExitCode(from.exit_code);
  to.setSignal(from.signal);
  to.setOutputTail(text(from.output_tail));
}

DeathCause load(schema::DeathCause::Reader from) {
  return {load_text(from.getText()), from.getPid(), from.getExitCode(), from.getSignal(),
          load_text(from.getOutputTail())};
}

void store(const ActorState& from, schema::ActorState::Builder to) {
  to.setActor(data(from.actor));
  to.setJob(data(from.job));
  to.setNode(data(from.node));
  to.setWorker(data(from.worker));
  to.setClassName(text(from.class_name));
  to.setName(text(from.name));
  to.setPhase(static_cast<std::uint16_t>(from.phase));
  to.setPendingReason(text(from.pending_reason));
  to.setPid(from.pid);
  store(from.resources, to.initResources(count(from.resources)));
  store(from.death, to.initDeath());
  to.setRestarts(from.restarts);
  to.setIncarnation(from.incarnation);
  to.setNameSpace(text(from.name_space));
  to.setDetached(from.detached);
  to.setVersion(from.version);
  store(from.gpus, to.initGpus(count(from.gpus)));
  to.setMoves(from.moves);
}

ActorState load(schema::ActorState::Reader from) {
  ActorState to;
  to.actor = load_id<ActorId>(from.getActor());
  to.job = load_id<JobId>(from.getJob());
  to.node = load_id<NodeId>(from.getNode());
  to.worker = load_id<WorkerId>(from.getWorker());
  to.class_name = load_text(from.getClassName());
  to.name = load_text(from.getName());
  to.phase = static_cast<ActorPhase>(std::min<std::uint16_t>(from.getPhase(), 3));
  to.pending_reason = load_text(from.getPendingReason());
  to.pid = from.getPid();
  to.resources = load(from.getResources());
  to.death = load(from.getDeath());
  to.restarts = from.getRestarts();
  to.incarnation = from.getIncarnation();
  to.name_space = load_text(from.getNameSpace());
  to.detached = from.getDetached();
  to.version = from.getVersion();
  to.gpus = load(from.getGpus());
  to.moves = from.getMoves();
  return to;
}

void store(const GroupSpec& from, schema::GroupSpec::Builder to) {
  to.setGroup(data(from.group));
  to.setName(text(from.name));
  to.setStrategy(static_cast<std::uint16_t>(from.strategy));
  auto bundles = to.initBundles(count(from.bundles));
  for (unsigned i = 0; i < from.bundles.size(); ++i) {
    store(from.bundles[i], bundles[i].initResources(count(from.bundles[i])));
    if (i < from.bundle_labels.size())
      store(from.bundle_labels[i], bundles[i].initLabels(count(from.bundle_labels[i])));
  }
  to.setNameSpace(text(from.name_space));
  to.setDetached(from.detached);
}

GroupSpec load(schema::GroupSpec::Reader from) {
  GroupSpec to;
  to.group = load_id<GroupId>(from.getGroup());
  to.name = load_text(from.getName());
  KJ_REQUIRE(from.getStrategy() <= 3, "an unknown placement strategy");
  to.strategy = static_cast<GroupStrategy>(from.getStrategy());
  for (auto bundle : from.getBundles()) {
    to.bundles.push_back(load(bundle.getResources()));
    if (bundle.getLabels().size() == 0) continue;
    to.bundle_labels.resize(to.bundles.size());
    to.bundle_labels.back() = load(bundle.getLabels());
  }
  to.name_space = load_text(from.getNameSpace());
  to.detached = from.getDetached();
  return to;
}

void store(const GroupState& from, schema::GroupState::Builder to) {
  store(from.spec, to.initSpec());
  to.setJob(data(from.job));
  to.setPlaced(from.placed);
  to.setPendingReason(text(from.pending_reason));
  auto nodes = to.initNodes(count(from.nodes));
  for (unsigned i = 0; i < from.nodes.size(); ++i) nodes.set(i, data(from.nodes[i]));
  auto gpus = to.initGpus(count(from.gpus));
  for (unsigned i = 0; i < from.gpus.size(); ++i)
    store(from.gpus[i], gpus.init(i, count(from.gpus[i])));
  to.setPlacements(from.placements);
}

GroupState load(schema::GroupState::Reader from) {
  GroupState to;
  to.spec = load(from.getSpec());
  to.job = load_id<JobId>(from.getJob());
  to.placed = from.getPlaced();
  to.pending_reason = load_text(from.getPendingReason());
  for (auto node : from.getNodes()) to.nodes.push_back(load_id<NodeId>(node));
  for (auto gpus : from.getGpus()) to.gpus.push_back(load(gpus));
  to.placements = from.getPlacements();
  return to;
}

void store(const NodeInfo& from, schema::NodeInfo::Builder to) {
  to.setNode(data(from.node));
  to.setAddress(text(from.address));
  to.setHostname(text(from.hostname));
  to.setPid(from.pid);
  to.setIsHead(from.is_head);
  store(from.resources, to.initResources(count(from.resources)));
  store(from.available, to.initAvailable(count(from.available)));
  store(from.labels, to.initLabels(count(from.labels)));
  to.setAlive(from.alive);
  to.setJoinedAs(from.joined_as);
  if (from.drain) store(*from.drain, to.initDrain());
}

NodeInfo load(schema::NodeInfo::Reader from) {
  NodeInfo to;
  to.node = load_id<NodeId>(from.getNode());
  to.address = load_text(from.getAddress());
  to.hostname = load_text(from.getHostname());
  to.pid = from.getPid();
  to.is_head = from.getIsHead();
  to.resources = load(from.getResources());
  to.available = load(from.getAvailable());
  to.labels = load(from.getLabels());
  to.alive = from.getAlive();
  to.joined_as = from.getJoinedAs();
  if (from.hasDrain()) to.drain = load(from.getDrain());
  return to;
}

void store(const NodeDrain& from, schema::NodeDrain::Builder to) {
  to.setReason(text(from.reason));
  to.setLeftMs(static_cast<std::uint64_t>(std::max<std::int64_t>(0, from.left.count())));
  to.setDeadlineMs(static_cast<std::uint64_t>(std::max<std::int64_t>(0, from.deadline.count())));
  to.setVersion(from.version);
  to.setWaitsFor(text(from.waits_for));
}

NodeDrain load(schema::NodeDrain::Reader from) {
  return {load_text(from.getReason()), load_milliseconds(from.getLeftMs()),
          load_milliseconds(from.getDeadlineMs()), from.getVersion(),
          load_text(from.getWaitsFor())};
}

std::chrono::milliseconds load_milliseconds(std::uint64_t from) {
  constexpr std::uint64_t kMostMs = 1ull << 50;
  return std::chrono::milliseconds(std::min(from, kMostMs));
}

void store(const TokenState& from, schema::TokenState::Builder to) {
  to.setToken(data(from.token));
  to.setVersion(from.version);
  auto list = to.initEarlier(count(from.earlier));
  for (unsigned i = 0; i < list.size(); ++i) {
    const EarlierToken& earlier = from.earlier[i];
    const auto positive = [](std::chrono::milliseconds time) {
      return static_cast<std::uint64_t>(std::max<std::int64_t>(0, time.count()));
    };
    list[i].setToken(data(earlier.token));
    list[i].setLeftMs(positive(earlier.left));
    list[i].setUntilMs(positive(earlier.until));
  }
}

TokenState load(schema::TokenState::Reader from) {
  TokenState to{load_bytes(from.getToken()), from.getVersion()};
  for (auto earlier : from.getEarlier())
    to.earlier.push_back({load_bytes(earlier.getToken()), load_milliseconds(earlier.getLeftMs()),
                          load_milliseconds(earlier.getUntilMs())});
  return to;
}

void store(const NodeDeparture& from, schema::NodeDeparture::Builder to) {
  store(from.node, to.initNode());
  to.setWhy(text(from.why));
  to.setDrained(from.drained);
  to.setVersion(from.version);
}

NodeDeparture load(schema::NodeDeparture::Reader from) {
  return {load(from.getNode()), load_text(from.getWhy()), from.getDrained(), from.getVersion()};
}

void store(const JobInfo& from, schema::JobInfo::Builder to) {
  to.setJob(data(from.job));
  to.setNode(data(from.node));
  to.setCommand(text(from.command));
  to.setPid(from.pid);
  to.setRunning(from.running);
  to.setSubmitted(from.submitted);
  to.setUser(text(from.user));
  to.setStartedMs(from.started_ms);
  to.setEndedMs(from.ended_ms);
  to.setOutcome(static_cast<std::uint16_t>(from.outcome));
  if (from.end != DeathCause{}) store(from.end, to.initEnd());
  if (!from.place.is_none()) to.setPlace(data(from.place));
}

JobInfo load(schema::JobInfo::Reader from) {
  JobInfo to;
  to.job = load_id<JobId>(from.getJob());
  to.node = load_id<NodeId>(from.getNode());
  to.command = load_text(from.getCommand());
  to.pid = from.getPid();
  to.running = from.getRunning();
  to.submitted = from.getSubmitted();
  to.user = load_text(from.getUser());
  to.started_ms = from.getStartedMs();
  to.ended_ms = from.getEndedMs();
  to.outcome = load_outcome(from.getOutcome());
  if (from.hasEnd()) to.end = load(from.getEnd());
  to.place = load_id<GroupId>(from.getPlace());
  return to;
}

JobOutcome load_outcome(std::uint16_t from) {
  KJ_REQUIRE(from <= static_cast<std::uint16_t>(JobOutcome::kStopped),
             "an unknown outcome of a job");
  return static_cast<JobOutcome>(from);
}

void store(const JobFile& from, schema::JobFile::Builder to) {
  to.setPath(text(from.path));
  to.setKind(static_cast<std::uint16_t>(from.kind));
  to.setExecutable(from.executable);
  to.setBytes(from.bytes);
  to.setHash(text(from.hash));
  to.setTarget(text(from.target));
}

JobFile load(schema::JobFile::Reader from) {
  KJ_REQUIRE(from.getKind() <= static_cast<std::uint16_t>(JobFile::Kind::kLink),
             "an unknown kind of file");
  return {load_text(from.getPath()), static_cast<JobFile::Kind>(from.getKind()),
          from.getExecutable(),      from.getBytes(),
          load_text(from.getHash()), load_text(from.getTarget())};
}

void store(const ClusterState& from, schema::ClusterState::Builder to) {
  to.setCluster(data(from.cluster));
  store_list(from.nodes, to.initNodes(count(from.nodes)));
  store_list(from.actors, to.initActors(count(from.actors)));
  store_list(from.groups, to.initGroups(count(from.groups)));
  store_list(from.jobs, to.initJobs(count(from.jobs)));
}

ClusterState load(schema::ClusterState::Reader from) {
  ClusterState to;
  to.cluster = load_id<ClusterId>(from.getCluster());
  to.nodes = load_list<NodeInfo>(from.getNodes());
  to.actors = load_list<ActorState>(from.getActors());
  to.groups = load_list<GroupState>(from.getGroups());
  to.jobs = load_list<JobInfo>(from.getJobs());
  return to;
}

void store(const LogLines& from, schema::LogLines::Builder to) {
  to.setJob(data(from.job));
  to.setWorker(data(from.worker));
  to.setNode(data(from.node));
  to.setClassName(text(from.class_name));
  to.setPid(from.pid);
  to.setIsStderr(from.is_stderr);
  store(from.lines, to.initLines(count(from.lines)));
}

LogLines load(schema::LogLines::Reader from) {
  LogLines to;
  to.job = load_id<JobId>(from.getJob());
  to.worker = load_id<WorkerId>(from.getWorker());
  to.node = load_id<NodeId>(from.getNode());
  to.class_name = load_text(from.getClassName());
  to.pid = from.getPid();
  to.is_stderr = from.getIsStderr();
  to.lines = load(from.getLines());
  return to;
}

}  // namespace runtime::schema_values
