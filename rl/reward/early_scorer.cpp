#include "rl/reward/early_scorer.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace rl {

using runtime::Result;
using runtime::Status;

EarlyScorer::Key EarlyScorer::key_of(const ScoreRequest& request) {
  return {request.data_source, request.response, request.ground_truth, request.extra_info,
          request.where};
}

EarlyScorer::~EarlyScorer() {
  {
    const std::lock_guard lock(mutex_);
    waiting_.clear();
  }
  join();
}

void EarlyScorer::join() {
  for (runtime::Thread& thread : threads_) thread.join();
  threads_.clear();
}

std::size_t EarlyScorer::submit(const ScoreRequest& request) {
  waiting_.emplace_back(submitted_, request);
  return submitted_++;
}

// The caller holds the mutex. Threads that have ended are joined when all have, or by score().
void EarlyScorer::start_threads() {
  if (working_ == 0) join();
  const std::size_t calls = (waiting_.size() + options_.batch_size - 1) / options_.batch_size;
  while (working_ < std::min(options_.concurrency, calls)) {
    auto thread = runtime::Thread::start_real([this] { work(); });
    if (!thread.ok()) break;
    threads_.push_back(*std::move(thread));
    ++working_;
  }
}

void EarlyScorer::work() {
  std::unique_lock lock(mutex_);
  work_off(lock);
  --working_;
}

void EarlyScorer::work_off(std::unique_lock<std::mutex>& lock) {
  while (!waiting_.empty()) {
    std::vector<std::size_t> numbers;
    std::vector<ScoreRequest> requests;
    while (!waiting_.empty() && requests.size() < options_.batch_size) {
      numbers.push_back(waiting_.front().first);
      requests.push_back(std::move(waiting_.front().second));
      waiting_.pop_front();
    }
    lock.unlock();
    Result<ScoredBatch> batch = inner_->score(requests);
    lock.lock();
    if (!batch.ok()) {
      failure_ = batch.status();
      waiting_.clear();
    } else {
      counts_.add(batch->counts);
      for (std::size_t i = 0; i < numbers.size(); ++i)
        scores_.emplace(numbers[i], std::move(batch->scores[i]));
    }
    answered_.notify_all();
  }
}

void EarlyScorer::prepare(std::span<const ScoreRequest> requests) {
  const std::lock_guard lock(mutex_);
  if (!failure_.ok()) return;
  for (const ScoreRequest& request : requests)
    prepared_[key_of(request)].push_back(submit(request));
  start_threads();
}

Result<ScoredBatch> EarlyScorer::score(std::span<const ScoreRequest> requests) {
  std::unique_lock lock(mutex_);
  if (prepared_.empty() && failure_.ok()) {
    lock.unlock();
    return inner_->score(requests);
  }
  std::vector<std::size_t> wanted;
  if (failure_.ok()) {
    for (const ScoreRequest& request : requests) {
      const auto found = prepared_.find(key_of(request));
      if (found == prepared_.end() || found->second.empty()) {
        wanted.push_back(submit(request));
        continue;
      }
      wanted.push_back(found->second.front());
      found->second.pop_front();
    }
    for (const auto& [key, unwanted] : prepared_) {
      for (const std::size_t number : unwanted)
        std::erase_if(waiting_, [&](const auto& entry) { return entry.first == number; });
    }
    start_threads();
    if (working_ == 0) work_off(lock);  // no thread can be made
    answered_.wait(lock, [&] {
      return !failure_.ok() || std::all_of(wanted.begin(), wanted.end(), [&](std::size_t number) {
        return scores_.contains(number);
      });
    });
  }
  lock.unlock();
  join();  // those that no caller waits for, too: their counts belong here
  ScoredBatch batch;
  batch.counts = std::exchange(counts_, {});
  prepared_.clear();
  auto scores = std::exchange(scores_, {});
  if (Status failure = std::exchange(failure_, {}); !failure.ok()) return failure;
  for (const std::size_t number : wanted) batch.scores.push_back(std::move(scores.at(number)));
  return batch;
}

}  // namespace rl
