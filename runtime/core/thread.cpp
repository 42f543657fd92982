#include "runtime/core/thread.h"

#include <utility>

#include "runtime/core/simulation.h"

namespace runtime {

Thread::Thread(std::function<void()> body) {
  if (Simulation* simulated = simulation())
    simulated_ = simulated->start_thread(std::move(body));
  else
    thread_ = std::thread(std::move(body));
}

void Thread::join() {
  if (simulated_ != 0)
    simulation()->join_thread(std::exchange(simulated_, 0));
  else
    thread_.join();
}

}  // namespace runtime
