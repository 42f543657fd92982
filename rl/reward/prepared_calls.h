// PreparedCalls: calls to child processes that begin before their answers are asked for.
#pragma once

#include <atomic>
#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "rl/reward/process_pool.h"
#include "runtime/core/result.h"
#include "runtime/core/thread.h"

namespace rl {

/// A pool whose calls may be prepared. Its own thread works on them until run() asks for the same
/// calls. run() finds their answers, or waits for the rest. What is answered, retried and
/// counted is the same either way. A resource; one thread at a time calls its methods.
class PreparedCalls {
 public:
  explicit PreparedCalls(std::unique_ptr<ProcessPool> pool) : pool_(std::move(pool)) {}
  ~PreparedCalls();
  PreparedCalls(const PreparedCalls&) = delete;
  PreparedCalls& operator=(const PreparedCalls&) = delete;

  /// Begins these calls. A failure is told by run().
  void prepare(const std::vector<nlohmann::json>& calls);

  /// As ProcessPool::run. Prepared calls that are not among `calls` are forgotten.
  runtime::Result<std::vector<PoolAnswer>> run(const std::vector<nlohmann::json>& calls,
                                               ScoreCounts& counts);

 private:
  std::size_t begin(const nlohmann::json& call);
  runtime::Status work(std::chrono::milliseconds wait_max);
  void work_on();
  void stop();

  std::unique_ptr<ProcessPool> pool_;
  std::mutex mutex_;  // guards all of it while the thread runs
  runtime::Thread thread_;
  std::atomic<bool> stopping_ = false;
  bool working_ = false;
  std::size_t begun_ = 0;  // calls, each named by how many were before it
  std::map<std::string, std::deque<std::size_t>>
      prepared_;                             // by what is asked; as often as it was prepared
  std::map<std::size_t, std::size_t> open_;  // the pool's number -> ours
  std::map<std::size_t, PoolAnswer> answers_;
  runtime::Status failure_;
};

}  // namespace rl
