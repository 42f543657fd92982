// Ranks that are threads, each with a communicator.
#pragma once

#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "rl/comm/communicator.h"
#include "rl/comm/thread_links.h"

namespace rl::testing {

inline void on_sharing_ranks(int ranks, const std::function<void(Communicator&)>& body) {
  auto links = make_thread_links(ranks);
  std::vector<std::thread> threads;
  for (std::unique_ptr<Links>& own : links) {
    threads.emplace_back([&] {
      Communicator communicator(std::move(own));
      body(communicator);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace rl::testing
