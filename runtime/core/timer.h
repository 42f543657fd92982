// Timer: asio::steady_timer on the runtime's clock.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <utility>

#include "runtime/core/asio.h"
#include "runtime/core/clock.h"
#include "runtime/core/simulation.h"

namespace runtime {

/// In a simulation the simulated clock fires it; nothing else differs. One wait at a time. Not
/// thread-safe.
class Timer {
 public:
  /// `place`: an io_context or an executor.
  template <class Place>
  explicit Timer(Place&& place) : timer_(std::forward<Place>(place)) {}
  template <class Place>
  Timer(Place&& place, Deadline at) : timer_(std::forward<Place>(place)) {
    expires_at(at);
  }
  template <class Place>
  Timer(Place&& place, Deadline::duration after)
      : Timer(std::forward<Place>(place), deadline_after(after)) {}
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;
  ~Timer() { forget(); }

  /// A pending wait is cancelled.
  void expires_at(Deadline at) {
    forget();
    at_ = at;
    timer_.expires_at(simulation() ? Deadline::max() : at);
  }
  void expires_after(Deadline::duration after) { expires_at(deadline_after(after)); }
  Deadline expiry() const { return at_; }
  void cancel() {
    forget();
    timer_.cancel();
  }

  /// As asio::steady_timer::async_wait.
  template <class Token>
  auto async_wait(Token&& token) {
    auto initiate = [this](auto handler) { wait(std::move(handler)); };
    return asio::async_initiate<Token, void(boost::system::error_code)>(std::move(initiate), token);
  }

 private:
  struct Alarm {
    std::uint64_t id = 0;  // of the simulation; 0 once it has fired
    bool rang = false;
  };

  template <class Handler>
  void wait(Handler handler) {
    if (!simulation()) return timer_.async_wait(std::move(handler));
    forget();
    alarm_ = std::make_shared<Alarm>();
    alarm_->id = simulation()->call_at(at_, [this, alarm = alarm_] {
      alarm->id = 0;
      alarm->rang = true;
      timer_.cancel();
    });
    auto executor = asio::get_associated_executor(handler, timer_.get_executor());
    auto slot = asio::get_associated_cancellation_slot(handler);
    auto ended = [alarm = alarm_,
                  handler = std::move(handler)](boost::system::error_code ec) mutable {
      if (alarm->rang) ec = {};
      std::move(handler)(ec);
    };
    timer_.async_wait(
        asio::bind_cancellation_slot(slot, asio::bind_executor(executor, std::move(ended))));
  }

  void forget() {
    if (alarm_ && alarm_->id != 0) simulation()->forget(std::exchange(alarm_->id, 0));
  }

  asio::steady_timer timer_;
  Deadline at_{};
  std::shared_ptr<Alarm> alarm_;  // of a simulated wait
};

}  // namespace runtime
