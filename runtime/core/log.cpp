#include "runtime/core/log.h"

#include <spdlog/sinks/stdout_sinks.h>

#include <cstdlib>
#include <memory>

namespace runtime {

void start_log(const std::string& role) {
  auto logger = std::make_shared<spdlog::logger>("starling", std::make_shared<spdlog::sinks::stderr_sink_mt>());
  std::string escaped;  // '%' starts a spdlog flag
  for (char c : role) escaped += c == '%' ? "%%" : std::string(1, c);
  logger->set_pattern("%Y-%m-%d %H:%M:%S.%e %L " + escaped + ": %v");
  const char* level = std::getenv("STARLING_LOG");
  logger->set_level(level ? spdlog::level::from_str(level) : spdlog::level::info);
  logger->flush_on(spdlog::level::warn);
  spdlog::set_default_logger(std::move(logger));
}

}  // namespace runtime
