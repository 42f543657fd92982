#include "delaying_link.h"

#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace runtime::test {
namespace {

constexpr std::size_t kPacketBytesMax = 65536;
constexpr std::size_t kWaitingMax = 20'000;  // what comes on top is lost, as in any queue

FileDescriptor open_tap(const Machine& machine, const std::string& device) {
  FileDescriptor tap;
  machine.inside([&] {
    FileDescriptor opened(::open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC));
    ifreq request{};
    request.ifr_flags = IFF_TAP | IFF_NO_PI;
    std::strncpy(request.ifr_name, device.c_str(), IFNAMSIZ - 1);
    if (opened && ::ioctl(opened.get(), TUNSETIFF, &request) == 0) tap = std::move(opened);
  });
  return tap;
}

}  // namespace

Result<std::unique_ptr<DelayingLink>> DelayingLink::create(const Machine& a,
                                                           const std::string& device_a,
                                                           const Machine& b,
                                                           const std::string& device_b,
                                                           unsigned seed) {
  FileDescriptor first = open_tap(a, device_a), second = open_tap(b, device_b);
  if (!first || !second)
    return unavailable("no TAP devices can be made here (it takes root and /dev/net/tun)");
  return std::unique_ptr<DelayingLink>(new DelayingLink(std::move(first), std::move(second), seed));
}

DelayingLink::DelayingLink(FileDescriptor a, FileDescriptor b, unsigned seed)
    : ends_{std::move(a), std::move(b)}, random_(seed) {
  thread_ = std::thread([this] { carry(); });
}

DelayingLink::~DelayingLink() {
  stopping_ = true;
  thread_.join();
}

void DelayingLink::set_quality(const LinkQuality& quality) {
  std::lock_guard lock(mutex_);
  quality_ = quality;
}

void DelayingLink::carry() {
  while (!stopping_) {
    const auto now = Clock::now();
    auto patience = std::chrono::microseconds(20'000);
    if (!waiting_.empty())
      patience = std::clamp(
          std::chrono::duration_cast<std::chrono::microseconds>(waiting_.top().due - now),
          std::chrono::microseconds(0), patience);
    pollfd fds[2] = {{ends_[0].get(), POLLIN, 0}, {ends_[1].get(), POLLIN, 0}};
    const timespec wait{0, patience.count() * 1000};
    ::ppoll(fds, 2, &wait, nullptr);
    for (int end = 0; end < 2; ++end) {
      if (fds[end].revents & POLLIN) take(end);
    }
    deliver();
  }
}

void DelayingLink::take(int from) {
  std::lock_guard lock(mutex_);
  char block[kPacketBytesMax];
  for (ssize_t got = ::read(ends_[from].get(), block, sizeof block); got > 0;
       got = ::read(ends_[from].get(), block, sizeof block)) {
    if (waiting_.size() >= kWaitingMax ||
        std::uniform_real_distribution<>(0, 1)(random_) < quality_.loss)
      continue;
    const auto more = std::chrono::microseconds(
        std::uniform_int_distribution<std::int64_t>(0, quality_.jitter.count())(random_));
    waiting_.push({Clock::now() + quality_.delay + more, next_++, 1 - from,
                   std::vector<char>(block, block + got)});
  }
}

void DelayingLink::deliver() {
  while (!waiting_.empty() && waiting_.top().due <= Clock::now()) {
    const Packet& packet = waiting_.top();
    if (packet.number < delivered_[packet.to]) ++reordered_;
    delivered_[packet.to] = std::max(delivered_[packet.to], packet.number);
    if (::write(ends_[packet.to].get(), packet.bytes.data(), packet.bytes.size()) < 0) {
      // The device's queue is full, or it is down: lost.
    }
    waiting_.pop();
  }
}

}  // namespace runtime::test
