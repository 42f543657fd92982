#include "runtime/transport/block_until.h"

#include <utility>

namespace runtime {
namespace {
thread_local ThreadServer* server_of_thread = nullptr;
}

ThreadServer* ThreadServer::exchange_current(ThreadServer* next) {
  return std::exchange(server_of_thread, next);
}

bool block_until(EventLoop& loop, Event& event, Deadline deadline) {
  if (event.is_set()) return true;
  return server_of_thread != nullptr ? server_of_thread->block_until(loop, event, deadline)
                                     : loop.run_until(event, deadline);
}

}  // namespace runtime
