#include "runtime/control/control_codec.h"

#include <algorithm>
#include <optional>

#include "runtime/control/demand_codec.h"
#include "runtime/control/object_control_codec.h"
#include "runtime/control/observe_codec.h"
#include "runtime/control/schema_values.h"
#include "runtime/transport/capnp_codec.h"

namespace runtime {

namespace {

using schema_values::data;
using schema_values::load;
using schema_values::load_bytes;
using schema_values::load_id;
using schema_values::load_list;
using schema_values::load_milliseconds;
using schema_values::load_text;
using schema_values::store;
using schema_values::store_ids;
using schema_values::store_list;
using schema_values::text;

/// Reads a message's root with `read`, which returns a Result.
template <class Root, class T, class Read>
Result<T> read_message(const Buffer& meta, const char* what, Read read) {
  std::optional<Result<T>> result;
  Status status = decode<Root>(meta, what, [&](typename Root::Reader root) {
    result.emplace(read(root));
    return Status();
  });
  if (!status.ok()) return status;
  return std::move(*result);
}

void store_instances(const std::vector<control::ActorInstance>& from,
                     capnp::List<schema::ActorInstance>::Builder to) {
  for (unsigned i = 0; i < to.size(); ++i) {
    to[i].setActor(data(from[i].actor));
    to[i].setIncarnation(from[i].incarnation);
  }
}

std::vector<control::ActorInstance> load_instances(
    capnp::List<schema::ActorInstance>::Reader from) {
  std::vector<control::ActorInstance> to;
  to.reserve(from.size());
  for (auto instance : from)
    to.push_back({load_id<ActorId>(instance.getActor()), instance.getIncarnation()});
  return to;
}

template <class IdType>
std::vector<IdType> load_ids(capnp::List<capnp::Data>::Reader from) {
  std::vector<IdType> to;
  to.reserve(from.size());
  for (auto id : from) to.push_back(load_id<IdType>(id));
  return to;
}

control::Reserve load_reserve(schema::ControlRequest::Reserve::Reader from) {
  control::Reserve to;
  to.reset = from.getReset();
  to.release = load_ids<GroupId>(from.getRelease());
  for (auto holding : from.getPrepare())
    to.prepare.push_back({load_id<GroupId>(holding.getGroup()), load(holding.getResources())});
  to.commit = load_ids<GroupId>(from.getCommit());
  return to;
}

control::Refusals load_refusals(capnp::List<schema::Refusal>::Reader from) {
  control::Refusals to;
  for (auto refusal : from)
    to.refused.push_back({load_id<GroupId>(refusal.getGroup()), load_text(refusal.getReason())});
  return to;
}

/// Stores one request's body; an overload per kind.
struct BodyWriter {
  schema::ControlRequest::Builder to;

