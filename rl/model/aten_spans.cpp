#include "rl/model/aten_spans.h"

#include <ATen/record_function.h>

#include <memory>
#include <mutex>
#include <string>

#include "rl/profile/recorder.h"

namespace rl {
namespace {

// The name is copied, since that of a backward node is gone before the operator ends.
struct OpenSpan : at::ObserverContext {
  std::int64_t begin_ns = 0;
  std::string name;
};

std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction& function) {
  if (!profile::recording()) return nullptr;
  auto span = std::make_unique<OpenSpan>();
  span->name = function.name();
  span->begin_ns = profile::now_ns();
  return span;
}

void end(const at::RecordFunction& function, at::ObserverContext* context) {
  if (context == nullptr) return;
  const auto* span = static_cast<const OpenSpan*>(context);
  const auto kind = function.scope() == at::RecordScope::BACKWARD_FUNCTION
                        ? profile::SpanKind::kOperation
                        : profile::SpanKind::kKernel;
  profile::add(span->name, kind, span->begin_ns, profile::now_ns());
}

struct Callback {
  std::mutex mutex;
  at::CallbackHandle handle = at::INVALID_CALLBACK_HANDLE;
};

Callback& callback() {
  static Callback only;
  return only;
}

}  // namespace

void record_aten_spans() {
  const std::lock_guard lock(callback().mutex);
  if (callback().handle != at::INVALID_CALLBACK_HANDLE) return;
  callback().handle = at::addGlobalCallback(
      at::RecordFunctionCallback(begin, end)
          .scopes({at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION}));
}

void forget_aten_spans() {
  const std::lock_guard lock(callback().mutex);
  if (callback().handle == at::INVALID_CALLBACK_HANDLE) return;
  at::removeCallback(callback().handle);
  callback().handle = at::INVALID_CALLBACK_HANDLE;
}

}  // namespace rl
