#include "driver.h"

#include <algorithm>
#include <utility>

namespace sim {

namespace {

/// Longer than any call may take: what is not there by then is lost.
constexpr auto kForEver = 120s;

runtime::RuntimeOptions options_of(const DriverPlan& plan) {
  runtime::RuntimeOptions options;
  options.address = plan.address;
  options.start_cluster = false;
  options.forward_output = false;
  options.name_space = "sim";
  return options;
}

std::string name_of(int driver, std::size_t actor) {
  return "witness-" + std::to_string(driver) + "-" + std::to_string(actor);
}

}  // namespace

void Driver::run() {
  static char name[] = "driver";
  static char* argv[] = {name, nullptr};
  {
    runtime::Runtime rt(1, argv, options_of(plan_));
    Witness::register_in(rt);
    runtime::Status started = start(rt);
    if (started.ok()) {
      for (int i = 0; i < plan_.actors && !gone(); ++i) spawn(rt);
      for (int i = 0; i < plan_.operations && !gone(); ++i) operate(rt);
      collect(rt, 0);
    } else {
      world_.note("driver " + std::to_string(plan_.number) +
                  " cannot start: " + std::to_string(static_cast<int>(started.code())));
    }
    rendezvous_.arrived.insert(plan_.number);
    world_.wait_until([this] { return rendezvous_.all_arrived; });
    drop_everything(rt);
    rendezvous_.dropped.insert(plan_.number);
    world_.wait_until(
        [this] { return rendezvous_.released || rendezvous_.looker == plan_.number; });
    if (rendezvous_.looker == plan_.number && !gone()) {
      rendezvous_.objects = rt.objects().list(5s);
      rendezvous_.cluster = rt.cluster().state(5s);
      rendezvous_.looked = true;
    }
    world_.wait_until([this] { return rendezvous_.released; });
    actors_.clear();
    pending_.clear();
    objects_.clear();
  }
}

runtime::Status Driver::start(runtime::Runtime& rt) {
  runtime::Status status = rt.start();
  for (int attempt = 0; !status.ok() && attempt < 5 && !gone(); ++attempt) {
    world_.sleep(50ms);
    status = rt.start();
  }
  return status;
}

void Driver::spawn(runtime::Runtime& rt) {
  Random& random = world_.random();
  Actor actor;
  runtime::ActorOptions options;
  options.name = name_of(plan_.number, actors_.size());
  options.create_timeout = 3s;
  options.max_restarts = static_cast<std::int32_t>(random.below(3));
  options.max_task_retries = actor.retries =
      random.one_in(3) ? static_cast<std::int32_t>(1 + random.below(2)) : 0;
  options.concurrency_groups = {{"side", 2}};
  if (plan_.gangs) options.bundle = gangs_.some_bundle();
  if (options.bundle) options.cpus = 0.25;
  if (random.one_in(3)) options.isolation = runtime::Isolation::kShared;
  const runtime::Deadline deadline = world_.now() + options.create_timeout + 2s;
  auto made = rt.spawn<Witness>(options, options.name);
  if (gone()) return;
  world_.note("spawn " + std::to_string(static_cast<int>(made.status().code())));
  if (world_.now() > deadline + world_.current()->paused_for)
    world_.fail("spawn came back long after its deadline: " + made.status().to_string());
  if (made.status().code() == runtime::ErrorCode::kInternal)
    world_.fail("spawn: " + made.status().to_string());
  if (!made.ok()) return;
  actor.handle = *made;
  actors_.push_back(std::move(actor));
}

std::chrono::milliseconds Driver::some_timeout() {
  Random& random = world_.random();
  if (plan_.calm) return 30s;
  return std::chrono::milliseconds(random.one_in(5) ? random.between(1, 30)
                                                    : random.between(200, 4000));
}

std::uint64_t Driver::issue(const Actor& actor, const char* method, runtime::CallOptions& options,
                            bool ordered) {
  Random& random = world_.random();
  options.timeout = some_timeout();
  CallRecord record;
  record.driver = plan_.number;
  record.actor = actor.handle.id();
  record.method = method;
  record.retries = actor.retries;
  if (random.one_in(6)) {
    record.retries = 0;
    options.max_task_retries = 0;
  }
  record.ordered = ordered;
  record.must_succeed = plan_.calm;
  record.deadline = world_.now() + options.timeout;
  return ledger_.issue(std::move(record));
}

void Driver::watch(std::uint64_t call, const runtime::ObjectStatePtr& state) {
  state->then([ledger = &ledger_, call] { ledger->settled(call); });
}

void Driver::keep(std::uint64_t call, runtime::ObjectRef<std::uint64_t> result) {
  watch(call, result.state());
  pending_.push_back({call, std::move(result)});
}

void Driver::operate(runtime::Runtime& rt) {
  Random& random = world_.random();
  if (random.one_in(3)) world_.sleep(random.micros(100, 30'000));
  if (plan_.gangs && random.one_in(4)) return use_gangs(rt);
  if (random.one_in(6)) return keys_.use(rt);
  if (actors_.empty()) {
    world_.sleep(20ms);
    if (!gone()) spawn(rt);
    return;
  }
  Actor& actor = actors_[random.below(actors_.size())];
  const std::uint64_t what = random.below(plan_.many_objects ? 40 : plan_.objects ? 16 : 12);
  if (what >= 12) return use_objects(rt, actor);
  if (plan_.calm && what >= 9 && what <= 11) return call_some(rt, actor);
  switch (what) {
    default: return call_some(rt, actor);
    case 7: return collect(rt, pending_.size() / 2);
    case 8: {  // of another driver, perhaps: then both call it
      Actor other;
      auto found =
          rt.get_actor<Witness>(name_of(static_cast<int>(random.below(3)), random.below(2)), 500ms);
      if (found.ok()) {
        other.handle = *found;
        actors_.push_back(std::move(other));
      }
      return;
    }
    case 9: {
      if (pending_.empty()) return;
      const auto mode =
          random.one_in(8) ? runtime::CancelMode::kForce : runtime::CancelMode::kCooperative;
      (void)rt.cancel(pending_[random.below(pending_.size())].result, mode);
      return;
    }
    case 10: {
      if (!random.one_in(3)) return call_some(rt, actor);
      const auto restarts =
          random.one_in(2) ? runtime::Restarts::kAllowed : runtime::Restarts::kNone;
      world_.note("kill");
      (void)rt.kill(actor.handle, restarts, 3s);
      if (restarts == runtime::Restarts::kNone && actors_.size() < 3 && !gone()) spawn(rt);
      return;
    }
    case 11: {
      if (!random.one_in(3)) return call_some(rt, actor);
      world_.note("terminate");
      (void)rt.terminate(actor.handle, 2s);
      if (actors_.size() < 3 && !gone()) spawn(rt);
      return;
    }
  }
}

void Driver::run_task(runtime::Runtime& rt) {
  Random& random = world_.random();
  runtime::TaskOptions options{.cpus = 0.5,
                               .max_retries = static_cast<std::uint32_t>(random.below(3))};
  options.timeout = some_timeout();
  CallRecord record;
  record.driver = plan_.number;
  record.retries = static_cast<std::int32_t>(options.max_retries);
  record.ordered = false;
  record.must_succeed = plan_.calm;
  record.deadline = world_.now() + options.timeout;
  switch (random.below(4)) {
    default: {
      record.method = "task_note";
      const std::uint64_t call = ledger_.issue(std::move(record));
      return keep(call,
                  rt.task(options, &task_note, call,
                          static_cast<std::uint32_t>(random.one_in(2) ? 0 : random.below(20'000))));
    }
    case 2: {
      if (plan_.calm) return;
      record.method = "task_crash";
      const std::uint64_t call = ledger_.issue(std::move(record));
      return keep(call, rt.task(options, &task_crash, call));
    }
    case 3: {
      if (!plan_.objects) return;
      record.method = "task_make";
      record.retries *= 2;  // and so often again after its result was lost
      const std::uint64_t call = ledger_.issue(std::move(record));
      const auto size = static_cast<std::uint32_t>(60'000 + random.below(200'000));
      auto ref = rt.task(options, &task_make, call, size);
      watch(call, ref.state());
      rt.wait(std::vector{ref}, 1, kForEver);
      auto bytes = rt.get(ref, kForEver);
      ledger_.told(call, bytes.status());
      if (bytes.ok() && *bytes != Witness::pattern(call, size) && !gone())
        world_.fail("task " + std::to_string(call) + " gave other bytes than it made");
      return own(ref);
    }
  }
}

void Driver::call_some(runtime::Runtime& rt, Actor& actor) {
  Random& random = world_.random();
  const std::uint64_t count = 1 + random.below(6);
  for (std::uint64_t i = 0; i < count; ++i) {
    runtime::CallOptions options;
    switch (random.below(13)) {
      case 12: {
        run_task(rt);
        break;
      }
      default: {
        const std::uint64_t call = issue(actor, "note", options);
        keep(call, actor.handle.call(options, &Witness::note, call));
        break;
      }
      case 5:
      case 6: {
        const std::uint64_t call = issue(actor, "linger", options);
        keep(call, actor.handle.call(options, &Witness::linger, call,
                                     static_cast<std::uint32_t>(random.below(20'000))));
        break;
      }
      case 7: {
        const std::uint64_t call = issue(actor, "aside", options, false);
        keep(call, actor.handle.call(options, &Witness::aside, call,
                                     static_cast<std::uint32_t>(random.below(20'000))));
        break;
      }
      case 8: {
        if (plan_.calm || !random.one_in(4)) break;
        const std::uint64_t call = issue(actor, "crash", options);
        keep(call, actor.handle.call(options, &Witness::crash, call));
        break;
      }
      case 9: {
        const Actor& other = actors_[random.below(actors_.size())];
        if (plan_.calm || other.handle == actor.handle)
          break;  // two could wait for each other; one would for itself
        const std::uint64_t call = issue(actor, "relay", options);
        CallRecord inner;
        inner.driver = -1;
        inner.actor = other.handle.id();
        inner.method = "note (relayed)";
        inner.retries = actor.retries;  // a relay that runs again makes it again
        inner.ordered = false;
        inner.deadline = runtime::Deadline::max() - 1h;  // known only when the relay runs
        const std::uint64_t number = ledger_.issue(std::move(inner));
        keep(call, actor.handle.call(options, &Witness::relay, call, other.handle, number));
        break;
      }
    }
  }
}

void Driver::use_objects(runtime::Runtime& rt, Actor& actor) {
  Random& random = world_.random();
  runtime::CallOptions options;
  const auto size = static_cast<std::uint32_t>(plan_.many_objects ? 100'000 + random.below(200'000)
                                               : random.one_in(2) ? random.below(2000)
                                                                  : 60'000 + random.below(200'000));
  const std::uint64_t what = random.below(plan_.many_objects ? 10 : 6);
  switch (what < 6 ? what : what % 2) {
    case 0: {
      auto ref = rt.put(Witness::pattern(random.below(100), size), 2s);
      world_.note("driver " + std::to_string(plan_.number) + " put " + std::to_string(size) + " " +
                  ref.status().to_string());
      if (ref.ok()) own(*ref);
      return;
    }
    case 1: {
      const std::uint64_t call = issue(actor, "make", options);
      world_.note("call " + std::to_string(call) + " is to make " + std::to_string(size) + " of " +
                  actor.handle.id().short_hex());
      auto ref = actor.handle.call(options, &Witness::make, call, size);
      watch(call, ref.state());
      auto bytes = rt.get(ref, kForEver);
      ledger_.told(call, bytes.status());
      if (bytes.ok() && *bytes != Witness::pattern(call, size) && !gone())
        world_.fail("call " + std::to_string(call) + " gave other bytes than it made");
      own(ref);
      return;
    }
    case 2: {
      if (objects_.empty()) return;
      const auto& ref = objects_[random.below(objects_.size())];
      const std::uint64_t call = issue(actor, "sum", options);
      keep(call, actor.handle.call(options, &Witness::sum, call, ref));
      return;
    }
    case 3: {
      if (objects_.empty()) return;
      const std::uint64_t call = issue(actor, "keep", options);
      keep(call, actor.handle.call(options, &Witness::keep, call,
                                   objects_[random.below(objects_.size())]));
      return;
    }
    case 4: {
      if (plan_.calm) return;  // nothing may be kept
      const std::uint64_t call = issue(actor, "sum_kept", options);
      keep(call, actor.handle.call(options, &Witness::sum_kept, call));
      return;
    }
    case 5: {
      if (!objects_.empty())
        objects_.erase(objects_.begin() +
                       static_cast<std::ptrdiff_t>(random.below(objects_.size())));
      return;
    }
  }
}

void Driver::use_gangs(runtime::Runtime& rt) {
  switch (world_.random().below(6)) {
    case 0:
    case 1: return gangs_.make(rt);
    case 2:
      if (!plan_.calm) gangs_.remove_one(rt);  // its actors would end
      return;
    case 3: return gangs_.look(rt);
    default:
      if (actors_.size() < 5 && !plan_.calm) spawn(rt);
  }
}

void Driver::own(runtime::ObjectRef<Bytes> object) {
  made_.push_back(object.state());
  objects_.push_back(std::move(object));
}

std::size_t Driver::objects_held() const {
  return static_cast<std::size_t>(std::count_if(
      made_.begin(), made_.end(), [](const auto& object) { return !object.expired(); }));
}

void Driver::collect(runtime::Runtime& rt, std::size_t left) {
  while (pending_.size() > left && !gone()) {
    const std::size_t chosen = world_.random().below(pending_.size());
    Pending pending = std::move(pending_[chosen]);
    pending_.erase(pending_.begin() + static_cast<std::ptrdiff_t>(chosen));
    auto value = rt.get(pending.result, kForEver);
    ledger_.told(pending.call, value.status());
  }
}

void Driver::drop_everything(runtime::Runtime& rt) {
  objects_.clear();
  for (Actor& actor : actors_) {
    if (gone()) return;
    runtime::CallOptions options;
    const std::uint64_t call = issue(actor, "drop", options);
    options.timeout = 30s;
    ledger_.prolong(call, world_.now() + options.timeout);
    auto ref = actor.handle.call(options, &Witness::drop, call);
    watch(call, ref.state());
    auto dropped = rt.get(ref, kForEver);
    ledger_.told(call, dropped.status());
    if (gone()) return;
    if (dropped.status().code() == runtime::ErrorCode::kDeadlineExceeded)
      rendezvous_.heard_all = false;
    if (!dropped.ok() && dropped.status().code() != runtime::ErrorCode::kActorDied)
      rendezvous_.dropped_all = false;
  }
  if (!gangs_.remove_all(rt)) rendezvous_.all_removed = false;
}

}  // namespace sim
