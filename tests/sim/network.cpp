#include "network.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

#include "runtime/core/check.h"
#include "runtime/transport/frame.h"
#include "runtime/transport/handshake.h"
#include "world.h"

namespace sim {

using runtime::Deadline;
using runtime::Endpoint;
using runtime::FileDescriptor;

namespace {

// A fault for about one in this many of the things that can go wrong.
constexpr std::uint64_t kRefusedOneIn = 60;
constexpr std::uint64_t kLostOneIn = 60;
constexpr std::uint64_t kSlowOneIn = 25;
constexpr std::size_t kPieceBytesMax = 64 << 10;

std::pair<FileDescriptor, FileDescriptor> socket_pair() {
  int fds[2];
  CHECK(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) == 0);
  return {FileDescriptor(fds[0]), FileDescriptor(fds[1])};
}

/// As a socket pair, of which the first one's peer has a name: what stands for a TCP connection.
std::pair<FileDescriptor, FileDescriptor> named_pair(const std::string& name) {
  const auto abstract = [](const std::string& text, sockaddr_un& address) {
    address.sun_family = AF_UNIX;
    CHECK(text.size() + 1 < sizeof address.sun_path);
    std::memcpy(address.sun_path + 1, text.data(), text.size());
    return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
  };
  static const FileDescriptor listener = [&] {
    FileDescriptor fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    const socklen_t size = abstract("starling-sim-" + std::to_string(::getpid()), address);
    CHECK(::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), size) == 0);
    CHECK(::listen(fd.get(), 16) == 0);
    return fd;
  }();
  FileDescriptor caller(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_un own{}, to{};
  // Unique on this machine, where other simulations may run.
  const socklen_t own_size = abstract(name + "/" + std::to_string(::getpid()), own);
  const socklen_t to_size = abstract("starling-sim-" + std::to_string(::getpid()), to);
  CHECK(::bind(caller.get(), reinterpret_cast<sockaddr*>(&own), own_size) == 0);
  CHECK(::connect(caller.get(), reinterpret_cast<sockaddr*>(&to), to_size) == 0);
  FileDescriptor callee(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  CHECK(static_cast<bool>(callee));
  return {std::move(callee), std::move(caller)};
}

constexpr std::chrono::seconds kGivenUpAfter{12};

/// An epoll event's data: which end of which connection.
std::uint64_t tag(std::uint64_t link, int end) {
  return link << 1 | static_cast<std::uint64_t>(end);
}

}  // namespace

Network::Network(World& world) : world_(world), epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
  CHECK(static_cast<bool>(epoll_));
}

Network::~Network() = default;

// -- Connections

int Network::listen(Process* owner, Endpoint& at, std::function<void(int)> accepted) {
  if (!at.is_unix() && at.port == 0) at.port = next_port_++;
  const bool added =
      listeners_.try_emplace(at.to_string(), Listening{owner, std::move(accepted), next_id_++})
          .second;
  return added ? 0 : EADDRINUSE;
}

void Network::stop_listening(const Endpoint& at) {
  auto found = listeners_.find(at.to_string());
  if (found != listeners_.end() && found->second.owner == world_.current()) listeners_.erase(found);
}

