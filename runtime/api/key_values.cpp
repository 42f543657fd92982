#include "runtime/api/key_values.h"

#include <utility>

#include "runtime/call/process.h"
#include "runtime/control/key_value_client.h"

namespace runtime {

Status KeyValueApi::put(const std::string& key, std::string value, Until until) {
  if (Status status = connection_.require_started(); !status.ok()) return status;
  return connection_.process->ask([&](NodeClient::Done done) {
    KeyValueClient(connection_.process->node())
        .put(key, std::move(value), bounded(until.at()), std::move(done));
  });
}

Result<std::string> KeyValueApi::get(const std::string& key, Until until) {
  if (Status status = connection_.require_started(); !status.ok()) return status;
  return connection_.process->ask<std::string>([&](NodeClient::Callback<std::string> done) {
    KeyValueClient(connection_.process->node())
        .get(key, true, bounded(until.at()), std::move(done));
  });
}

Result<std::string> KeyValueApi::try_get(const std::string& key, Until until) {
  if (Status status = connection_.require_started(); !status.ok()) return status;
  return connection_.process->ask<std::string>([&](NodeClient::Callback<std::string> done) {
    KeyValueClient(connection_.process->node())
        .get(key, false, bounded(until.at()), std::move(done));
  });
}

Result<std::int64_t> KeyValueApi::add(const std::string& key, std::int64_t amount, Until until) {
  if (Status status = connection_.require_started(); !status.ok()) return status;
  return connection_.process->ask<std::int64_t>([&](NodeClient::Callback<std::int64_t> done) {
    KeyValueClient(connection_.process->node())
        .add(key, amount, bounded(until.at()), std::move(done));
  });
}

Result<bool> KeyValueApi::remove(const std::string& key, Until until) {
  if (Status status = connection_.require_started(); !status.ok()) return status;
  return connection_.process->ask<bool>([&](NodeClient::Callback<bool> done) {
    KeyValueClient(connection_.process->node()).remove(key, bounded(until.at()), std::move(done));
  });
}

}  // namespace runtime
