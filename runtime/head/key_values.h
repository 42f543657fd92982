// KeyValues: the key-value pairs of jobs, and who waits for one.
#pragma once

#include <string>
#include <utility>

#include "runtime/control/control.h"
#include "runtime/head/head_context.h"
#include "runtime/head/waiters.h"

namespace runtime {

class KeyValues {
 public:
  explicit KeyValues(const HeadContext& context) : context_(context) {}

  void serve(const HeadCall& call, control::KvPut& body, ControlAnswerer answer);
  void serve(const HeadCall& call, control::KvGet& body, ControlAnswerer answer);
  void serve(const HeadCall& call, control::KvAdd& body, ControlAnswerer answer);
  void serve(const HeadCall& call, control::KvDelete& body, ControlAnswerer answer);

  void tick(Deadline now);
  Deadline next_tick() const { return waiters_.earliest(); }

 private:
  Status put(JobId job, const std::string& key, std::string value);

  const HeadContext& context_;
  Waiters<std::pair<JobId, std::string>, ControlAnswerer> waiters_;
};

}  // namespace runtime