void Network::connect(Process* from, const Endpoint& to, std::function<void(int, int)> done) {
  const bool local = to.is_unix();
  const std::string where = to.to_string();
  auto delay = local ? world_.random().micros(1, 200) : world_.random().micros(30, 1500);
  if (from && from->crashed) {  // it has no network any more
    world_.call_at(world_.now(), [done = std::move(done)] { done(-1, ENETUNREACH); });
    return;
  }
  if (world_.faults && !local) {
    if (world_.random().one_in(kLostOneIn)) {
      world_.note("lost: connect to " + where);
      // The system tries for long; the caller's own deadline is sooner.
      world_.call_at(world_.now() + std::chrono::seconds(130),
                     [done = std::move(done)] { done(-1, ETIMEDOUT); });
      return;
    }
    if (world_.random().one_in(kRefusedOneIn)) {
      world_.note("refused: connect to " + where);
      world_.call_at(world_.now() + delay, [done = std::move(done)] { done(-1, ECONNREFUSED); });
      return;
    }
    if (world_.random().one_in(kSlowOneIn)) delay += world_.random().micros(1000, 300'000);
  }
  world_.call_at(world_.now() + delay, [this, from, where, local, done = std::move(done)] {
    open(from, where, local, done);
  });
}

void Network::open(Process* from, const std::string& where, bool local,
                   const std::function<void(int, int)>& done) {
  auto listener = listeners_.find(where);
  if (from && (from->crashed || from->ended)) return done(-1, ENETUNREACH);
  if (listener == listeners_.end()) return done(-1, local ? ENOENT : ECONNREFUSED);
  auto link = std::make_shared<Link>();
  link->id = next_id_++;
  link->local = local;
  auto [caller, caller_side] = socket_pair();
  auto [callee, callee_side] =
      local ? socket_pair() : named_pair("10.9.9.9:" + std::to_string(++named_));
  link->ends[0].fd = std::move(caller_side);
  link->ends[0].process = from;
  link->ends[1].fd = std::move(callee_side);
  link->ends[1].process = listener->second.owner;
  for (int end : {0, 1}) {
    epoll_event event{};
    event.events = EPOLLIN | EPOLLRDHUP;
    event.data.u64 = tag(link->id, end);
    CHECK(::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, link->ends[end].fd.get(), &event) == 0);
  }
  links_[link->id] = link;
  // Without the folder, which each run has its own of.
  const std::string name = local ? where.substr(where.rfind('/') + 1) : where;
  world_.note("link " + std::to_string(link->id) + ": " + (from ? from->name : "none") + " -> " +
              listener->second.owner->name + " at " + name);
  listener->second.accepted(callee.release());
  done(caller.release(), 0);
}

// -- What is written

void Network::collect() {
  epoll_event events[64];
  for (;;) {
    const int count = ::epoll_wait(epoll_.get(), events, 64, 0);
    for (int i = 0; i < count; ++i) {
      auto found = links_.find(events[i].data.u64 >> 1);
      if (found != links_.end())
        read(LinkPtr(found->second), static_cast<int>(events[i].data.u64 & 1));
    }
    if (count < 64) return;
  }
}

void Network::read(const LinkPtr& link, int end) {
  End& from = link->ends[end];
  while (from.fd && !from.finished) {
    // Streams have no seams: what was written at once may arrive in parts.
    const std::size_t size =
        1 + world_.random().below(world_.random().one_in(4) ? 64 : kPieceBytesMax);
    Chunk chunk;
    chunk.bytes.resize(size);
    iovec piece{chunk.bytes.data(), size};
    alignas(cmsghdr) char control[CMSG_SPACE(runtime::kFdsPerFrameMax * sizeof(int))];
    msghdr header{};
    header.msg_iov = &piece;
    header.msg_iovlen = 1;
    header.msg_control = control;
    header.msg_controllen = sizeof control;
    const ssize_t got = ::recvmsg(from.fd.get(), &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (got <= 0) {
      from.finished = true;
      const End& other = link->ends[1 - end];
      if (!other.fd || (other.closed && other.finished)) return erase(link);
      Chunk last;
      last.end = true;
      if (!from.mute) push(link, 1 - end, std::move(last));
      // Nothing more comes from here, and the kernel would go on saying so.
      ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, from.fd.get(), nullptr);
      return;
    }
    for (cmsghdr* part = CMSG_FIRSTHDR(&header); part != nullptr;
         part = CMSG_NXTHDR(&header, part)) {
      for (std::size_t at = 0; at + sizeof(int) <= part->cmsg_len - CMSG_LEN(0);
           at += sizeof(int)) {
        int fd = -1;
        std::memcpy(&fd, CMSG_DATA(part) + at, sizeof fd);
        chunk.fds.emplace_back(fd);
      }
    }
    chunk.bytes.resize(static_cast<std::size_t>(got));
    if (end == 0 && link->preamble.size() < runtime::Preamble::kBytes) {
      const std::size_t missing = runtime::Preamble::kBytes - link->preamble.size();
      link->preamble.insert(
          link->preamble.end(), chunk.bytes.begin(),
          chunk.bytes.begin() + static_cast<std::ptrdiff_t>(std::min(missing, chunk.bytes.size())));
      if (link->preamble.size() == runtime::Preamble::kBytes) look_at_preamble(*link);
    }
    if (!from.mute) push(link, 1 - end, std::move(chunk));
  }
}

