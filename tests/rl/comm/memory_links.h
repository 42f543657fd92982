// Ranks that are threads of a test and share memory as processes do.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "rl/comm/shared_memory_links.h"
#include "rl/comm/thread_links.h"

namespace rl {

/// Links of all ranks.
inline std::vector<std::unique_ptr<Links>> memory_links(int ranks,
                                                        const SharedMemoryOptions& options) {
  std::vector<std::unique_ptr<Links>> links = make_thread_links(ranks);
  std::vector<std::thread> threads;
  for (std::unique_ptr<Links>& own : links) {
    threads.emplace_back([&] {
      auto shared = share_memory(std::move(own), options);
      ASSERT_TRUE(shared.ok()) << shared.status().to_string();
      own = std::move(*shared);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return links;
}

}  // namespace rl
