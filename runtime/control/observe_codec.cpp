#include "runtime/control/observe_codec.h"

#include <algorithm>

#include "runtime/control/schema_values.h"

namespace runtime::schema_values {

namespace {

void store_numbers(const Numbers& from, capnp::List<schema::Number>::Builder to) {
  unsigned i = 0;
  for (const auto& [name, value] : from) {
    to[i].setName(text(name));
    to[i++].setValue(value);
  }
}

Numbers load_numbers(capnp::List<schema::Number>::Reader from) {
  Numbers to;
  for (auto number : from) to[load_text(number.getName())] = number.getValue();
  return to;
}

std::uint64_t milliseconds(std::chrono::milliseconds time) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(0, time.count()));
}

// -- Loads

void store_class(const ClassLoad& from, schema::ClassLoad::Builder to) {
  to.setName(text(from.name));
  to.setCalls(from.calls);
  to.setFailed(from.failed);
  to.setSumNs(from.sum_ns);
  auto buckets = to.initBuckets(count(from.buckets));
  for (unsigned i = 0; i < buckets.size(); ++i) buckets.set(i, from.buckets[i]);
  to.setWaiting(from.waiting);
  to.setActors(from.actors);
}

ClassLoad load_class(schema::ClassLoad::Reader from) {
  ClassLoad to{load_text(from.getName()), from.getCalls(), from.getFailed(), from.getSumNs(), {},
               from.getWaiting(),         from.getActors()};
  for (std::uint64_t bucket : from.getBuckets()) to.buckets.push_back(bucket);
  return to;
}

void store_actor(const ActorLoad& from, schema::ActorLoad::Builder to) {
  to.setActor(data(from.actor));
  to.setClassName(text(from.class_name));
  to.setPid(from.pid);
  to.setCalls(from.calls);
  to.setFailed(from.failed);
  to.setBusyNs(from.busy_ns);
  to.setWaiting(from.waiting);
  to.setRunning(text(from.running));
  to.setRunningNs(from.running_ns);
}

ActorLoad load_actor(schema::ActorLoad::Reader from) {
  return {load_id<ActorId>(from.getActor()),
          load_text(from.getClassName()),
          from.getPid(),
          from.getCalls(),
          from.getFailed(),
          from.getBusyNs(),
          from.getWaiting(),
          load_text(from.getRunning()),
          from.getRunningNs()};
}

void store_worker(const WorkerInfo& from, schema::WorkerInfo::Builder to) {
  to.setWorker(data(from.worker));
  to.setNode(data(from.node));
  to.setJob(data(from.job));
  to.setPid(from.pid);
  to.setState(text(from.state));
  to.setActor(data(from.actor));
  to.setClassName(text(from.class_name));
  to.setActors(from.actors);
  to.setMemoryBytes(from.memory_bytes);
  to.setCpuSeconds(from.cpu_seconds);
  to.setThreads(from.threads);
  to.setProcess(text(from.process));
  to.setAgeMs(milliseconds(from.age));
}

WorkerInfo load_worker(schema::WorkerInfo::Reader from) {
  WorkerInfo to;
  to.worker = load_id<WorkerId>(from.getWorker());
  to.node = load_id<NodeId>(from.getNode());
  to.job = load_id<JobId>(from.getJob());
  to.pid = from.getPid();
  to.state = load_text(from.getState());
  to.actor = load_id<ActorId>(from.getActor());
  to.class_name = load_text(from.getClassName());
  to.actors = from.getActors();
  to.memory_bytes = from.getMemoryBytes();
  to.cpu_seconds = from.getCpuSeconds();
  to.threads = from.getThreads();
  to.process = load_text(from.getProcess());
  to.age = std::chrono::milliseconds(std::min<std::uint64_t>(from.getAgeMs(), 1ull << 60));
  return to;
}

// -- Stacks and traces

void store_thread(const ThreadStack& from, schema::ThreadStack::Builder to) {
  to.setTid(from.tid);
  to.setName(text(from.name));
  to.setState(text(from.state));
  to.setWaitsIn(text(from.waits_in));
  to.setActor(data(from.actor));
  to.setRunning(text(from.running));
  to.setRunningNs(from.running_ns);
  store(from.frames, to.initFrames(count(from.frames)));
}

