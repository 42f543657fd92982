#include "placement/app/chrome_trace.h"

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

namespace placement {

namespace {

// A call's arrow begins at its own slice on the caller's thread, short enough not to reach
// into the next one.
constexpr double kSendMicroseconds = 0.2;

constexpr int kOtherNode = 10'000'000;  // more than a kernel's process numbers

std::string json_text(const nlohmann::ordered_json& json) {
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::string hex(std::uint64_t value) {
  char digits[24];
  std::snprintf(digits, sizeof digits, "0x%llx", static_cast<unsigned long long>(value));
  return digits;
}

}  // namespace

ChromeTrace::ChromeTrace(std::FILE* file) : file_(file) {
  std::fputs("{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n", file_);
}

void ChromeTrace::write(const std::string& event) {
  std::fputs(std::exchange(empty_, false) ? "" : ",\n", file_);
  std::fputs(event.c_str(), file_);
}

int ChromeTrace::number_of(const std::string& node, const runtime::TraceOfProcess& process) {
  auto [known, fresh] = numbers_.try_emplace({node, process.pid}, process.pid);
  if (!fresh) return known->second;
  while (!taken_.insert(known->second).second) known->second += kOtherNode;
  const std::string name =
      process.name + " (pid " + std::to_string(process.pid) + " on " + node + ")";
  write(json_text({{"name", "process_name"},
                   {"ph", "M"},
                   {"pid", known->second},
                   {"tid", 0},
                   {"args", {{"name", name}}}}));
  return known->second;
}

void ChromeTrace::add(const std::string& node, std::int64_t behind_ns, std::uint64_t from_ns,
                      const runtime::TraceOfProcess& process) {
  lost_ += process.lost;
  const int pid = number_of(node, process);
  for (std::size_t at = 0; at + sizeof(runtime::activity::TraceEvent) <= process.events.size();
       at += sizeof(runtime::activity::TraceEvent)) {
    runtime::activity::TraceEvent event;
    std::memcpy(&event, process.events.data() + at, sizeof event);
    const std::int64_t begin =
        static_cast<std::int64_t>(event.begin_ns) + behind_ns - static_cast<std::int64_t>(from_ns);
    if (begin < 0) continue;
    const Place place{
        .pid = pid,
        .tid = event.tid,
        .name = event.method < process.names.size() ? process.names[event.method] : "?",
        .begin_us = static_cast<double>(begin) * 1e-3,
        .duration_us = static_cast<double>(event.duration_ns) * 1e-3};
    switch (event.kind) {
      case runtime::activity::EventKind::kRan: add_run(event, place); break;
      case runtime::activity::EventKind::kCalled: add_call(event, place); break;
      case runtime::activity::EventKind::kFetched: add_transfer(event, place); break;
      default: break;  // of a newer version
    }
  }
}

void ChromeTrace::write_at(const Place& place, const Json& event) {
  Json json = event;
  json.update(Json{{"pid", place.pid}, {"tid", place.tid}});
  write(json_text(json));
}

void ChromeTrace::add_run(const runtime::activity::TraceEvent& event, const Place& place) {
  ++calls_;
  write_at(place, {{"name", place.name},
                   {"cat", "call"},
                   {"ph", "X"},
                   {"ts", place.begin_us},
                   {"dur", place.duration_us},
                   {"args", {{"actor", hex(event.actor)}, {"failed", event.failed != 0}}}});
  write_at(place, {{"name", "call"},
                   {"cat", "flow"},
                   {"ph", "f"},
                   {"bp", "e"},
                   {"id", hex(event.flow)},
                   {"ts", place.begin_us}});
}

void ChromeTrace::add_call(const runtime::activity::TraceEvent& event, const Place& place) {
  const std::string id = hex(event.flow);
  write_at(place, {{"name", "send " + place.name},
                   {"cat", "send"},
                   {"ph", "X"},
                   {"ts", place.begin_us},
                   {"dur", kSendMicroseconds}});
  write_at(place,
           {{"name", "call"}, {"cat", "flow"}, {"ph", "s"}, {"id", id}, {"ts", place.begin_us}});
  write_at(place, {{"name", place.name},
                   {"cat", "wait"},
                   {"ph", "b"},
                   {"id", id},
                   {"ts", place.begin_us},
                   {"args", {{"failed", event.failed != 0}}}});
  write_at(place, {{"name", place.name},
                   {"cat", "wait"},
                   {"ph", "e"},
                   {"id", id},
                   {"ts", place.begin_us + place.duration_us}});
}

// Several are in flight at once: as spans with ids rather than slices of a thread.
void ChromeTrace::add_transfer(const runtime::activity::TraceEvent& event, const Place& place) {
  ++transfers_;
  const std::string id = hex(event.number);
  write_at(place, {{"name", place.name},
                   {"cat", "transfer"},
                   {"ph", "b"},
                   {"id", id},
                   {"ts", place.begin_us},
                   {"args", {{"bytes", event.bytes}, {"failed", event.failed != 0}}}});
  write_at(place, {{"name", place.name},
                   {"cat", "transfer"},
                   {"ph", "e"},
                   {"id", id},
                   {"ts", place.begin_us + place.duration_us}});
}

runtime::Status ChromeTrace::end() {
  std::fputs("\n]}\n", file_);
  std::fflush(file_);
  return std::ferror(file_) == 0 ? runtime::Status()
                                 : runtime::errno_status(errno, "writing the trace");
}

}  // namespace placement