  void operator()(const control::Heartbeat&) { to.setHeartbeat(); }
  void operator()(const control::RegisterDriver& body) {
    store(body.info, to.initRegisterDriver().initInfo());
  }
  void operator()(const control::CreateActor& body) {
    store(body.spec, to.initCreateActor().initSpec());
  }
  void operator()(const control::ResolveActor& body) {
    auto resolve = to.initResolveActor();
    resolve.setActor(data(body.actor));
    resolve.setName(text(body.name));
    resolve.setNameSpace(text(body.name_space));
  }
  void operator()(const control::QueryActor& body) {
    auto query = to.initQueryActor();
    query.setActor(data(body.actor));
    query.setIncarnation(body.incarnation);
  }
  void operator()(const control::KillActor& body) {
    auto kill = to.initKillActor();
    kill.setActor(data(body.actor));
    kill.setMayRestart(body.may_restart);
  }
  void operator()(const control::KvPut& body) {
    auto put = to.initKvPut();
    put.setKey(text(body.key));
    put.setValue(data(body.value));
  }
  void operator()(const control::KvGet& body) {
    auto get = to.initKvGet();
    get.setKey(text(body.key));
    get.setWait(body.wait);
  }
  void operator()(const control::KvAdd& body) {
    auto add = to.initKvAdd();
    add.setKey(text(body.key));
    add.setAmount(body.amount);
  }
  void operator()(const control::KvDelete& body) { to.initKvDelete().setKey(text(body.key)); }
  void operator()(const control::QueryCluster&) { to.setQueryCluster(); }
  void operator()(const control::CreateGroup& body) {
    store(body.spec, to.initCreateGroup().initSpec());
  }
  void operator()(const control::RemoveGroup& body) {
    to.initRemoveGroup().setGroup(data(body.group));
  }
  void operator()(const control::SubmitJob& body) {
    auto submit = to.initSubmitJob();
    store(body.argv, submit.initArgv(static_cast<unsigned>(body.argv.size())));
    submit.setWorkingDir(text(body.working_dir));
    store(body.env, submit.initEnv(static_cast<unsigned>(body.env.size())));
    submit.setDetached(body.detached);
    store_list(body.files, submit.initFiles(static_cast<unsigned>(body.files.size())));
    if (!body.program.path.empty()) store(body.program, submit.initProgram());
    if (!body.job.is_none()) submit.setJob(data(body.job));
    if (!body.place.is_none()) submit.setPlace(data(body.place));
  }
  void operator()(const control::QueueJob& body) {
    auto queue = to.initQueueJob();
    queue.setJob(data(body.job));
    queue.setPlace(data(body.place));
    store(body.argv, queue.initArgv(static_cast<unsigned>(body.argv.size())));
    store(body.resources, queue.initResources(static_cast<unsigned>(body.resources.size())));
    store(body.labels, queue.initLabels(static_cast<unsigned>(body.labels.size())));
  }
  void operator()(const control::CancelJob& body) { to.initCancelJob().setJob(data(body.job)); }
  void operator()(const control::ReadLog& body) {
    auto read = to.initReadLog();
    read.setName(text(body.name));
    read.setOffset(body.offset);
    read.setFile(body.file);
  }
  void operator()(const control::StopNode&) { to.setStopNode(); }
  void operator()(const control::RegisterNode& body) {
    auto registration = to.initRegisterNode();
    store(body.info, registration.initInfo());
    registration.setReturns(body.returns);
    if (!body.replaces.is_none()) registration.setReplaces(data(body.replaces));
    store_instances(body.actors,
                    registration.initActors(static_cast<unsigned>(body.actors.size())));
    auto jobs = registration.initJobs(static_cast<unsigned>(body.jobs.size()));
    for (unsigned i = 0; i < jobs.size(); ++i) jobs.set(i, data(body.jobs[i]));
  }
  void operator()(const control::StartJob& body) {
    auto start = to.initStartJob();
    store(body.info, start.initInfo());
    store(body.driver, start.initDriver());
  }
  void operator()(const control::EndJob& body) {
    auto end = to.initEndJob();
    end.setJob(data(body.job));
    end.setOutcome(static_cast<std::uint16_t>(body.outcome));
    store(body.cause, end.initCause());
    end.setEndedMs(body.ended_ms);
    end.setGoesOn(body.goes_on);
    end.setFilesNeeded(body.files_needed);
  }
  void operator()(const control::ActorExited& body) {
    auto exited = to.initActorExited();
    exited.setActor(data(body.actor));
    exited.setIncarnation(body.incarnation);
    store(body.cause, exited.initCause());
  }
  void operator()(const control::StartActor& body) {
    auto start = to.initStartActor();
    store(body.spec, start.initSpec());
    start.setIncarnation(body.incarnation);
    store(body.driver, start.initDriver());
    start.setDriverNode(text(body.driver_node));
    store(body.gpus, start.initGpus(static_cast<unsigned>(body.gpus.size())));
  }
  void operator()(const control::StopActor& body) {
    auto stop = to.initStopActor();
    stop.setActor(data(body.actor));
    stop.setIncarnation(body.incarnation);
    stop.setGraceMs(static_cast<std::uint64_t>(std::max<std::int64_t>(0, body.grace.count())));
    stop.setDrain(body.drain);
    stop.setReason(text(body.reason));
  }
  void operator()(const control::BuildActor& body) {
    auto build = to.initBuildActor();
    store(body.spec, build.initSpec());
    build.setIncarnation(body.incarnation);
  }
  void operator()(const control::FetchFile& body) {
    auto fetch = to.initFetchFile();
    fetch.setHash(text(body.hash));
    fetch.setOffset(body.offset);
  }
  void operator()(const control::TerminateActor& body) {
    auto terminate = to.initTerminateActor();
    terminate.setActor(data(body.actor));
    terminate.setRestart(body.restart);
  }
  void operator()(const control::WatchActor& body) {
    auto watch = to.initWatchActor();
    watch.setActor(data(body.actor));
    watch.setVersion(body.version);
  }
  void operator()(const control::WatchNodes& body) { to.initWatchNodes().setVersion(body.version); }
  void operator()(const control::SaveState& body) {
    auto save = to.initSaveState();
    save.setActor(data(body.actor));
    save.setIncarnation(body.incarnation);
    save.setState(data(body.state));
  }
  void operator()(const control::DrainActor& body) {
    auto drain = to.initDrainActor();
    drain.setActor(data(body.actor));
    drain.setIncarnation(body.incarnation);
  }
  void operator()(const control::ParkActor& body) { to.initParkActor().setActor(data(body.actor)); }
  void operator()(const control::ConstructorAwaited& body) {
    auto awaited = to.initConstructorAwaited();
    awaited.setActor(data(body.actor));
    awaited.setName(text(body.name));
    awaited.setNameSpace(text(body.name_space));
    awaited.setNotice(data(body.notice));
  }
  void operator()(const control::ActorsExited& body) {
    auto exited = to.initActorsExited();
    auto actors = exited.initActors(static_cast<unsigned>(body.actors.size()));
    store_instances(body.actors, actors);
    store(body.cause, exited.initCause());
  }
  void operator()(const ObjectControl& body) { store(body, to.initObjects()); }
  void operator()(const control::QueryGroup& body) {
    auto query = to.initQueryGroup();
    query.setGroup(data(body.group));
    query.setName(text(body.name));
    query.setNameSpace(text(body.name_space));
    query.setWait(body.wait);
  }
  void operator()(const control::Reserve& body) {
    auto reserve = to.initReserve();
    reserve.setReset(body.reset);
    store_ids(body.release, reserve.initRelease(static_cast<unsigned>(body.release.size())));
    auto prepare = reserve.initPrepare(static_cast<unsigned>(body.prepare.size()));
    for (unsigned i = 0; i < prepare.size(); ++i) {
      prepare[i].setGroup(data(body.prepare[i].group));
      store(body.prepare[i].resources,
            prepare[i].initResources(static_cast<unsigned>(body.prepare[i].resources.size())));
    }
    store_ids(body.commit, reserve.initCommit(static_cast<unsigned>(body.commit.size())));
  }
  void operator()(const control::QueryJob& body) { to.initQueryJob().setJob(data(body.job)); }
  void operator()(const control::OfferFiles& body) {
    auto offer = to.initOfferFiles();
    offer.setBytes(body.bytes);
    offer.setCount(body.count);
    store(body.hashes, offer.initHashes(static_cast<unsigned>(body.hashes.size())));
  }
  void operator()(const control::StoreFile& body) {
    auto part = to.initStoreFile();
    part.setHash(text(body.hash));
    part.setBytes(body.bytes);
    part.setOffset(body.offset);
    part.setData(data(body.data));
  }
  void operator()(const control::DriverDone& body) {
    to.initDriverDone().setExitCode(body.exit_code);
  }
  void operator()(const control::DrainNode& body) {
    auto drain = to.initDrainNode();
    drain.setNode(data(body.node));
    drain.setTimeMs(static_cast<std::uint64_t>(std::max<std::int64_t>(0, body.time.count())));
    drain.setReason(text(body.reason));
    drain.setIfIdle(body.if_idle);
  }
  void operator()(const control::ChangeToken& body) {
    auto change = to.initChangeToken();
    change.setToken(data(body.token));
    change.setGraceMs(static_cast<std::uint64_t>(std::max<std::int64_t>(0, body.grace.count())));
  }
  void operator()(const control::ExpectToken& body) {
    to.initExpectToken().setToken(data(body.token));
  }
  void operator()(const control::TakeOver& body) { to.initTakeOver().setNode(data(body.node)); }
  void operator()(const control::Leave& body) { to.initLeave().setReason(text(body.reason)); }
  void operator()(const control::QueryDemand&) { to.setQueryDemand(); }
  void operator()(const ObserveControl& body) { store(body, to.initObserve()); }
};

// A deadline of zero or of centuries is a bug of the peer; a day bounds what it can make us keep.
constexpr std::uint64_t kTimeoutMaxMs = 24ull * 3600 * 1000;

std::chrono::milliseconds load_timeout(std::uint64_t from) {
  return std::chrono::milliseconds(std::min(from, kTimeoutMaxMs));
}

control::RegisterDriver load_body(schema::ControlRequest::RegisterDriver::Reader from) {
  return control::RegisterDriver{load(from.getInfo())};
}

control::CreateActor load_body(schema::ControlRequest::CreateActor::Reader from) {
  return control::CreateActor{load(from.getSpec())};
}

control::ResolveActor load_body(schema::ControlRequest::ResolveActor::Reader from) {
  return control::ResolveActor{load_id<ActorId>(from.getActor()), load_text(from.getName()),
                               load_text(from.getNameSpace())};
}

control::QueryActor load_body(schema::ControlRequest::QueryActor::Reader from) {
  return control::QueryActor{load_id<ActorId>(from.getActor()), from.getIncarnation()};
}

control::KillActor load_body(schema::ControlRequest::KillActor::Reader from) {
  return control::KillActor{load_id<ActorId>(from.getActor()), from.getMayRestart()};
}

control::KvPut load_body(schema::ControlRequest::KvPut::Reader from) {
  return control::KvPut{load_text(from.getKey()), load_bytes(from.getValue())};
}

control::KvGet load_body(schema::ControlRequest::KvGet::Reader from) {
  return control::KvGet{load_text(from.getKey()), from.getWait()};
}

control::KvAdd load_body(schema::ControlRequest::KvAdd::Reader from) {
  return control::KvAdd{load_text(from.getKey()), from.getAmount()};
}

control::KvDelete load_body(schema::ControlRequest::KvDelete::Reader from) {
  return control::KvDelete{load_text(from.getKey())};
}

control::CreateGroup load_body(schema::ControlRequest::CreateGroup::Reader from) {
  return control::CreateGroup{load(from.getSpec())};
}

control::RemoveGroup load_body(schema::ControlRequest::RemoveGroup::Reader from) {
  return control::RemoveGroup{load_id<GroupId>(from.getGroup())};
}

control::SubmitJob load_body(schema::ControlRequest::SubmitJob::Reader from) {
  control::SubmitJob submit{load(from.getArgv()), load_text(from.getWorkingDir()),
                            load(from.getEnv()), from.getDetached(),
                            load_list<JobFile>(from.getFiles())};
  if (from.hasProgram()) submit.program = load(from.getProgram());
  submit.job = load_id<JobId>(from.getJob());
  submit.place = load_id<GroupId>(from.getPlace());
  return submit;
}

control::QueueJob load_body(schema::ControlRequest::QueueJob::Reader from) {
  return control::QueueJob{load_id<JobId>(from.getJob()), load_id<GroupId>(from.getPlace()),
                           load(from.getArgv()), load(from.getResources()), load(from.getLabels())};
}

control::CancelJob load_body(schema::ControlRequest::CancelJob::Reader from) {
  return control::CancelJob{load_id<JobId>(from.getJob())};
}

control::ReadLog load_body(schema::ControlRequest::ReadLog::Reader from) {
  return control::ReadLog{load_text(from.getName()), from.getOffset(), from.getFile()};
}

control::RegisterNode load_body(schema::ControlRequest::RegisterNode::Reader from) {
  control::RegisterNode body{load(from.getInfo()),
                             from.getReturns(),
                             load_id<NodeId>(from.getReplaces()),
                             load_instances(from.getActors()),
                             {}};
  for (auto job : from.getJobs()) body.jobs.push_back(load_id<JobId>(job));
  return body;
}

control::StartJob load_body(schema::ControlRequest::StartJob::Reader from) {
  return control::StartJob{load(from.getInfo()), load(from.getDriver())};
}

control::EndJob load_body(schema::ControlRequest::EndJob::Reader from) {
  return control::EndJob{load_id<JobId>(from.getJob()),
                         schema_values::load_outcome(from.getOutcome()),
                         load(from.getCause()),
                         from.getEndedMs(),
                         from.getGoesOn(),
                         from.getFilesNeeded()};
}

control::ActorExited load_body(schema::ControlRequest::ActorExited::Reader from) {
  return control::ActorExited{load_id<ActorId>(from.getActor()), from.getIncarnation(),
                              load(from.getCause())};
}

control::StartActor load_body(schema::ControlRequest::StartActor::Reader from) {
  return control::StartActor{load(from.getSpec()), from.getIncarnation(), load(from.getDriver()),
                             load_text(from.getDriverNode()), load(from.getGpus())};
}

control::StopActor load_body(schema::ControlRequest::StopActor::Reader from) {
  return control::StopActor{load_id<ActorId>(from.getActor()), from.getIncarnation(),
                            load_timeout(from.getGraceMs()), from.getDrain(),
                            load_text(from.getReason())};
}

control::BuildActor load_body(schema::ControlRequest::BuildActor::Reader from) {
  return control::BuildActor{load(from.getSpec()), from.getIncarnation()};
}

control::FetchFile load_body(schema::ControlRequest::FetchFile::Reader from) {
  return control::FetchFile{load_text(from.getHash()), from.getOffset()};
}

control::TerminateActor load_body(schema::ControlRequest::TerminateActor::Reader from) {
  return control::TerminateActor{load_id<ActorId>(from.getActor()), from.getRestart()};
}

control::WatchActor load_body(schema::ControlRequest::WatchActor::Reader from) {
  return control::WatchActor{load_id<ActorId>(from.getActor()), from.getVersion()};
}

control::WatchNodes load_body(schema::ControlRequest::WatchNodes::Reader from) {
  return control::WatchNodes{from.getVersion()};
}

control::SaveState load_body(schema::ControlRequest::SaveState::Reader from) {
  return control::SaveState{load_id<ActorId>(from.getActor()), from.getIncarnation(),
                            load_bytes(from.getState())};
}

control::DrainActor load_body(schema::ControlRequest::DrainActor::Reader from) {
  return control::DrainActor{load_id<ActorId>(from.getActor()), from.getIncarnation()};
}

control::ParkActor load_body(schema::ControlRequest::ParkActor::Reader from) {
  return control::ParkActor{load_id<ActorId>(from.getActor())};
}

control::ConstructorAwaited load_body(schema::ControlRequest::ConstructorAwaited::Reader from) {
  return control::ConstructorAwaited{load_id<ActorId>(from.getActor()), load_text(from.getName()),
                                     load_text(from.getNameSpace()), load_bytes(from.getNotice())};
}

control::ActorsExited load_body(schema::ControlRequest::ActorsExited::Reader from) {
  control::ActorsExited body;
  body.actors = load_instances(from.getActors());
  body.cause = load(from.getCause());
  return body;
}

control::QueryGroup load_body(schema::ControlRequest::QueryGroup::Reader from) {
  return control::QueryGroup{load_id<GroupId>(from.getGroup()), load_text(from.getName()),
                             load_text(from.getNameSpace()), from.getWait()};
}

control::QueryJob load_body(schema::ControlRequest::QueryJob::Reader from) {
  return control::QueryJob{load_id<JobId>(from.getJob())};
}

control::OfferFiles load_body(schema::ControlRequest::OfferFiles::Reader from) {
  return control::OfferFiles{from.getBytes(), from.getCount(), load(from.getHashes())};
}

control::StoreFile load_body(schema::ControlRequest::StoreFile::Reader from) {
  return control::StoreFile{load_text(from.getHash()), from.getBytes(), from.getOffset(),
                            load_bytes(from.getData())};
}

control::DriverDone load_body(schema::ControlRequest::DriverDone::Reader from) {
  return control::DriverDone{from.getExitCode()};
}

control::DrainNode load_body(schema::ControlRequest::DrainNode::Reader from) {
  return control::DrainNode{load_id<NodeId>(from.getNode()), load_timeout(from.getTimeMs()),
                            load_text(from.getReason()), from.getIfIdle()};
}

control::ChangeToken load_body(schema::ControlRequest::ChangeToken::Reader from) {
  return control::ChangeToken{load_bytes(from.getToken()), load_milliseconds(from.getGraceMs())};
}

control::ExpectToken load_body(schema::ControlRequest::ExpectToken::Reader from) {
  return control::ExpectToken{load_bytes(from.getToken())};
}

control::TakeOver load_body(schema::ControlRequest::TakeOver::Reader from) {
  return control::TakeOver{load_id<NodeId>(from.getNode())};
}

control::Leave load_body(schema::ControlRequest::Leave::Reader from) {
  return control::Leave{load_text(from.getReason())};
}

/// Nothing: of a kind that this version does not know.
std::optional<ControlRequest::Body> load_body(schema::ControlRequest::Reader from) {
  using Kind = schema::ControlRequest;
  switch (from.which()) {
    case Kind::HEARTBEAT: return control::Heartbeat{};
    case Kind::REGISTER_DRIVER: return load_body(from.getRegisterDriver());
    case Kind::CREATE_ACTOR: return load_body(from.getCreateActor());
    case Kind::RESOLVE_ACTOR: return load_body(from.getResolveActor());
    case Kind::QUERY_ACTOR: return load_body(from.getQueryActor());
    case Kind::KILL_ACTOR: return load_body(from.getKillActor());
    case Kind::KV_PUT: return load_body(from.getKvPut());
    case Kind::KV_GET: return load_body(from.getKvGet());
    case Kind::KV_ADD: return load_body(from.getKvAdd());
    case Kind::KV_DELETE: return load_body(from.getKvDelete());
    case Kind::QUERY_CLUSTER: return control::QueryCluster{};
    case Kind::CREATE_GROUP: return load_body(from.getCreateGroup());
    case Kind::REMOVE_GROUP: return load_body(from.getRemoveGroup());
    case Kind::SUBMIT_JOB: return load_body(from.getSubmitJob());
    case Kind::QUEUE_JOB: return load_body(from.getQueueJob());
    case Kind::CANCEL_JOB: return load_body(from.getCancelJob());
    case Kind::READ_LOG: return load_body(from.getReadLog());
    case Kind::STOP_NODE: return control::StopNode{};
    case Kind::REGISTER_NODE: return load_body(from.getRegisterNode());
    case Kind::START_JOB: return load_body(from.getStartJob());
    case Kind::END_JOB: return load_body(from.getEndJob());
    case Kind::ACTOR_EXITED: return load_body(from.getActorExited());
    case Kind::START_ACTOR: return load_body(from.getStartActor());
    case Kind::STOP_ACTOR: return load_body(from.getStopActor());
    case Kind::BUILD_ACTOR: return load_body(from.getBuildActor());
    case Kind::FETCH_FILE: return load_body(from.getFetchFile());
    case Kind::TERMINATE_ACTOR: return load_body(from.getTerminateActor());
    case Kind::WATCH_ACTOR: return load_body(from.getWatchActor());
    case Kind::WATCH_NODES: return load_body(from.getWatchNodes());
    case Kind::SAVE_STATE: return load_body(from.getSaveState());
    case Kind::DRAIN_ACTOR: return load_body(from.getDrainActor());
    case Kind::PARK_ACTOR: return load_body(from.getParkActor());
    case Kind::CONSTRUCTOR_AWAITED: return load_body(from.getConstructorAwaited());
    case Kind::ACTORS_EXITED: return load_body(from.getActorsExited());
    case Kind::OBJECTS: return load(from.getObjects());
    case Kind::QUERY_GROUP: return load_body(from.getQueryGroup());
    case Kind::RESERVE: return load_reserve(from.getReserve());
    case Kind::QUERY_JOB: return load_body(from.getQueryJob());
    case Kind::OFFER_FILES: return load_body(from.getOfferFiles());
    case Kind::STORE_FILE: return load_body(from.getStoreFile());
    case Kind::DRIVER_DONE: return load_body(from.getDriverDone());
    case Kind::DRAIN_NODE: return load_body(from.getDrainNode());
    case Kind::CHANGE_TOKEN: return load_body(from.getChangeToken());
    case Kind::EXPECT_TOKEN: return load_body(from.getExpectToken());
    case Kind::TAKE_OVER: return load_body(from.getTakeOver());
    case Kind::LEAVE: return load_body(from.getLeave());
    case Kind::QUERY_DEMAND: return control::QueryDemand{};
    case Kind::OBSERVE: return load(from.getObserve());
  }
  return std::nullopt;
}

Result<ControlRequest> load_request(schema::ControlRequest::Reader from) {
  ControlRequest to;
  to.job = load_id<JobId>(from.getJob());
  to.id = load_id<RequestId>(from.getId());
  KJ_REQUIRE(from.getDeadlineMs() > 0, "a control request needs a deadline");
  to.timeout = load_timeout(from.getDeadlineMs());
  auto body = load_body(from);
  if (!body)
    return unimplemented("a control request of kind " +
                         std::to_string(static_cast<int>(from.which())) +
                         ", which this version does not know");
  to.body = *std::move(body);
  return to;
}

/// Stores one answer; an overload per kind.
struct ControlAnswerWriter {
  schema::ControlReply::Builder to;

