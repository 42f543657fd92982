#include "rl/reward/prepared_calls.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace rl {

using nlohmann::json;
using runtime::Result;
using runtime::Status;

namespace {

std::string key_of(const json& call) {
  return call.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace

PreparedCalls::~PreparedCalls() { stop(); }

void PreparedCalls::stop() {
  stopping_ = true;
  if (thread_.joinable()) thread_.join();
  stopping_ = false;
}

std::size_t PreparedCalls::begin(const json& call) {
  open_[pool_->submit(call)] = begun_;
  return begun_++;
}

// The pool counts from 0 again when nothing is open and all is taken, so that what has finished is
// taken at once.
Status PreparedCalls::work(std::chrono::milliseconds wait_max) {
  const Status status = pool_->work(wait_max);
  for (auto& [number, answer] : pool_->take_finished()) {
    const auto found = open_.find(number);
    if (found == open_.end()) continue;
    answers_.emplace(found->second, std::move(answer));
    open_.erase(found);
  }
  if (!status.ok()) open_.clear();
  return status;
}

void PreparedCalls::work_on() {
  while (true) {
    {
      const std::lock_guard lock(mutex_);
      if (failure_.ok() && pool_->open() > 0 && !stopping_)
        failure_ = work(std::chrono::milliseconds(20));
      working_ = failure_.ok() && pool_->open() > 0 && !stopping_;
      if (!working_) return;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(200));  // who prepares more gets its turn
  }
}

void PreparedCalls::prepare(const std::vector<json>& calls) {
  std::unique_lock lock(mutex_);
  if (!failure_.ok() || calls.empty()) return;
  for (const json& call : calls) prepared_[key_of(call)].push_back(begin(call));
  if (working_) return;
  lock.unlock();
  if (thread_.joinable()) thread_.join();
  working_ = true;
  auto thread = runtime::Thread::start_real([this] { work_on(); });
  if (thread.ok())
    thread_ = *std::move(thread);
  else
    working_ = false;  // run() does what there is to do, later than it might have been done
}

Result<std::vector<PoolAnswer>> PreparedCalls::run(const std::vector<json>& calls,
                                                   ScoreCounts& counts) {
  stop();
  if (const Status failure = std::exchange(failure_, {}); !failure.ok()) {
    prepared_.clear();
    answers_.clear();
    return failure;
  }
  if (prepared_.empty() && open_.empty()) return pool_->run(calls, counts);
  std::vector<std::size_t> wanted;
  for (const json& call : calls) {
    const auto found = prepared_.find(key_of(call));
    if (found == prepared_.end() || found->second.empty()) {
      wanted.push_back(begin(call));
      continue;
    }
    wanted.push_back(found->second.front());
    found->second.pop_front();
  }
  prepared_.clear();
  while (!std::all_of(wanted.begin(), wanted.end(),
                      [&](std::size_t call) { return answers_.contains(call); })) {
    const Status status = work(std::chrono::seconds(1));
    if (!status.ok()) return status;
  }
  std::vector<PoolAnswer> answers;
  for (const std::size_t call : wanted) answers.push_back(std::move(answers_.at(call)));
  answers_.clear();
  counts.add(pool_->take_counts());
  return answers;
}

}  // namespace rl