ThreadStack load_thread(schema::ThreadStack::Reader from) {
  return {from.getTid(),
          load_text(from.getName()),
          load_text(from.getState()),
          load_text(from.getWaitsIn()),
          load_id<ActorId>(from.getActor()),
          load_text(from.getRunning()),
          from.getRunningNs(),
          load(from.getFrames())};
}

void store_trace(const TraceOfProcess& from, schema::TraceOfProcess::Builder to) {
  to.setPid(from.pid);
  to.setName(text(from.name));
  store(from.names, to.initNames(count(from.names)));
  to.setEvents(data(from.events));
  to.setLost(from.lost);
}

/// One request's body; an overload per kind.
struct ObserveRequestWriter {
  schema::ObserveRequest::Builder to;

  void operator()(const control::ListActors& body) {
    auto list = to.initListActors();
    auto filters = list.initFilters(count(body.filters));
    for (unsigned i = 0; i < filters.size(); ++i) {
      filters[i].setKey(text(body.filters[i].first));
      filters[i].setValue(text(body.filters[i].second));
    }
    list.setAfter(data(body.after));
    list.setLimit(body.limit);
  }
  void operator()(const control::ReadHead&) { to.setReadHead(); }
  void operator()(const control::ReadLoad& body) {
    to.initReadLoad().setActorsMax(body.actors_max);
  }
  void operator()(const control::ListWorkers&) { to.setListWorkers(); }
  void operator()(const control::ReadStack& body) { to.initReadStack().setActor(data(body.actor)); }
  void operator()(const control::ReadMetrics&) { to.setReadMetrics(); }
  void operator()(const control::Trace& body) {
    auto trace = to.initTrace();
    trace.setForMs(milliseconds(body.record));
    trace.setRead(body.read);
  }
  void operator()(const control::ReadClock&) { to.setReadClock(); }
  void operator()(const control::MeasurePeer& body) {
    auto measure = to.initMeasurePeer();
    measure.setAddress(text(body.address));
    measure.setBytes(body.bytes);
  }
  void operator()(const control::Sink& body) { to.setSink(data(body.bytes)); }
  void operator()(const control::ReadStart& body) { to.setReadStart(data(body.actor)); }
};

struct ObserveAnswerWriter {
  schema::ObserveReply::Builder to;

  void operator()(const ActorPage&) {
    KJ_FAIL_REQUIRE("a page of actors is not an ObserveReply");
  }  // control_codec.cpp stores it
  void operator()(const NodeLoad& load) {
    auto out = to.initLoad();
    out.setNode(data(load.node));
    out.setAtNs(load.at_ns);
    store_numbers(load.numbers, out.initNumbers(count(load.numbers)));
    auto classes = out.initClasses(count(load.classes));
    for (unsigned i = 0; i < classes.size(); ++i) store_class(load.classes[i], classes[i]);
    auto actors = out.initActors(count(load.actors));
    for (unsigned i = 0; i < actors.size(); ++i) store_actor(load.actors[i], actors[i]);
    out.setActorsLeftOut(load.actors_left_out);
  }
  void operator()(const WorkerList& list) {
    auto workers = to.initWorkers(count(list));
    for (unsigned i = 0; i < workers.size(); ++i) store_worker(list[i], workers[i]);
  }
  void operator()(const StackReport& report) {
    auto stack = to.initStack();
    stack.setPid(report.pid);
    stack.setClassName(text(report.class_name));
    stack.setProcess(text(report.process));
    stack.setNote(text(report.note));
    auto threads = stack.initThreads(count(report.threads));
    for (unsigned i = 0; i < threads.size(); ++i) store_thread(report.threads[i], threads[i]);
  }
  void operator()(const std::string& bytes) { to.setText(data(bytes)); }
  void operator()(const TraceChunk& chunk) {
    auto trace = to.initTrace();
    trace.setAtNs(chunk.at_ns);
    auto processes = trace.initProcesses(count(chunk.processes));
    for (unsigned i = 0; i < processes.size(); ++i) store_trace(chunk.processes[i], processes[i]);
  }
  void operator()(const Numbers& numbers) {
    store_numbers(numbers, to.initNumbers(count(numbers)));
  }
};

}  // namespace

