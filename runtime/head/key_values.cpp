#include "runtime/head/key_values.h"

#include <charconv>
#include <utility>

namespace runtime {

Status KeyValues::put(JobId job, const std::string& key, std::string value) {
  if (!job.is_none() && !context_.tables.job_serves(job))
    return cancelled("job " + job.short_hex() + " has ended");
  if (key.empty() || key.size() > context_.options.key_bytes_max) {
    return invalid_argument("a key has 1 to " + std::to_string(context_.options.key_bytes_max) +
                            " bytes, not " + std::to_string(key.size()));
  }
  if (value.size() > context_.options.value_bytes_max) {
    return invalid_argument("the value of '" + key + "' has " + std::to_string(value.size()) +
                            " bytes; at most " + std::to_string(context_.options.value_bytes_max) +
                            " fit (put larger data into an object)");
  }
  if (!context_.tables.pairs().find(job, key) &&
      context_.tables.pairs().count(job) >= context_.options.keys_per_job_max) {
    return resource_exhausted("job " + job.short_hex() + " has " +
                              std::to_string(context_.tables.pairs().count(job)) +
                              " keys, the most there may be");
  }
  context_.commit(command::PutKey{job, key, std::move(value)});
  for (ControlAnswerer& waiting : waiters_.take({job, key}))
    waiting(ControlAnswer{*context_.tables.pairs().find(job, key)});
  return {};
}

void KeyValues::serve(const HeadCall& call, control::KvPut& body, ControlAnswerer answer) {
  Status status = put(call.job, body.key, std::move(body.value));
  if (status.ok())
    answer(ControlAnswer{});
  else
    answer(status);
}

void KeyValues::serve(const HeadCall& call, control::KvGet& body, ControlAnswerer answer) {
  if (const std::string* value = context_.tables.pairs().find(call.job, body.key))
    return answer(ControlAnswer{*value});
  if (!body.wait) return answer(not_found("no key '" + body.key + "'"));
  waiters_.add({call.job, body.key}, call.deadline, std::move(answer));
}

void KeyValues::serve(const HeadCall& call, control::KvAdd& body, ControlAnswerer answer) {
  std::int64_t number = 0;
  if (const std::string* value = context_.tables.pairs().find(call.job, body.key)) {
    auto [end, error] = std::from_chars(value->data(), value->data() + value->size(), number);
    if (error != std::errc() || end != value->data() + value->size()) {
      return answer(invalid_argument("the value of '" + body.key + "' is not a number"));
    }
  }
  std::int64_t sum;
  if (__builtin_add_overflow(number, body.amount, &sum))
    return answer(invalid_argument("adding to '" + body.key + "' overflows"));
  Status status = put(call.job, body.key, std::to_string(sum));
  if (status.ok())
    answer(ControlAnswer{sum});
  else
    answer(status);
}

void KeyValues::serve(const HeadCall& call, control::KvDelete& body, ControlAnswerer answer) {
  bool was_there = context_.tables.pairs().find(call.job, body.key) != nullptr;
  if (was_there) context_.commit(command::DeleteKey{call.job, body.key});
  answer(ControlAnswer{std::int64_t{was_there}});
}

void KeyValues::tick(Deadline now) {
  for (auto& [key, answer] : waiters_.expire(now))
    answer(deadline_exceeded("no process has set the key '" + key.second + "'"));
}

}  // namespace runtime
