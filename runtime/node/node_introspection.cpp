#include "runtime/node/node_introspection.h"

#include <unistd.h>

#include <algorithm>

#include "runtime/control/control_channel.h"
#include "runtime/core/clock.h"
#include "runtime/core/log.h"
#include "runtime/node/memory_guard.h"
#include "runtime/observe/metrics_key.h"
#include "runtime/process/machine.h"
#include "runtime/process/process_info.h"
#include "runtime/transport/listener.h"

namespace runtime {

namespace {

constexpr std::chrono::milliseconds kHeadPatience{1000};
constexpr std::size_t kSinkBytes = 2 << 20;  // of one piece when a connection is measured
constexpr std::size_t kPiecesAhead = 4;
constexpr int kRoundTrips = 16;

std::uint64_t nanoseconds(Deadline from, Deadline to) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(
      0, std::chrono::duration_cast<std::chrono::nanoseconds>(to - from).count()));
}

void count_call(ClassLoad& load, std::uint64_t took_ns, bool failed) {
  load.buckets.resize(activity::kBuckets);
  ++load.calls;
  load.failed += failed;
  load.sum_ns += took_ns;
  ++load.buckets[activity::bucket_of(took_ns)];
}

Numbers clock_readings() {
  return {{"steady_ns", static_cast<double>(activity_now())},
          {"wall_s", static_cast<double>(unix_milliseconds()) * 1e-3}};
}

}  // namespace

NodeIntrospection::NodeIntrospection(EventLoop& loop, NodeIntrospectionOptions options,
                                     const WorkerView& workers, NodeIntrospectionSources sources)
    : loop_(loop),
      options_(std::move(options)),
      workers_(workers),
      sources_(std::move(sources)),
      stacks_(loop, activity_) {
  fetches_.buckets.resize(activity::kBuckets);
  if (!options_.metrics.server) return;
  std::function<std::vector<std::string>()> keys = [keyring = options_.credentials.token] {
    std::vector<std::string> accepted = keyring.accepted();
    std::transform(accepted.begin(), accepted.end(), accepted.begin(), metrics_key);
    return accepted;
  };
  if (options_.access == MetricsAccess::kOpen) keys = nullptr;
  http_ = options_.metrics.server(
      loop_, {std::move(keys), options_.tls, options_.access == MetricsAccess::kOff},
      [this, alive = lifetime_.alive()](std::function<void(Result<std::string>)> done) {
        if (*alive)
          read_metrics(std::move(done));
        else
          done(unavailable("the node is stopping"));
      });
}

NodeIntrospection::~NodeIntrospection() = default;

void NodeIntrospection::serve(ObserveControl& request, std::chrono::milliseconds timeout,
                              ControlAnswerer answer) {
  const auto tell = [&](ObserveAnswer seen) { answer(ControlAnswer{std::move(seen)}); };
  if (auto* read = std::get_if<control::ReadLoad>(&request)) return tell(load(read->actors_max));
  if (std::holds_alternative<control::ListWorkers>(request)) return tell(list_workers());
  if (auto* stack = std::get_if<control::ReadStack>(&request))
    return take_stack(stack->actor, std::move(answer));
  if (std::holds_alternative<control::ReadClock>(request)) return tell(clock_readings());
  if (auto* start = std::get_if<control::ReadStart>(&request))
    return tell(workers_.start_trouble(start->actor));
  if (auto* measured = std::get_if<control::MeasurePeer>(&request))
    return measure(*measured, timeout, std::move(answer));
  if (auto* sink = std::get_if<control::Sink>(&request))
    return tell(Numbers{{"bytes", static_cast<double>(sink->bytes.size())}});
  if (std::holds_alternative<control::ReadMetrics>(request)) {
    return read_metrics(
        [answer = std::make_shared<ControlAnswerer>(std::move(answer))](Result<std::string> text) {
          if (text.ok())
            (*answer)(ControlAnswer{ObserveAnswer{*std::move(text)}});
          else
            (*answer)(text.status());
        });
  }
  if (auto* trace = std::get_if<control::Trace>(&request)) {
    if (trace->record.count() > 0)
      record_until(activity_now() +
                   static_cast<std::uint64_t>(std::chrono::nanoseconds(trace->record).count()));
    return trace->read ? tell(take_trace()) : tell(Numbers{});
  }
  answer(unimplemented("this is asked of the head, not of a node"));
}

