#include "rl/model/gradient_arena.h"

#include <ATen/ops/from_blob.h>
#include <ATen/ops/index_fill.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "runtime/core/check.h"

namespace rl {
namespace {

// Where more rows than one in this many were written, zeroing all is cheaper than finding them.
constexpr std::int64_t kSparseRows = 8;

}  // namespace

bool GradientSum::begin() {
  written_ = {.whole = true, .rows = {}};
  left_ = {};
  return !std::exchange(begun_, true);
}

void GradientSum::begin_rows(std::vector<std::int64_t> rows) {
  settle();
  begun_ = true;
  if (written_.whole) return;
  std::vector<std::int64_t> all;
  std::set_union(written_.rows.begin(), written_.rows.end(), rows.begin(), rows.end(),
                 std::back_inserter(all));
  written_.rows = std::move(all);
}

void GradientSum::forget() {
  if (begun_) left_ = std::exchange(written_, {});
  begun_ = false;
}

void GradientSum::settle() {
  if (begun_) return;
  const auto rows = static_cast<std::int64_t>(left_.rows.size());
  if (left_.whole || rows * kSparseRows > gradient_.size(0)) {
    gradient_.zero_();
  } else if (rows > 0) {
    const at::Tensor index =
        at::from_blob(left_.rows.data(), {rows}, at::TensorOptions().dtype(at::kLong));
    gradient_.index_fill_(0, index.to(gradient_.device()), 0.0);
  }
  left_ = {};
}

void GradientSum::drop() {
  begun_ = false;
  written_ = left_ = {};
}

std::shared_ptr<GradientSum> GradientArena::sum_of(const at::Tensor& view) {
  const std::int64_t first = view.storage_offset(), end = first + view.numel();
  const auto [found, fresh] = parts_.try_emplace(first);
  Part& part = found->second;
  if (!fresh) {
    CHECK(part.end == end);
    return part.sum;
  }
  CHECK(found == parts_.begin() || std::prev(found)->second.end <= first);
  CHECK(std::next(found) == parts_.end() || end <= std::next(found)->first);
  part = {end, std::make_shared<GradientSum>(view, paused_)};
  return part.sum;
}

const Parameters& GradientArena::settled() {
  for (auto& [first, part] : parts_) part.sum->settle();
  return parameters_;
}

void GradientArena::settle(const ArenaRange& range) {
  for (auto part = parts_.lower_bound(range.begin); part != parts_.end() && part->first < range.end;
       ++part)
    part->second.sum->settle();
}

void GradientArena::drop(const ArenaRange& range) {
  for (auto part = parts_.lower_bound(range.begin); part != parts_.end() && part->first < range.end;
       ++part)
    part->second.sum->drop();
}

void GradientArena::forget() {
  for (auto& [first, part] : parts_) part.sum->forget();
}

void GradientArena::overwritten() {
  for (auto& [first, part] : parts_) part.sum->begin();
}

void GradientArena::renew() {
  drop();
  parameters_.arena().zero_();
}

void GradientArena::drop() {
  for (auto& [first, part] : parts_) part.sum->drop();
}

}  // namespace rl
