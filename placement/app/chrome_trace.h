// ChromeTrace: recorded activity in the format that Perfetto and chrome://tracing open.
#pragma once

#include <cstdint>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>

#include "runtime/control/observe.h"
#include "runtime/observe/activity_layout.h"

namespace placement {

/// Writes events as they come; times in the file are of one clock, from its first event's on.
/// Everything in a TraceOfProcess may be malformed.
class ChromeTrace {
 public:
  explicit ChromeTrace(std::FILE* file);
  ChromeTrace(const ChromeTrace&) = delete;
  ChromeTrace& operator=(const ChromeTrace&) = delete;

  /// `node`: for the name of the process. `behind_ns`: what is to be added to the node's clock to
  /// make it the common one. `from_ns`: of the common clock, becomes 0; what began earlier is left
  /// out.
  void add(const std::string& node, std::int64_t behind_ns, std::uint64_t from_ns,
           const runtime::TraceOfProcess& process);
  /// Closes the array. Errors: kResourceExhausted when something could not be written.
  runtime::Status end();

  std::uint64_t calls() const { return calls_; }
  std::uint64_t transfers() const { return transfers_; }
  std::uint64_t lost() const { return lost_; }

 private:
  using Json = nlohmann::ordered_json;

  /// Where and when something ran.
  struct Place {
    int pid = 0;
    std::uint32_t tid = 0;
    std::string name;
    double begin_us = 0;
    double duration_us = 0;
  };

  void add_run(const runtime::activity::TraceEvent& event, const Place& place);
  void add_call(const runtime::activity::TraceEvent& event, const Place& place);
  void add_transfer(const runtime::activity::TraceEvent& event, const Place& place);
  void write_at(const Place& place, const Json& event);
  void write(const std::string& event);
  /// The process's number in the file: its own, unless a process of another node has that.
  int number_of(const std::string& node, const runtime::TraceOfProcess& process);

  std::FILE* const file_;
  bool empty_ = true;
  std::map<std::pair<std::string, std::int32_t>, int> numbers_;
  std::set<int> taken_;
  std::uint64_t calls_ = 0, transfers_ = 0, lost_ = 0;
};

}  // namespace placement
