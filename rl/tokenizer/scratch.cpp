#include "rl/tokenizer/scratch.h"

namespace rl {

ScratchPool::Borrowed ScratchPool::take(const TokenModel& model) {
  {
    std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      auto scratch = std::move(idle_.back());
      idle_.pop_back();
      return Borrowed(*this, std::move(scratch));
    }
  }
  auto scratch = std::make_unique<EncodeScratch>();
  scratch->model = model.make_scratch();
  return Borrowed(*this, std::move(scratch));
}

void ScratchPool::give_back(std::unique_ptr<EncodeScratch> scratch) {
  std::lock_guard lock(mutex_);
  idle_.push_back(std::move(scratch));
}

}  // namespace rl
