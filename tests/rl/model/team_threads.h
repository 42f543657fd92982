// Ranks of a PassTeam that are threads.
#pragma once

#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "rl/comm/communicator.h"
#include "rl/comm/thread_links.h"
#include "rl/model/pass_team.h"

namespace rl::testing {

inline void on_each_rank(int ranks, PassCut cut, const std::function<void(const PassTeam&)>& body) {
  auto links = make_thread_links(ranks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      Communicator communicator(std::move(links[static_cast<std::size_t>(rank)]));
      body(PassTeam(communicator, cut));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace rl::testing