// A connection for a worker is handed over by its node: from then on it is the worker's.
void Network::look_at_preamble(Link& link) {
  auto preamble = runtime::Preamble::decode(link.preamble);
  if (!preamble.ok() || preamble->target.is_none()) return;
  for (const auto& process : world_.processes()) {
    if (process->worker == preamble->target) link.ends[1].process = process.get();
  }
}

void Network::push(const LinkPtr& link, int to, Chunk chunk) {
  End& end = link->ends[to];
  if (end.deaf || !end.fd) return;
  auto delay = link->local ? world_.random().micros(1, 120) : world_.random().micros(20, 800);
  if (world_.faults && world_.random().one_in(200))
    delay += world_.random().micros(1000, link->local ? 20'000 : 400'000);
  chunk.at = std::max(world_.now() + delay, end.last_at);
  end.last_at = chunk.at;
  end.to_deliver.push_back(std::move(chunk));
  arm(link, to);
}

void Network::arm(const LinkPtr& link, int to) {
  End& end = link->ends[to];
  if (end.armed || end.to_deliver.empty()) return;
  end.armed = true;
  world_.call_later(std::chrono::ceil<std::chrono::microseconds>(
                        std::max(end.to_deliver.front().at - world_.now(), Deadline::duration(0))),
                    [this, weak = std::weak_ptr<Link>(link), to] {
                      auto alive = weak.lock();
                      if (!alive) return;
                      alive->ends[to].armed = false;
                      deliver(alive, to);
                    });
}