void NodeIntrospection::on_activity(const Channel& channel, Message& message) {
  Status status = invalid_argument("an activity page comes with one descriptor");
  if (message.fds.size() == 1) {
    const char* role = channel.peer().role == Role::kDriver ? "driver" : "worker";
    status = activity_.adopt({channel.serial(), channel.peer().pid, role},
                             std::move(message.fds.front()));
  }
  if (!status.ok()) LOG(warn, "{}: {}", channel.describe_peer(), status.message());
}

void NodeIntrospection::on_http(FileDescriptor socket, std::string received) {
  if (http_) http_->serve(std::move(socket), std::move(received));  // else it is closed
}

// -- Load

WorkerList NodeIntrospection::list_workers() const {
  WorkerList list;
  workers_.list(list);
  for (WorkerInfo& worker : list) {
    const ProcessInfo process = process_info(worker.pid);
    worker.memory_bytes = own_memory_bytes(worker.pid);
    worker.cpu_seconds = process.cpu_seconds;
    worker.threads = process.threads;
    worker.process = process.state;
  }
  return list;
}

NodeLoad NodeIntrospection::load(std::size_t actors_max) {
  NodeLoad load;
  load.node = options_.node;
  load.at_ns = activity_now();
  load.classes = activity_.classes();
  load.actors = activity_.actors(std::min<std::size_t>(actors_max, 10'000), &load.actors_left_out);
  Numbers& numbers = load.numbers;
  if (sources_.numbers) sources_.numbers(numbers);
  const MemoryUse memory = memory_use();
  numbers["memory_used_bytes"] = static_cast<double>(memory.used_bytes);
  numbers["memory_limit_bytes"] = static_cast<double>(memory.limit_bytes);
  numbers["machine_busy_seconds"] = machine_busy_seconds();
  numbers["cpus"] = machine_cpus();
  const ProcessInfo self = process_info(::getpid());
  numbers["process_cpu_seconds"] = self.cpu_seconds;
  numbers["process_resident_bytes"] = static_cast<double>(self.resident_bytes);
  numbers["process_open_files"] = static_cast<double>(open_files(::getpid()));
  for (const char* state : {"idle", "starting", "actor", "shared", "ending"})
    numbers["workers_" + std::string(state)] = 0;
  double worker_memory = 0, worker_cpu = 0;
  for (const WorkerInfo& worker : list_workers()) {
    ++numbers["workers_" + worker.state];
    worker_memory += static_cast<double>(worker.memory_bytes);
    worker_cpu += worker.cpu_seconds;
  }
  numbers["worker_memory_bytes"] = worker_memory;
  numbers["worker_cpu_seconds"] = worker_cpu;
  const WorkerPoolStats& pool = workers_.stats();
  numbers["worker_starts"] = static_cast<double>(pool.starts);
  numbers["worker_ends_ended"] = static_cast<double>(pool.ended);
  numbers["worker_ends_failed"] = static_cast<double>(pool.failed);
  numbers["worker_ends_crashed"] = static_cast<double>(pool.crashed);
  std::vector<control::ActorInstance> serving = workers_.serving();
  numbers["actors_serving"] = static_cast<double>(serving.size());
  numbers["actors_starting"] = static_cast<double>(workers_.starting());
  const ObjectStoreStats store = sources_.objects();
  const auto add = [&](const char* name, std::uint64_t value) {
    numbers[name] = static_cast<double>(value);
  };
  add("store_capacity_bytes", store.capacity_bytes);
  add("store_leased_bytes", store.leased_bytes);
  add("store_orphaned_bytes", store.orphaned_bytes);
  add("store_published_bytes", store.adopted_bytes);
  add("store_replica_bytes", store.replica_bytes);
  add("store_retained_bytes", store.retained_bytes);
  add("store_spilled_bytes", store.spilled_bytes);
  add("store_wanted_bytes", store.wanted_bytes);
  add("store_spills", store.spills);
  add("store_restores", store.restores);
  add("store_sent_bytes", store.sent_bytes);
  add("store_fetched_bytes", store.fetched_bytes);
  add("store_pins", store.pins);
  add("connections_refused", refused_);
  return load;
}

void NodeIntrospection::on_fetched(const FetchedObject& fetched) {
  const Deadline now = steady_now();
  count_call(fetches_, nanoseconds(fetched.asked, now), !fetched.arrived);
  if (!own_page_ || !own_page_->records(activity_now())) return;
  activity::TraceEvent event;
  event.kind = activity::EventKind::kFetched;
  event.begin_ns = static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(fetched.asked.time_since_epoch())
          .count());
  event.duration_ns = nanoseconds(fetched.asked, now);
  event.bytes = fetched.bytes;
  event.tid = static_cast<std::uint32_t>(::getpid());
  event.failed = !fetched.arrived;
  event.method = own_page_->class_of("fetch from " + fetched.from, {}).constructor;
  own_page_->record(event);
}

// -- Metrics

void NodeIntrospection::read_metrics(std::function<void(Result<std::string>)> done) {
  if (!options_.metrics.text)
    return done(unimplemented("this node was started by a program without metrics"));
  auto report = std::make_shared<MetricsReport>();
  report->load = load(0);
  report->is_head = options_.is_head;
  report->fetches = fetches_;
  const WorkerPoolStats& pool = workers_.stats();
  report->worker_starts.buckets.assign(pool.connected.begin(), pool.connected.end());
  for (std::uint64_t bucket : pool.connected) report->worker_starts.calls += bucket;
  report->worker_starts.sum_ns = pool.connected_sum_ns;
  auto finish = [this, alive = lifetime_.alive(), report,
                 done = std::move(done)](Result<ControlAnswer> answer) {
    if (!*alive) return done(unavailable("the node is stopping"));
    auto* seen = answer.ok() ? std::get_if<ObserveAnswer>(&*answer) : nullptr;
    if (auto* numbers = seen ? std::get_if<Numbers>(seen) : nullptr)
      report->head = std::move(*numbers);
    done(options_.metrics.text(*report));
  };
  if (!options_.is_head) return finish(unavailable("the head is elsewhere"));
  sources_.head(ControlRequest{{}, kHeadPatience, ObserveControl{control::ReadHead{}}},
                std::move(finish));
}

// -- Stacks

void NodeIntrospection::take_stack(const ActorId& actor, ControlAnswerer answer) {
  std::string class_name;
  const pid_t pid = workers_.process_of(actor, &class_name);
  if (pid == 0)
    return answer(
        not_found("node " + options_.node.short_hex() + " runs no actor " + actor.short_hex()));
  stacks_.take(pid, [class_name, answer = std::make_shared<ControlAnswerer>(std::move(answer))](
                        Result<StackReport> report) {
    if (!report.ok()) return (*answer)(report.status());
    report->class_name = class_name;
    (*answer)(ControlAnswer{ObserveAnswer{*std::move(report)}});
  });
}

// -- Traces

void NodeIntrospection::record_until(std::uint64_t ns) {
  activity_.record_until(ns);
  if (!own_page_) {
    auto page = ActivityPage::create();
    if (!page.ok()) return LOG(warn, "{}", page.status().message());
    own_page_ = *std::move(page);
  }
  own_page_->layout().record_until_ns = std::max(own_page_->layout().record_until_ns.load(), ns);
}

TraceChunk NodeIntrospection::take_trace() {
  TraceChunk chunk;
  chunk.processes = activity_.take_traces();
  // A worker is called after its actor.
  WorkerList list;
  workers_.list(list);
  for (TraceOfProcess& process : chunk.processes) {
    for (const WorkerInfo& worker : list) {
      if (worker.pid == process.pid && !worker.actor.is_none())
        process.name = worker.class_name + " " + worker.actor.short_hex();
      else if (worker.pid == process.pid && worker.state == "shared")
        process.name = "shared actors";
    }
  }
  if (own_page_) {
    TraceOfProcess own = read_trace(own_page_->layout(), own_after_);
    own.pid = ::getpid();
    own.name = "node " + options_.node.short_hex();
    if (!own.events.empty()) chunk.processes.push_back(std::move(own));
  }
  chunk.at_ns = activity_now();
  return chunk;
}

// -- Connections to other nodes

/// A connection that is being measured: round trips first, then pieces, several of which are always
/// on their way.
struct NodeIntrospection::Measuring : std::enable_shared_from_this<NodeIntrospection::Measuring> {
  std::shared_ptr<Channel> channel;
  ControlAnswerer answer;
  Deadline until;
  std::uint64_t bytes = 0, sent = 0, taken = 0;
  Deadline begun{};
  std::vector<std::uint64_t> round_trips;

  void fail(const Status& why) {
    if (!answer) return;
    std::exchange(answer, nullptr)(why);
    channel->close(cancelled("measured"));
  }
  void send(std::size_t size, std::function<void()> next) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - steady_now());
    if (left.count() <= 0)
      return fail(deadline_exceeded("the measurement took too long: " + std::to_string(taken) +
                                    " of " + std::to_string(bytes) + " bytes came through"));
    ControlRequest request{{}, left, ObserveControl{control::Sink{std::string(size, 'x')}}};
    send_request(*channel, request,
                 [self = shared_from_this(), next = std::move(next)](Result<ControlAnswer> reply) {
                   if (!reply.ok()) return self->fail(reply.status());
                   next();
                 });
  }
  void ping() {
    const Deadline sent_at = steady_now();
    send(0, [self = shared_from_this(), sent_at] {
      self->round_trips.push_back(nanoseconds(sent_at, steady_now()));
      if (self->round_trips.size() < kRoundTrips) return self->ping();
      self->begun = steady_now();
      for (std::size_t i = 0; i < kPiecesAhead; ++i) self->pump();
    });
  }
  void pump() {
    if (!answer) return;
    if (taken >= bytes) return finish();
    if (sent >= bytes) return;
    const std::size_t size = std::min<std::uint64_t>(kSinkBytes, bytes - sent);
    sent += size;
    send(size, [self = shared_from_this(), size] {
      self->taken += size;
      self->pump();
    });
  }
  void finish() {
    std::sort(round_trips.begin(), round_trips.end());
    const double seconds = static_cast<double>(nanoseconds(begun, steady_now())) * 1e-9;
    Numbers numbers{
        {"round_trip_s", static_cast<double>(round_trips[round_trips.size() / 2]) * 1e-9},
        {"bytes_per_s", seconds > 0 ? static_cast<double>(bytes) / seconds : 0}};
    std::exchange(answer, nullptr)(ControlAnswer{ObserveAnswer{std::move(numbers)}});
    channel->close(cancelled("measured"));
  }
};

void NodeIntrospection::measure(const control::MeasurePeer& request,
                                std::chrono::milliseconds timeout, ControlAnswerer answer) {
  auto endpoint = Endpoint::parse(request.address);
  if (!endpoint.ok()) return answer(endpoint.status());
  auto measuring = std::make_shared<Measuring>();
  measuring->bytes = std::clamp<std::uint64_t>(request.bytes, 1, control::MeasurePeer::kBytesMax);
  measuring->until = deadline_after(timeout);
  measuring->answer = std::move(answer);
  Credentials credentials = options_.credentials;
  credentials.role = Role::kTool;
  ConnectOptions connecting;
  connecting.deadline = deadline_after(timeout / 2);
  connect(loop_, *endpoint, credentials, connecting,
          [measuring](Result<std::shared_ptr<Channel>> channel) {
            if (!channel.ok()) return std::exchange(measuring->answer, nullptr)(channel.status());
            measuring->channel = *std::move(channel);
            measuring->ping();
          });
}

}  // namespace runtime
