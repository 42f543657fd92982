// The recorder of a process: scopes in the code that become spans while a profile is on, and cost
// one comparison while none is. One a process, since a scope deep inside a kernel's thread has none
// to ask; what decides when it runs is the trainer.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "rl/profile/recording.h"

namespace rl::profile {

namespace detail {
extern std::atomic<std::uint32_t> session;  // which recording is on; 0: none
}

/// Whether a recording is on.
inline bool recording() { return detail::session.load(std::memory_order_relaxed) != 0; }

/// Begins a recording that keeps `spans_max` spans at most, three quarters of them kernels; what
/// was recorded before is forgotten. Thread-safe.
ProfileStarted start(std::int64_t spans_max);

/// Ends it. Spans that are still open are no part of it. Thread-safe.
Recording stop();

/// As start() and stop() for what a worker is asked; one that is not wanted records nothing.
ProfileStarted start(const ProfileRequest& request);

/// The name of the machine whose steady clock this is: the same for all processes since one boot.
std::string machine_name();

std::int64_t now_ns();

/// Adds a span of this thread that has ended; nothing while no recording is on.
void add(std::string_view name, SpanKind kind, std::int64_t begin_ns, std::int64_t end_ns);

/// Its lifetime is the span. `name` must outlive it.
class Span {
 public:
  explicit Span(const char* name, SpanKind kind = SpanKind::kOperation)
      : name_(name), kind_(kind), session_(detail::session.load(std::memory_order_relaxed)) {
    if (session_ != 0) begin_ns_ = now_ns();
  }
  ~Span() {
    if (session_ != 0) end();
  }
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;

 private:
  void end() const;

  const char* name_;
  SpanKind kind_;
  std::uint32_t session_;
  std::int64_t begin_ns_ = 0;
};

}  // namespace rl::profile
