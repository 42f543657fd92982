#include "runtime/process/process_watch.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>

#include "runtime/core/simulation.h"
#include "runtime/transport/file_descriptor.h"

namespace runtime {

struct ProcessWatch::State {
  State(EventLoop& loop, std::function<void()> callback)
      : pidfd(loop.context()), ended(std::move(callback)) {}
  asio::posix::stream_descriptor pidfd;
  std::function<void()> ended;  // empty once it has run, or is not wanted
};

Result<std::shared_ptr<ProcessWatch>> ProcessWatch::start(EventLoop& loop, pid_t process,
                                                          std::function<void()> ended) {
  auto state = std::make_shared<State>(loop, std::move(ended));
  std::shared_ptr<ProcessWatch> watch(new ProcessWatch(state));
  if (simulation()) return watch;
  const auto tell = [state] {
    if (auto callback = std::exchange(state->ended, nullptr)) callback();
  };
  FileDescriptor pidfd(static_cast<int>(::syscall(SYS_pidfd_open, process, 0)));
  if (!pidfd && errno == ESRCH) {
    loop.post(tell);
    return watch;
  }
  if (!pidfd) return errno_status(errno, "watching process " + std::to_string(process));
  state->pidfd.assign(pidfd.release());
  state->pidfd.async_wait(asio::posix::stream_descriptor::wait_read,
                          [tell](boost::system::error_code ec) {
                            if (!ec) tell();
                          });
  return watch;
}

ProcessWatch::~ProcessWatch() {
  state_->ended = nullptr;
  boost::system::error_code ignored;
  state_->pidfd.close(ignored);
}

}  // namespace runtime
