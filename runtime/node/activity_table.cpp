#include "runtime/node/activity_table.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "runtime/observe/activity_page.h"

namespace runtime {

namespace {
constexpr std::size_t kEndedTracesMax = 64;
}

Status ActivityTable::adopt(const Channel& channel, Message& message) {
  if (message.fds.size() != 1) return invalid_argument("an activity page comes with one descriptor");
  auto view = ActivityView::open(std::move(message.fds.front()));
  if (!view.ok()) return view.status();
  entries_.erase(channel.serial());
  const std::string role = channel.peer().role == Role::kDriver ? "driver" : "worker";
  auto [entry, added] = entries_.emplace(channel.serial(), Entry{*std::move(view), channel.peer().pid, role});
  if (record_until_ns_ > activity_now()) entry->second.view.record_until(record_until_ns_);
  return {};
}

void ActivityTable::retire(const Channel& channel) {
  auto found = entries_.find(channel.serial());
  if (found == entries_.end()) return;
  Entry& entry = found->second;
  add(ended_, entry.view.snapshot(false).classes, false);
  if (record_until_ns_ != 0 && ended_traces_.size() < kEndedTracesMax) {
    TraceOfProcess trace = entry.view.trace(entry.trace_after);
    trace.pid = entry.pid;
    trace.name = entry.role;
    if (!trace.events.empty()) ended_traces_.push_back(std::move(trace));
  }
  entries_.erase(found);
}

void ActivityTable::add(Classes& to, const std::vector<ClassLoad>& from, bool living) {
  for (const ClassLoad& load : from) {
    if (load.calls == 0 && load.actors == 0) continue;
    const bool fits = to.contains(load.name) || to.size() < kClassesMax;
    ClassLoad& sum = to[fits ? load.name : "other"];
    sum.name = fits ? load.name : "other";
    sum.calls += load.calls;
    sum.failed += load.failed;
    sum.sum_ns += load.sum_ns;
    sum.buckets.resize(activity::kBuckets);
    for (std::size_t i = 0; i < std::min(load.buckets.size(), sum.buckets.size()); ++i) sum.buckets[i] += load.buckets[i];
    if (!living) continue;
    sum.waiting += load.waiting;
    sum.actors += load.actors;
  }
}

std::vector<ClassLoad> ActivityTable::classes() const {
  Classes all = ended_;  // first: a class keeps its place for as long as the node lives
  for (const auto& [serial, entry] : entries_) add(all, entry.view.snapshot(false).classes, true);
  std::vector<ClassLoad> list;
  for (auto& [name, load] : all) list.push_back(std::move(load));
  return list;
}

std::vector<ActorLoad> ActivityTable::actors(std::size_t most, std::uint64_t* left_out) const {
  std::vector<ActorLoad> all;
  const std::uint64_t now = activity_now();
  for (const auto& [serial, entry] : entries_) {
    ActivitySnapshot snapshot = entry.view.snapshot(true);
    std::map<ActorId, const ActivitySnapshot::Running*> running;
    for (const auto& run : snapshot.running) running[run.actor] = &run;
    for (ActorLoad& load : snapshot.actors) {
      load.pid = entry.pid;
      if (auto run = running.find(load.actor); run != running.end()) {
        load.running = run->second->method;
        load.running_ns = now > run->second->begun_ns ? now - run->second->begun_ns : 0;
      }
      all.push_back(std::move(load));
    }
  }
  *left_out = all.size() > most ? all.size() - most : 0;
  const auto busier = [](const ActorLoad& a, const ActorLoad& b) {
    return std::tuple(a.waiting + !a.running.empty(), a.calls, a.actor) > std::tuple(b.waiting + !b.running.empty(), b.calls, b.actor);
  };
  std::partial_sort(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(std::min(most, all.size())), all.end(), busier);
  all.resize(std::min(most, all.size()));
  return all;
}

const ActivityView* ActivityTable::of(std::int32_t pid) const {
  for (const auto& [serial, entry] : entries_) {
    if (entry.pid == pid) return &entry.view;
  }
  return nullptr;
}

std::vector<ActivitySnapshot::Running> ActivityTable::running(std::int32_t pid) const {
  const ActivityView* view = of(pid);
  return view ? view->snapshot(false).running : std::vector<ActivitySnapshot::Running>();
}

void ActivityTable::record_until(std::uint64_t ns) {
  record_until_ns_ = std::max(record_until_ns_, ns);
  for (auto& [serial, entry] : entries_) entry.view.record_until(record_until_ns_);
}

std::vector<TraceOfProcess> ActivityTable::take_traces() {
  std::vector<TraceOfProcess> traces = std::exchange(ended_traces_, {});
  for (auto& [serial, entry] : entries_) {
    TraceOfProcess trace = entry.view.trace(entry.trace_after);
    if (trace.events.empty() && trace.lost == 0) continue;
    trace.pid = entry.pid;
    trace.name = entry.role;
    traces.push_back(std::move(trace));
  }
  return traces;
}

}  // namespace runtime
