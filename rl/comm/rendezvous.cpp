#include "rl/comm/rendezvous.h"

#include <condition_variable>
#include <map>
#include <mutex>

namespace rl {
namespace {

class LocalRendezvous : public Rendezvous {
 public:
  runtime::Status put(const std::string& key, std::span<const std::uint8_t> value) override {
    const std::lock_guard lock(mutex_);
    values_[key].assign(value.begin(), value.end());
    changed_.notify_all();
    return {};
  }

  runtime::Result<std::vector<std::uint8_t>> get(const std::string& key,
                                                 std::chrono::milliseconds wait) override {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, wait, [&] { return values_.contains(key); })) {
      return runtime::deadline_exceeded("no rank put '" + key + "' within " +
                                        std::to_string(wait.count()) + " ms");
    }
    return values_[key];
  }

  runtime::Result<std::int64_t> add(const std::string& key, std::int64_t amount) override {
    const std::lock_guard lock(mutex_);
    return counters_[key] += amount;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::vector<std::uint8_t>> values_;
  std::map<std::string, std::int64_t> counters_;
};

}  // namespace

std::unique_ptr<Rendezvous> make_local_rendezvous() { return std::make_unique<LocalRendezvous>(); }

}  // namespace rl
