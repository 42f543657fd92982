#include "runtime/process/group_watch.h"

#include <unistd.h>

#include <utility>

#include "runtime/process/process_info.h"

namespace runtime {

namespace {

// Between two looks: a group whose processes begin and end all the time costs no more than that.
constexpr auto kGroupLook = std::chrono::milliseconds(20);

}  // namespace

GroupWatch::GroupWatch(EventLoop& loop, pid_t group, pid_t except, std::function<void()> ended)
    : loop_(loop),
      group_(group),
      except_(except),
      ended_(std::move(ended)),
      timer_(loop.context()) {
  loop_.post(lifetime_.guard([this] { look(); }));
}

void GroupWatch::look() {
  members_.clear();
  running_ = 0;
  bool is_there = false;
  for (const pid_t pid : processes_of_group(group_)) {
    if (pid == except_) continue;
    auto watch = ProcessWatch::start(loop_, pid, [this] {
      if (--running_ == 0) look_soon();
    });
    // The number may be another process's since.
    if (::getpgid(pid) != group_) continue;
    is_there = true;
    if (!watch.ok()) continue;  // no descriptor is left for it
    members_.push_back(*std::move(watch));
    ++running_;
  }
  if (!is_there) return std::exchange(ended_, nullptr)();
  if (running_ == 0) look_soon();
}

void GroupWatch::look_soon() {
  timer_.expires_after(kGroupLook);
  timer_.async_wait(lifetime_.guard([this](boost::system::error_code ec) {
    if (!ec) look();
  }));
}

}  // namespace runtime
