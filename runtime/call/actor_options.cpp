#include "runtime/call/actor_options.h"

#include <cmath>
#include <string>
#include <utility>

namespace runtime {

namespace {

constexpr std::size_t kActorNameBytesMax = 1024;

bool is_amount(double value) { return std::isfinite(value) && value >= 0; }

Status no_amount(const std::string& name, double value) {
  return invalid_argument(name + " is " + std::to_string(value) +
                          ": expected a number of at least 0");
}

Status check_text(const std::string& name, const std::string& value) {
  if (value.size() > kActorNameBytesMax)
    return invalid_argument(name + " has " + std::to_string(value.size()) + " bytes, of at most " +
                            std::to_string(kActorNameBytesMax));
  for (char c : value) {
    if (static_cast<unsigned char>(c) < 0x20)
      return invalid_argument(name + " has a control character in it");
  }
  return {};
}

}  // namespace

Status check_amounts(double cpus, double gpus, const ResourceMap& resources) {
  if (!is_amount(cpus)) return no_amount("cpus (the resource CPU)", cpus);
  if (!is_amount(gpus)) return no_amount("gpus (the resource GPU)", gpus);
  for (const auto& [resource, value] : resources) {
    if (!is_amount(value)) return no_amount("resource \"" + resource + "\"", value);
  }
  return {};
}

Status ActorOptions::check() const {
  for (const auto& [what, value] :
       {std::pair("name", &name), {"name_space", &name_space}, {"log_prefix", &log_prefix}}) {
    if (Status status = check_text(what, *value); !status.ok()) return status;
  }
  if (max_restarts < -1)
    return invalid_argument("max_restarts is " + std::to_string(max_restarts) +
                            ": expected at least 0, or -1 for always");
  if (max_task_retries < -1)
    return invalid_argument("max_task_retries is " + std::to_string(max_task_retries) +
                            ": expected at least 0, or -1 for always");
  if (Status status = check_amounts(cpus, gpus, resources); !status.ok()) return status;
  for (const auto& [variable, value] : env) {
    if (variable.empty() || variable.find_first_of(std::string("=\0", 2)) != std::string::npos) {
      return invalid_argument("env: \"" + variable +
                              "\" cannot be the name of an environment variable");
    }
    if (value.find('\0') != std::string::npos)
      return invalid_argument("env: the value of \"" + variable + "\" has a zero byte in it");
  }
  if (create_timeout.count() <= 0)
    return invalid_argument("create_timeout is " + std::to_string(create_timeout.count()) +
                            " ms: expected more than 0");
  if (call_timeout.count() <= 0)
    return invalid_argument("call_timeout is " + std::to_string(call_timeout.count()) +
                            " ms: expected more than 0");
  return {};
}

}  // namespace runtime
