#include "actors.h"

#include <numeric>
#include <stdexcept>
#include <utility>

#include "ledger.h"
#include "world.h"

namespace sim {

namespace {
World& world() { return *Stage::now->world; }
Ledger& ledger() { return *Stage::now->ledger; }
}  // namespace

std::uint64_t task_note(std::uint64_t call, std::uint32_t micros) {
  ledger().ran(call);
  if (micros > 0) world().sleep(std::chrono::microseconds(micros));
  return call;
}

std::uint64_t task_crash(std::uint64_t call) {
  ledger().ran(call);
  Process* process = world().current();
  world().call_later(world().random().micros(0, 300), [process, world = &world()] {
    world->crash(*process, world->random().one_in(2) ? Farewell::kOrderly : Farewell::kReset);
  });
  if (world().random().one_in(2)) world().sleep(1s);
  return call;
}

std::vector<std::uint8_t> task_make(std::uint64_t call, std::uint32_t size) {
  ledger().ran(call);
  return Witness::pattern(call, size);
}

Witness::Witness(runtime::Runtime& rt, std::string name) : rt_(&rt), name_(std::move(name)) {
  if (world().faults && world().random().one_in(8))
    world().sleep(world().random().micros(100, 50'000));
}

void Witness::register_in(runtime::Runtime& rt) {
  rt.register_actor<Witness>("Witness", &Witness::note, &Witness::linger,
                             runtime::method(&Witness::aside, {.concurrency_group = "side"}),
                             &Witness::refuse, &Witness::blow_up, &Witness::crash, &Witness::relay,
                             &Witness::make, &Witness::sum, &Witness::keep, &Witness::sum_kept,
                             &Witness::drop, &Witness::give);
  rt.register_function("task_note", &task_note);
  rt.register_function("task_crash", &task_crash);
  rt.register_function("task_make", &task_make);
}

std::uint64_t Witness::note(std::uint64_t call) {
  ledger().ran(call);
  return call;
}

std::uint64_t Witness::linger(std::uint64_t call, std::uint32_t micros) {
  return task_note(call, micros);
}

std::uint64_t Witness::aside(std::uint64_t call, std::uint32_t micros) {
  return linger(call, micros);
}

runtime::Status Witness::refuse(std::uint64_t call) {
  ledger().ran(call);
  return runtime::cancelled("refused");
}

void Witness::blow_up(std::uint64_t call) {
  ledger().ran(call);
  throw std::runtime_error("blown up");
}

std::uint64_t Witness::crash(std::uint64_t call) { return task_crash(call); }

runtime::Result<std::uint64_t> Witness::relay(std::uint64_t call,
                                              runtime::ActorHandle<Witness> other,
                                              std::uint64_t inner) {
  ledger().ran(call);
  auto answer = other.call(runtime::CallOptions{.timeout = 300ms, .max_task_retries = 0},
                           &Witness::note, inner);
  auto value = rt_->get(answer, 20s);
  ledger().told(inner, value.status());
  if (!value.ok()) return value.status();
  return call;
}

std::vector<std::uint8_t> Witness::pattern(std::uint64_t call, std::uint32_t size) {
  std::vector<std::uint8_t> bytes(size);
  for (std::uint32_t i = 0; i < size; ++i) bytes[i] = static_cast<std::uint8_t>(call * 31 + i);
  return bytes;
}

std::uint64_t Witness::sum_of(const std::vector<std::uint8_t>& bytes) {
  return std::accumulate(bytes.begin(), bytes.end(), std::uint64_t{0});
}

std::vector<std::uint8_t> Witness::make(std::uint64_t call, std::uint32_t size) {
  return task_make(call, size);
}

std::uint64_t Witness::sum(std::uint64_t call, std::vector<std::uint8_t> bytes) {
  ledger().ran(call);
  return sum_of(bytes);
}

std::uint64_t Witness::keep(std::uint64_t call, runtime::ObjectRef<std::vector<std::uint8_t>> ref) {
  ledger().ran(call);
  kept_ = std::move(ref);
  return call;
}

runtime::Result<std::uint64_t> Witness::sum_kept(std::uint64_t call) {
  ledger().ran(call);
  if (!kept_.is_valid()) return runtime::cancelled("nothing is kept");
  auto bytes = rt_->get(kept_, 2s);
  if (!bytes.ok()) return bytes.status();
  return sum_of(*bytes);
}

std::uint64_t Witness::drop(std::uint64_t call) {
  ledger().ran(call);
  kept_ = {};
  return call;
}

runtime::Result<runtime::ObjectRef<std::vector<std::uint8_t>>> Witness::give(std::uint64_t call) {
  ledger().ran(call);
  if (!kept_.is_valid()) return runtime::cancelled("nothing is kept");
  return kept_;
}

}  // namespace sim
