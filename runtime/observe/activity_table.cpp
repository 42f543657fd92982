#include "runtime/observe/activity_table.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "runtime/observe/activity_page.h"

namespace runtime {

namespace {

constexpr std::size_t kEndedTracesMax = 64;
constexpr std::size_t kEndedTraceBytesMax = 16 << 20;  // they may never be asked for

std::size_t trace_bytes(const TraceOfProcess& trace) {
  std::size_t bytes = trace.events.size();
  for (const std::string& name : trace.names) bytes += name.size() + sizeof(std::uint64_t);
  return bytes;
}

}  // namespace

Status ActivityTable::adopt(Process process, FileDescriptor page) {
  auto view = ActivityView::open(std::move(page));
  if (!view.ok()) return view.status();
  retire(process.connection);
  const std::uint64_t connection = process.connection;
  auto [entry, added] = entries_.emplace(connection, Entry{*std::move(view), std::move(process)});
  if (record_until_ns_ > activity_now()) entry->second.view.record_until(record_until_ns_);
  return {};
}

void ActivityTable::retire(std::uint64_t connection) {
  auto found = entries_.find(connection);
  if (found == entries_.end()) return;
  Entry& entry = found->second;
  add(ended_, entry.view.snapshot(false).classes, false);
  if (record_until_ns_ != 0 && ended_traces_.size() < kEndedTracesMax) {
    TraceOfProcess trace = take_trace(entry);
    if (const std::size_t bytes = trace_bytes(trace);
        ended_trace_bytes_ + bytes > kEndedTraceBytesMax) {
      trace.lost += trace.events.size() / sizeof(activity::TraceEvent);
      trace.events.clear();
      trace.names.clear();
    }
    ended_trace_bytes_ += trace_bytes(trace);
    if (!trace.events.empty() || trace.lost > 0) ended_traces_.push_back(std::move(trace));
  }
  entries_.erase(found);
}

void ActivityTable::add(Classes& to, const std::vector<ClassLoad>& from, bool living) {
  for (const ClassLoad& load : from) {
    if (load.calls == 0 && load.actors == 0) continue;
    if (named_.size() < kClassesMax) named_.insert(load.name);
    const bool fits = named_.contains(load.name);
    ClassLoad& sum = to[fits ? load.name : "other"];
    sum.name = fits ? load.name : "other";
    sum.calls += load.calls;
    sum.failed += load.failed;
    sum.sum_ns += load.sum_ns;
    sum.buckets.resize(activity::kBuckets);
    for (std::size_t i = 0; i < std::min(load.buckets.size(), sum.buckets.size()); ++i)
      sum.buckets[i] += load.buckets[i];
    if (!living) continue;
    sum.waiting += load.waiting;
    sum.actors += load.actors;
  }
}

std::vector<ClassLoad> ActivityTable::classes() {
  Classes all = ended_;
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
      load.pid = entry.process.pid;
      if (auto run = running.find(load.actor); run != running.end()) {
        load.running = run->second->method;
        load.running_ns = now > run->second->begun_ns ? now - run->second->begun_ns : 0;
      }
      all.push_back(std::move(load));
    }
  }
  *left_out = all.size() > most ? all.size() - most : 0;
  const auto busier = [](const ActorLoad& a, const ActorLoad& b) {
    return std::tuple(a.waiting + !a.running.empty(), a.calls, a.actor) >
           std::tuple(b.waiting + !b.running.empty(), b.calls, b.actor);
  };
  std::partial_sort(all.begin(),
                    all.begin() + static_cast<std::ptrdiff_t>(std::min(most, all.size())),
                    all.end(), busier);
  all.resize(std::min(most, all.size()));
  return all;
}

const ActivityView* ActivityTable::of(std::int32_t pid) const {
  for (const auto& [serial, entry] : entries_) {
    if (entry.process.pid == pid) return &entry.view;
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

TraceOfProcess ActivityTable::take_trace(Entry& entry) {
  TraceOfProcess trace = entry.view.trace(entry.trace_after);
  trace.pid = entry.process.pid;
  trace.name = entry.process.role;
  return trace;
}

std::vector<TraceOfProcess> ActivityTable::take_traces(std::size_t bytes_max) {
  std::vector<TraceOfProcess> traces;
  std::size_t bytes = 0;
  while (!ended_traces_.empty() && bytes < bytes_max) {
    const std::size_t more = trace_bytes(ended_traces_.front());
    bytes += more;
    ended_trace_bytes_ -= more;
    traces.push_back(std::move(ended_traces_.front()));
    ended_traces_.pop_front();
  }
  // Round and round, so that it is not always the same ones for which there is no room.
  auto at = entries_.upper_bound(last_traced_);
  for (std::size_t left = entries_.size(); left > 0 && bytes < bytes_max; --left, ++at) {
    if (at == entries_.end()) at = entries_.begin();
    last_traced_ = at->first;
    TraceOfProcess trace = take_trace(at->second);
    if (trace.events.empty() && trace.lost == 0) continue;
    bytes += trace_bytes(trace);
    traces.push_back(std::move(trace));
  }
  return traces;
}

}  // namespace runtime