void store(const ObserveControl& from, schema::ObserveRequest::Builder to) {
  std::visit(ObserveRequestWriter{to}, from);
}

void store(const ObserveAnswer& from, schema::ObserveReply::Builder to) {
  std::visit(ObserveAnswerWriter{to}, from);
}

ObserveControl load(schema::ObserveRequest::Reader from) {
  using Kind = schema::ObserveRequest;
  switch (from.which()) {
    case Kind::LIST_ACTORS: {
      control::ListActors body;
      for (auto filter : from.getListActors().getFilters())
        body.filters.emplace_back(load_text(filter.getKey()), load_text(filter.getValue()));
      body.after = load_id<ActorId>(from.getListActors().getAfter());
      body.limit = std::clamp(from.getListActors().getLimit(), 1u, control::ListActors::kLimitMax);
      return body;
    }
    case Kind::READ_HEAD: return control::ReadHead{};
    case Kind::READ_LOAD: return control::ReadLoad{from.getReadLoad().getActorsMax()};
    case Kind::LIST_WORKERS: return control::ListWorkers{};
    case Kind::READ_STACK:
      return control::ReadStack{load_id<ActorId>(from.getReadStack().getActor())};
    case Kind::READ_METRICS: return control::ReadMetrics{};
    case Kind::TRACE: {
      const auto longest = static_cast<std::uint64_t>(control::Trace::kForMax.count());
      return control::Trace{
          std::chrono::milliseconds(std::min(from.getTrace().getForMs(), longest)),
          from.getTrace().getRead()};
    }
    case Kind::READ_CLOCK: return control::ReadClock{};
    case Kind::MEASURE_PEER:
      return control::MeasurePeer{load_text(from.getMeasurePeer().getAddress()),
                                  from.getMeasurePeer().getBytes()};
    case Kind::SINK: return control::Sink{load_bytes(from.getSink())};
    case Kind::READ_START: return control::ReadStart{load_id<ActorId>(from.getReadStart())};
  }
  KJ_FAIL_REQUIRE("an observing request of a newer version");
}

ObserveAnswer load(schema::ObserveReply::Reader from) {
  using Kind = schema::ObserveReply;
  switch (from.which()) {
    case Kind::LOAD: {
      auto in = from.getLoad();
      NodeLoad load;
      load.node = load_id<NodeId>(in.getNode());
      load.at_ns = in.getAtNs();
      load.numbers = load_numbers(in.getNumbers());
      for (auto entry : in.getClasses()) load.classes.push_back(load_class(entry));
      for (auto entry : in.getActors()) load.actors.push_back(load_actor(entry));
      load.actors_left_out = in.getActorsLeftOut();
      return load;
    }
    case Kind::WORKERS: {
      WorkerList list;
      for (auto worker : from.getWorkers()) list.push_back(load_worker(worker));
      return list;
    }
    case Kind::STACK: {
      auto in = from.getStack();
      StackReport report{in.getPid(),
                         load_text(in.getClassName()),
                         load_text(in.getProcess()),
                         load_text(in.getNote()),
                         {}};
      for (auto thread : in.getThreads()) report.threads.push_back(load_thread(thread));
      return report;
    }
    case Kind::TEXT: return load_bytes(from.getText());
    case Kind::TRACE: {
      TraceChunk chunk;
      chunk.at_ns = from.getTrace().getAtNs();
      for (auto process : from.getTrace().getProcesses()) {
        chunk.processes.push_back({process.getPid(), load_text(process.getName()),
                                   load(process.getNames()), load_bytes(process.getEvents()),
                                   process.getLost()});
      }
      return chunk;
    }
    case Kind::NUMBERS: return load_numbers(from.getNumbers());
  }
  KJ_FAIL_REQUIRE("an observing reply of a newer version");
}

}  // namespace runtime::schema_values