  void operator()(std::monostate) { to.setNone(); }
  void operator()(const JobId& job) { to.setJob(data(job)); }
  void operator()(const ActorAddress& address) { store(address, to.initAddress()); }
  void operator()(const ActorState& state) { store(state, to.initActor()); }
  void operator()(const std::string& bytes) { to.setBytes(data(bytes)); }
  void operator()(std::int64_t number) { to.setNumber(number); }
  void operator()(const ClusterState& cluster) { store(cluster, to.initCluster()); }
  void operator()(const GroupState& group) { store(group, to.initGroup()); }
  void operator()(const control::LogChunk& chunk) {
    auto log = to.initLog();
    log.setText(data(chunk.text));
    log.setNextOffset(chunk.next_offset);
    log.setFile(chunk.file);
    log.setPosition(chunk.position);
  }
  void operator()(const control::NodeList& list) {
    auto nodes = to.initNodes();
    nodes.setVersion(list.version);
    store_list(list.nodes, nodes.initNodes(static_cast<unsigned>(list.nodes.size())));
    store_list(list.departed, nodes.initDeparted(static_cast<unsigned>(list.departed.size())));
  }
  void operator()(const ObjectControlAnswer& objects) { store(objects, to.initObjects()); }
  void operator()(const control::Refusals& refusals) {
    auto refused = to.initRefusals(static_cast<unsigned>(refusals.refused.size()));
    for (unsigned i = 0; i < refused.size(); ++i) {
      refused[i].setGroup(data(refusals.refused[i].group));
      refused[i].setReason(text(refusals.refused[i].reason));
    }
  }
  void operator()(const JobInfo& job) { store(job, to.initJobInfo()); }
  void operator()(const control::FilesWanted& wanted) {
    auto places = to.initFilesWanted(static_cast<unsigned>(wanted.places.size()));
    for (unsigned i = 0; i < places.size(); ++i) places.set(i, wanted.places[i]);
  }
  void operator()(const Demand& demand) { store(demand, to.initDemand()); }
  void operator()(const ObserveAnswer& seen) {
    auto* page = std::get_if<ActorPage>(&seen);
    if (!page) return store(seen, to.initObserve());
    auto actors = to.initActorPage();
    store_list(page->actors, actors.initActors(static_cast<unsigned>(page->actors.size())));
    actors.setNext(data(page->next));
  }
};

Result<ControlAnswer> load_reply(schema::ControlReply::Reader from) {
  if (from.getCode() != 0)
    return Status(error_code_from_wire(from.getCode()), load_text(from.getMessage()));
  using Kind = schema::ControlReply;
  switch (from.which()) {
    case Kind::NONE: return ControlAnswer(std::monostate{});
    case Kind::JOB: return ControlAnswer(load_id<JobId>(from.getJob()));
    case Kind::ADDRESS: return ControlAnswer(load(from.getAddress()));
    case Kind::ACTOR: return ControlAnswer(load(from.getActor()));
    case Kind::BYTES: return ControlAnswer(load_bytes(from.getBytes()));
    case Kind::NUMBER: return ControlAnswer(from.getNumber());
    case Kind::CLUSTER: return ControlAnswer(load(from.getCluster()));
    case Kind::GROUP: return ControlAnswer(load(from.getGroup()));
    case Kind::LOG:
      return ControlAnswer(control::LogChunk{load_bytes(from.getLog().getText()),
                                             from.getLog().getNextOffset(), from.getLog().getFile(),
                                             from.getLog().getPosition()});
    case Kind::OBJECTS: return ControlAnswer(load(from.getObjects()));
    case Kind::REFUSALS: return ControlAnswer(load_refusals(from.getRefusals()));
    case Kind::JOB_INFO: return ControlAnswer(load(from.getJobInfo()));
    case Kind::FILES_WANTED: {
      control::FilesWanted wanted;
      for (std::uint32_t place : from.getFilesWanted()) wanted.places.push_back(place);
      return ControlAnswer(std::move(wanted));
    }
    case Kind::OBSERVE: return ControlAnswer(load(from.getObserve()));
    case Kind::ACTOR_PAGE: {
      ActorPage page{load_list<ActorState>(from.getActorPage().getActors()),
                     load_id<ActorId>(from.getActorPage().getNext())};
      return ControlAnswer(ObserveAnswer(std::move(page)));
    }
    case Kind::NODES:
      return ControlAnswer(control::NodeList{
          from.getNodes().getVersion(), load_list<NodeInfo>(from.getNodes().getNodes()),
          load_list<NodeDeparture>(from.getNodes().getDeparted())});
    case Kind::DEMAND: return ControlAnswer(load(from.getDemand()));
  }
  return unimplemented("a control reply of a newer version");
}

struct EventWriter {
  schema::ControlEvent::Builder to;

