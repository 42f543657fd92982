// Logging: spdlog behind one macro. A disabled level costs one call and one comparison.
#ifndef STARLING_RUNTIME_CORE_LOG_H
#define STARLING_RUNTIME_CORE_LOG_H

#include <fmt/core.h>

#include <string>

namespace runtime {

/// Sends the process's log to stderr, as lines "2026-01-31 12:00:00.123 I node 7f3a: text".
/// `role` names the process ("head", "node 7f3a", "worker 12"); level from STARLING_LOG (trace,
/// debug, info, warn, error), default info. STARLING_LOG_FORMAT=json: lines like
/// {"time":"2026-01-31T12:00:00.123Z","level":"info","role":"node
/// 7f3a","pid":12,"thread":12,"text":"..."} instead. Call once in main, before any thread starts.
void start_log(const std::string& role);

namespace log_detail {

enum class Level { kDebug, kInfo, kWarn, kError };

bool is_enabled(Level level);
/// Formats and writes. Not a template: spdlog and the formatting code are compiled once, not in
/// every file that logs.
void write(Level level, fmt::string_view format, fmt::format_args arguments);

template <class... Args>
void log(Level level, fmt::format_string<Args...> format, Args&&... args) {
  if (is_enabled(level)) write(level, format, fmt::make_format_args(args...));
}

inline constexpr Level debug = Level::kDebug;
inline constexpr Level info = Level::kInfo;
inline constexpr Level warn = Level::kWarn;
inline constexpr Level error = Level::kError;

}  // namespace log_detail
}  // namespace runtime

#endif  // STARLING_RUNTIME_CORE_LOG_H

// Outside the include guard. LibTorch's logging header defines a LOG too, and the header that a
// file includes last must win. That holds even if its unity batch (docs/adr/0040) included this one
// before.
#undef LOG
/// LOG(info, "node {} joined", id.short_hex());
#define LOG(level, ...) ::runtime::log_detail::log(::runtime::log_detail::level, __VA_ARGS__)
