#include "runtime/core/log.h"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <string_view>

#include "runtime/core/printable_text.h"

namespace runtime {

namespace {

/// A line of JSON for each message, for those who collect logs.
class JsonFormatter final : public spdlog::formatter {
 public:
  explicit JsonFormatter(std::string role) : role_(std::move(role)) {}

  void format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& to) override {
    using namespace std::chrono;
    const auto since = duration_cast<milliseconds>(message.time.time_since_epoch()).count();
    const std::time_t seconds = since / 1000;
    std::tm parts{};
    ::gmtime_r(&seconds, &parts);
    char time[64];
    std::snprintf(time, sizeof time, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", parts.tm_year + 1900,
                  parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec,
                  static_cast<int>(since % 1000));
    std::string line = "{\"time\":\"" + std::string(time) + "\",\"level\":\"";
    const auto level = spdlog::level::to_string_view(message.level);
    line.append(level.data(), level.size());
    line += "\",\"role\":" + quoted(role_) + ",\"pid\":" + std::to_string(::getpid()) +
            ",\"thread\":" + std::to_string(message.thread_id) + ",\"text\":" +
            quoted(std::string_view(message.payload.data(), message.payload.size())) + "}\n";
    line = printable_json(line);
    to.append(line.data(), line.data() + line.size());
  }
  std::unique_ptr<spdlog::formatter> clone() const override {
    return std::make_unique<JsonFormatter>(role_);
  }

 private:
  /// printable_json() does the rest.
  static std::string quoted(std::string_view text) {
    std::string out = "\"";
    for (char c : text) {
      if (c == '"' || c == '\\') {
        out += '\\';
        out += c;
      } else if (static_cast<unsigned char>(c) < 0x20) {
        char code[8];
        std::snprintf(code, sizeof code, "\\u%04x", c);
        out += code;
      } else {
        out += c;
      }
    }
    return out + '"';
  }

  const std::string role_;
};

/// "%*": the message, which may have text of models and rewards, as a terminal may have it.
class TerminalMessage final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&,
              spdlog::memory_buf_t& to) override {
    const std::string text =
        terminal_text(STDERR_FILENO, {message.payload.data(), message.payload.size()});
    to.append(text.data(), text.data() + text.size());
  }
  std::unique_ptr<spdlog::custom_flag_formatter> clone() const override {
    return std::make_unique<TerminalMessage>();
  }
};

bool started = false;  // written before any thread starts, or while ensure_started() holds others

}  // namespace

void start_log(const std::string& role) {
  started = true;
  auto logger = std::make_shared<spdlog::logger>("starling",
                                                 std::make_shared<spdlog::sinks::stderr_sink_mt>());
  std::string escaped;  // '%' starts a spdlog flag
  for (char c : role) escaped += c == '%' ? "%%" : std::string(1, c);
  const char* format = std::getenv("STARLING_LOG_FORMAT");
  if (format && std::string_view(format) == "json") {
    logger->set_formatter(std::make_unique<JsonFormatter>(role));
  } else {
    auto lines = std::make_unique<spdlog::pattern_formatter>();
    lines->add_flag<TerminalMessage>('*').set_pattern("%Y-%m-%d %H:%M:%S.%e %L " + escaped +
                                                      ": %*");
    logger->set_formatter(std::move(lines));
  }
  const char* level = std::getenv("STARLING_LOG");
  logger->set_level(level ? spdlog::level::from_str(level) : spdlog::level::info);
  logger->flush_on(spdlog::level::warn);
  spdlog::set_default_logger(std::move(logger));
}

namespace log_detail {

namespace {

spdlog::level::level_enum spdlog_level(Level level) {
  switch (level) {
    case Level::kDebug: return spdlog::level::debug;
    case Level::kInfo: return spdlog::level::info;
    case Level::kWarn: return spdlog::level::warn;
    case Level::kError: break;
  }
  return spdlog::level::err;
}

/// spdlog's own default writes to stdout, among what commands print for programs.
void ensure_started() {
  static const bool once = [] {
    if (!started) start_log("starling");
    return true;
  }();
  static_cast<void>(once);
}

}  // namespace

bool is_enabled(Level level) {
  ensure_started();
  return spdlog::should_log(spdlog_level(level));
}

void write(Level level, fmt::string_view format, fmt::format_args arguments) {
  const std::string text = fmt::vformat(format, arguments);
  spdlog::log(spdlog_level(level), spdlog::string_view_t(text));
}

}  // namespace log_detail

}  // namespace runtime