  void operator()(const LogLines& lines) { store(lines, to.initLogLines()); }
  void operator()(const control::JobOutput& output) {
    auto event = to.initJobOutput();
    event.setJob(data(output.job));
    event.setIsStderr(output.is_stderr);
    event.setBytes(data(output.bytes));
  }
  void operator()(const control::JobExited& exited) {
    auto event = to.initJobExited();
    event.setJob(data(exited.job));
    store(exited.cause, event.initCause());
  }
  void operator()(const control::ActorsDied& died) {
    auto event = to.initActorsDied();
    event.setJob(data(died.job));
    auto actors = event.initActors(static_cast<unsigned>(died.actors.size()));
    for (unsigned i = 0; i < actors.size(); ++i) actors.set(i, data(died.actors[i]));
  }
  void operator()(const control::Shutdown& shutdown) {
    auto event = to.initShutdown();
    event.setCode(static_cast<std::uint16_t>(shutdown.reason.code()));
    event.setMessage(text(shutdown.reason.message()));
    event.setLeft(text(shutdown.left));
  }
  void operator()(const control::NodeDrains& drains) {
    auto event = to.initNodeDrains();
    event.setNode(data(drains.node));
    store(drains.drain, event.initDrain());
  }
  void operator()(const control::TokenChanged& changed) {
    store(changed.state, to.initTokenChanged());
  }
};

Result<ControlEvent> load_event(schema::ControlEvent::Reader from) {
  using Kind = schema::ControlEvent;
  switch (from.which()) {
    case Kind::LOG_LINES: return ControlEvent(load(from.getLogLines()));
    case Kind::JOB_OUTPUT: {
      auto event = from.getJobOutput();
      return ControlEvent(control::JobOutput{load_id<JobId>(event.getJob()), event.getIsStderr(),
                                             load_bytes(event.getBytes())});
    }
    case Kind::JOB_EXITED:
      return ControlEvent(control::JobExited{load_id<JobId>(from.getJobExited().getJob()),
                                             load(from.getJobExited().getCause())});
    case Kind::OBSOLETE_ACTOR_DIED: break;
    case Kind::ACTORS_DIED: {
      control::ActorsDied died{load_id<JobId>(from.getActorsDied().getJob()), {}};
      for (auto actor : from.getActorsDied().getActors())
        died.actors.push_back(load_id<ActorId>(actor));
      return ControlEvent(std::move(died));
    }
    case Kind::NODE_DRAINS:
      return ControlEvent(control::NodeDrains{load_id<NodeId>(from.getNodeDrains().getNode()),
                                              load(from.getNodeDrains().getDrain())});
    case Kind::TOKEN_CHANGED:
      return ControlEvent(control::TokenChanged{load(from.getTokenChanged())});
    case Kind::SHUTDOWN: {
      auto event = from.getShutdown();
      Status reason = event.getCode() == 0 ? Status()
                                           : Status(error_code_from_wire(event.getCode()),
                                                    load_text(event.getMessage()));
      return ControlEvent(control::Shutdown{std::move(reason), load_text(event.getLeft())});
    }
  }
  return unimplemented("a control event of another version");
}

}  // namespace

Buffer encode(const ControlRequest& request) {
  return encode<schema::ControlRequest>([&](schema::ControlRequest::Builder to) {
    to.setJob(data(request.job));
    to.setDeadlineMs(
        static_cast<std::uint64_t>(std::max<std::int64_t>(1, request.timeout.count())));
    if (!request.id.is_none()) to.setId(data(request.id));
    std::visit(BodyWriter{to}, request.body);
  });
}

Buffer encode(const Result<ControlAnswer>& reply) {
  return encode<schema::ControlReply>([&](schema::ControlReply::Builder to) {
    if (reply.ok()) {
      std::visit(ControlAnswerWriter{to}, *reply);
    } else {
      to.setCode(static_cast<std::uint16_t>(reply.status().code()));
      to.setMessage(text(reply.status().message()));
    }
  });
}

Buffer encode(const ControlEvent& event) {
  return encode<schema::ControlEvent>(
      [&](schema::ControlEvent::Builder to) { std::visit(EventWriter{to}, event); });
}

Result<ControlRequest> decode_control_request(const Buffer& meta) {
  return read_message<schema::ControlRequest, ControlRequest>(meta, "control request",
                                                              load_request);
}

Result<ControlAnswer> decode_control_reply(const Buffer& meta) {
  return read_message<schema::ControlReply, ControlAnswer>(meta, "control reply", load_reply);
}

Result<ControlEvent> decode_control_event(const Buffer& meta) {
  return read_message<schema::ControlEvent, ControlEvent>(meta, "control event", load_event);
}

}  // namespace runtime
