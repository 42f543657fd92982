// Two network devices joined by this process, which hands packets on after a delay: what a kernel
// without netem has for a long link.
#pragma once

#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace bench {

class DelayedTunnel {
 public:
  using Clock = std::chrono::steady_clock;

  /// Packets of one device come out of the other `delay` later, either way. Null where there are no
  /// TUN devices.
  static std::unique_ptr<DelayedTunnel> create(const std::array<std::string, 2>& devices,
                                               std::chrono::microseconds delay) {
    std::unique_ptr<DelayedTunnel> tunnel(new DelayedTunnel(delay));
    for (std::size_t end = 0; end < 2; ++end) {
      tunnel->files_[end] = open_device(devices[end]);
      if (tunnel->files_[end] < 0) return nullptr;
    }
    tunnel->thread_ = std::thread([&tunnel = *tunnel] { tunnel.carry(); });
    return tunnel;
  }
  DelayedTunnel(const DelayedTunnel&) = delete;
  DelayedTunnel& operator=(const DelayedTunnel&) = delete;
  ~DelayedTunnel() {
    ends_ = true;
    if (thread_.joinable()) thread_.join();
    for (const int file : files_)
      if (file >= 0) ::close(file);
  }

  /// The largest packet: few of them cost this process little.
  static constexpr int kPacketBytes = 60'000;

 private:
  struct Packet {
    Clock::time_point due;
    std::vector<std::byte> bytes;
  };

  explicit DelayedTunnel(std::chrono::microseconds delay) : delay_(delay) {}

  static int open_device(const std::string& name) {
    const int file = ::open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (file < 0) return file;
    ifreq request{};
    request.ifr_flags = IFF_TUN | IFF_NO_PI;
    name.copy(request.ifr_name, IFNAMSIZ - 1);
    if (::ioctl(file, TUNSETIFF, &request) == 0) return file;
    ::close(file);
    return -1;
  }

  void carry() {
    std::array<std::deque<Packet>, 2> on_their_way;  // by the device that they came from
    std::vector<std::byte> room(65'536);
    while (!ends_) {
      std::array<pollfd, 2> watched{};
      for (std::size_t end = 0; end < 2; ++end) watched[end] = {files_[end], POLLIN, 0};
      const timespec wait = until_due(on_their_way);
      (void)::ppoll(watched.data(), watched.size(), &wait, nullptr);
      for (std::size_t end = 0; end < 2; ++end) {
        for (ssize_t size; (size = ::read(files_[end], room.data(), room.size())) > 0;)
          on_their_way[end].push_back({Clock::now() + delay_, {room.begin(), room.begin() + size}});
        std::deque<Packet>& packets = on_their_way[end];
        for (; !packets.empty() && packets.front().due <= Clock::now(); packets.pop_front()) {
          const Packet& packet = packets.front();  // one that is lost TCP sends again
          if (::write(files_[1 - end], packet.bytes.data(), packet.bytes.size()) < 0) continue;
        }
      }
    }
  }

  static timespec until_due(const std::array<std::deque<Packet>, 2>& on_their_way) {
    auto wait = std::chrono::nanoseconds(std::chrono::milliseconds(20));
    for (const std::deque<Packet>& packets : on_their_way)
      if (!packets.empty())
        wait =
            std::min(wait, std::max(std::chrono::nanoseconds(0),
                                    std::chrono::nanoseconds(packets.front().due - Clock::now())));
    return {.tv_sec = 0, .tv_nsec = wait.count()};
  }

  const std::chrono::microseconds delay_;
  std::array<int, 2> files_ = {-1, -1};
  std::atomic<bool> ends_{false};
  std::thread thread_;
};

}  // namespace bench
