#include "runtime/control/key_value_client.h"

#include <utility>

namespace runtime {

void KeyValueClient::put(std::string key, std::string value, Deadline deadline, Done done) {
  node_.tell(control::KvPut{std::move(key), std::move(value)}, deadline, std::move(done));
}

void KeyValueClient::get(std::string key, bool wait, Deadline deadline,
                         Callback<std::string> done) {
  node_.ask(control::KvGet{std::move(key), wait}, deadline, std::move(done));
}

void KeyValueClient::add(std::string key, std::int64_t amount, Deadline deadline,
                         Callback<std::int64_t> done) {
  node_.ask(control::KvAdd{std::move(key), amount}, deadline, std::move(done));
}

void KeyValueClient::remove(std::string key, Deadline deadline, Callback<bool> done) {
  node_.ask<std::int64_t>(control::KvDelete{std::move(key)}, deadline,
                          [done = std::move(done)](Result<std::int64_t> was_there) {
                            if (was_there.ok())
                              done(*was_there != 0);
                            else
                              done(was_there.status());
                          });
}

}  // namespace runtime
