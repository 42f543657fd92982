// Pools of child processes whose answers a test writes in Python.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "rl/reward/process_pool.h"

namespace rl::testing {

/// Answers by `answers(request)`, a list of messages, each as a line. One process at a time, which
/// tries each call once more `retries` times.
inline std::unique_ptr<ProcessPool> scripted_pool(const std::string& answers, int retries = 0) {
  ProcessPoolOptions options;
  options.command = {"python3", "-c",
                     "import json, os\n"
                     "lines = os.fdopen(os.dup(3), 'r')\n"
                     "def write(message): os.write(3, json.dumps(message).encode() + b'\\n')\n"
                     "seen = []\n" +
                         answers +
                         "lines.readline()\n"
                         "write({'ready': True})\n"
                         "for line in lines:\n"
                         "    request = json.loads(line)\n"
                         "    seen.append(request['id'])\n"
                         "    for message in answers(request): write(message)\n"};
  options.workers_max = 1;
  options.retries = retries;
  options.overtake = false;
  auto pool = ProcessPool::create(std::move(options));
  EXPECT_TRUE(pool.ok()) << pool.status().to_string();
  return pool.ok() ? std::move(*pool) : nullptr;
}

}  // namespace rl::testing
