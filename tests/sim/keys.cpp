#include "keys.h"

namespace sim {

void Keys::use(runtime::Runtime& rt) {
  if (world_.random().one_in(2))
    add(rt);
  else
    claim(rt);
}

void Keys::add(runtime::Runtime& rt) {
  auto sum = rt.kv().add(name("sum-"), 1, 5s);
  if (world_.current()->crashed) return;
  world_.note("kv add " + std::to_string(static_cast<int>(sum.status().code())));
  if (!sum.ok()) {
    ++unknown_;
    return;
  }
  if (*sum <= sum_ || *sum > sum_ + 1 + unknown_)
    world_.fail("kv().add of 1 to " + std::to_string(sum_) + ", with " + std::to_string(unknown_) +
                " additions that had no answer, gave " + std::to_string(*sum));
  unknown_ -= *sum - sum_ - 1;
  sum_ = *sum;
}

void Keys::claim(runtime::Runtime& rt) {
  const std::string key = name("claim-") + "-" + std::to_string(++claims_);
  if (!rt.kv().put(key, "free", 5s).ok()) return;
  auto won = rt.kv().remove(key, 5s);
  if (world_.current()->crashed) return;
  world_.note("kv remove " + std::to_string(static_cast<int>(won.status().code())));
  if (!won.ok()) return;
  if (!*won) world_.fail("kv().remove of " + key + " said that there was none");
  auto again = rt.kv().remove(key, 5s);
  if (again.ok() && *again && !world_.current()->crashed)
    world_.fail("kv().remove of " + key + " deleted it twice");
}

}  // namespace sim
