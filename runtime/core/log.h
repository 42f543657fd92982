// Logging: spdlog behind one macro, so that a disabled level costs one comparison.
#pragma once

#include <spdlog/spdlog.h>

#include <string>

namespace runtime {

/// Sets the process's log to stderr with lines "2026-01-31 12:00:00.123 I node 7f3a: text".
/// `role` names the process ("head", "node 7f3a", "worker 12"); level from STARLING_LOG (trace, debug, info, warn, error), default info.
/// STARLING_LOG_FORMAT=json: lines like {"time":"2026-01-31T12:00:00.123Z","level":"info","role":"node 7f3a","pid":12,"thread":12,"text":"..."} instead.
/// Call once in main, before any thread starts.
void start_log(const std::string& role);

}  // namespace runtime

/// LOG(info, "node {} joined", id.short_hex());
#undef LOG  // LibTorch's logging header has one; include it before ours
#define LOG(level, ...) ::spdlog::level(__VA_ARGS__)
