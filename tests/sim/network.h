// Network: the connections between simulated processes. A connection is two socket pairs with the
// network between them, so that the production code reads and writes real stream sockets. What it
// writes arrives later, in other pieces, or not at all.
//
// One stream neither drops, repeats nor reorders its bytes, as TCP does not; it stalls, breaks
// anywhere, or goes dead in one direction. Messages are lost, repeated and overtaken as they are in
// production: by retries over other connections, and by streams of different speed.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/core/clock.h"
#include "runtime/transport/endpoint.h"
#include "runtime/transport/file_descriptor.h"

namespace sim {

class World;
struct Process;
enum class Farewell;

class Network {
 public:
  explicit Network(World& world);
  ~Network();

  void connect(Process* from, const runtime::Endpoint& to, std::function<void(int, int)> done);
  int listen(Process* owner, runtime::Endpoint& at, std::function<void(int)> accepted);
  void stop_listening(const runtime::Endpoint& at);

  /// Takes what processes have written since. After every step.
  void collect();
  /// Ends what the process has, from the others' point of view at this moment.
  void cut(Process& process, Farewell farewell);

  // -- Faults, on a connection that the dice choose; false: there is none.
  bool reset_one();
  bool stall_one(std::chrono::microseconds time);
  bool half_open_one();

  std::size_t connections() const { return links_.size(); }
  /// "3 of driver 0 to node 1, ...".
  std::string describe() const;

 private:
  struct Chunk {
    runtime::Deadline at;
    std::vector<std::byte> bytes;
    std::vector<runtime::FileDescriptor> fds;
    std::size_t sent = 0;
    bool end = false;
  };
  /// One end of a connection: the network's side of the pair that a process has the other side of.
  struct End {
    runtime::FileDescriptor fd;
    Process* process = nullptr;
    std::deque<Chunk> to_deliver;  // to this end
    runtime::Deadline last_at = runtime::Deadline::min();
    bool deaf = false;      // nothing more arrives here
    bool mute = false;      // nothing more is taken from here
    bool finished = false;  // it writes nothing more
    bool closed = false;    // nor reads anything, as a delivery has shown
    bool armed = false;     // a delivery is due
  };
  struct Link {
    std::uint64_t id;
    bool local = false;               // a Unix socket
    End ends[2];                      // the caller's, the callee's
    std::vector<std::byte> preamble;  // the first bytes of the caller
    bool over() const { return !ends[0].fd && !ends[1].fd; }
  };
  struct Listening {
    Process* owner;
    std::function<void(int)> accepted;
    std::uint64_t id;
  };
  using LinkPtr = std::shared_ptr<Link>;

  void open(Process* from, const std::string& where, bool local,
            const std::function<void(int, int)>& done);
  void read(const LinkPtr& link, int end);
  void look_at_preamble(Link& link);
  void push(const LinkPtr& link, int to, Chunk chunk);
  void arm(const LinkPtr& link, int to);
  void deliver(const LinkPtr& link, int to);
  void end_link(const LinkPtr& link, int to);
  void erase(const LinkPtr& link);
  void close_end(End& end);
  LinkPtr choose(bool remote_only);

  World& world_;
  runtime::FileDescriptor epoll_;
  std::map<std::uint64_t, LinkPtr> links_;
  std::map<std::string, Listening> listeners_;
  std::uint64_t next_id_ = 1;
  std::uint16_t next_port_ = 20000;
  std::uint64_t named_ = 0;
};

}  // namespace sim