void Network::deliver(const LinkPtr& link, int to) {
  End& end = link->ends[to];
  while (!end.to_deliver.empty()) {
    Chunk& chunk = end.to_deliver.front();
    if (chunk.at > world_.now()) break;
    if (end.deaf || !end.fd) {
      end.to_deliver.clear();
      break;
    }
    if (chunk.end) {
      end.to_deliver.clear();
      return end_link(link, to);
    }
    iovec piece{chunk.bytes.data() + chunk.sent, chunk.bytes.size() - chunk.sent};
    alignas(cmsghdr) char control[CMSG_SPACE(runtime::kFdsPerFrameMax * sizeof(int))];
    msghdr header{};
    header.msg_iov = &piece;
    header.msg_iovlen = 1;
    if (!chunk.fds.empty()) {
      header.msg_control = control;
      header.msg_controllen = CMSG_SPACE(chunk.fds.size() * sizeof(int));
      cmsghdr* rights = CMSG_FIRSTHDR(&header);
      rights->cmsg_level = SOL_SOCKET;
      rights->cmsg_type = SCM_RIGHTS;
      rights->cmsg_len = CMSG_LEN(chunk.fds.size() * sizeof(int));
      for (std::size_t i = 0; i < chunk.fds.size(); ++i) {
        const int fd = chunk.fds[i].get();
        std::memcpy(CMSG_DATA(rights) + i * sizeof fd, &fd, sizeof fd);
      }
    }
    const ssize_t put = ::sendmsg(end.fd.get(), &header, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (put < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      // The reader is slow: its window is full.
      chunk.at = end.last_at = std::max(world_.now() + std::chrono::milliseconds(1), end.last_at);
      break;
    }
    if (put < 0) {  // it has closed: it reads this no more
      end.to_deliver.clear();
      end.deaf = end.closed = true;
      if (end.finished && link->ends[1 - to].finished) erase(link);
      return;
    }
    chunk.fds.clear();
    chunk.sent += static_cast<std::size_t>(put);
    if (chunk.sent == chunk.bytes.size()) end.to_deliver.pop_front();
  }
  arm(link, to);
}

/// The other side has closed: this one reads the end, and may still write for a while.
void Network::end_link(const LinkPtr& link, int to) {
  End& end = link->ends[to];
  if (!end.fd) return;
  ::shutdown(end.fd.get(), SHUT_WR);
  end.deaf = true;
  if (end.finished) erase(link);
}

void Network::erase(const LinkPtr& link) {
  close_end(link->ends[0]);
  close_end(link->ends[1]);
  links_.erase(link->id);
}

void Network::close_end(End& end) {
  end.to_deliver.clear();
  end.fd.reset();  // takes it out of the epoll set as well
}

// -- Ends and faults

void Network::cut(Process& process, Farewell farewell) {
  std::erase_if(listeners_, [&](const auto& entry) { return entry.second.owner == &process; });
  std::vector<LinkPtr> own;
  for (const auto& [id, link] : links_) {
    if (link->ends[0].process == &process || link->ends[1].process == &process) own.push_back(link);
  }
  for (const LinkPtr& link : own) {
    const int here = link->ends[0].process == &process ? 0 : 1;
    End& near = link->ends[here];
    End& far = link->ends[1 - here];
    // The kernel of a machine that lives ends local connections in order.
    const Farewell how =
        link->local && farewell == Farewell::kSilence ? Farewell::kReset : farewell;
    // A reset overtakes what is under way, an end that was said before included.
    const bool said =
        how != Farewell::kOrderly && !far.to_deliver.empty() && far.to_deliver.back().end;
    if (how != Farewell::kOrderly) far.to_deliver.clear();
    near.mute = true;
    near.process = nullptr;
    if (how != Farewell::kSilence && (said || !near.finished)) {
      Chunk last;
      last.end = true;
      push(link, 1 - here, std::move(last));
    }
    near.finished = true;
    close_end(near);
    if (how == Farewell::kSilence) {
      // What keep-alive probes do, and later than any lease: the kernel of the other machine gives
      // the connection up.
      world_.call_later(kGivenUpAfter, [this, weak = std::weak_ptr<Link>(link), end = 1 - here] {
        auto silent = weak.lock();
        if (!silent) return;
        close_end(silent->ends[end]);
        links_.erase(silent->id);
      });
    }
    if (!far.fd || (how != Farewell::kSilence && far.finished)) {
      close_end(far);
      links_.erase(link->id);
    }
  }
}

std::string Network::describe() const {
  const auto name = [](const End& end) {
    return end.process ? end.process->name + (end.process->ended ? " (ended)" : "")
                       : std::string(end.fd ? "none" : "closed");
  };
  std::map<std::string, int> counts;
  for (const auto& [id, link] : links_)
    ++counts[name(link->ends[0]) + " to " + name(link->ends[1]) + (link->local ? "" : " by TCP")];
  std::string text;
  for (const auto& [ends, count] : counts)
    text += (text.empty() ? "" : ", ") + std::to_string(count) + " of " + ends;
  return text;
}

Network::LinkPtr Network::choose(bool remote_only) {
  std::vector<LinkPtr> candidates;
  for (const auto& [id, link] : links_) {
    const bool whole =
        link->ends[0].fd && link->ends[1].fd && !link->ends[0].finished && !link->ends[1].finished;
    if (whole && !(remote_only && link->local)) candidates.push_back(link);
  }
  if (candidates.empty()) return nullptr;
  return candidates[world_.random().below(candidates.size())];
}

bool Network::reset_one() {
  LinkPtr link = choose(true);
  if (!link) return false;
  world_.note("reset link " + std::to_string(link->id));
  // Anywhere in what is under way, so also in the middle of a frame.
  for (End& end : link->ends) close_end(end);
  links_.erase(link->id);
  return true;
}

bool Network::stall_one(std::chrono::microseconds time) {
  LinkPtr link = choose(true);
  if (!link) return false;
  world_.note("stall link " + std::to_string(link->id));
  for (End& end : link->ends) {
    end.last_at = std::max(end.last_at, world_.now() + time);
    for (Chunk& chunk : end.to_deliver) chunk.at = std::max(chunk.at, end.last_at);
  }
  return true;
}

bool Network::half_open_one() {
  LinkPtr link = choose(true);
  if (!link) return false;
  const int to = static_cast<int>(world_.random().below(2));
  world_.note("half-open link " + std::to_string(link->id) + " towards " + std::to_string(to));
  link->ends[to].deaf = true;
  link->ends[to].to_deliver.clear();
  return true;
}

}  // namespace sim
