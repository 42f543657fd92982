// The placement library by itself: three bundles of one GPU each on nodes with two and one.
#include <cstdio>
#include <vector>

#include "placement/placement.h"

int main() {
  auto two = placement::Resources::from_map({{"GPU", 2}});
  auto one = placement::Resources::from_map({{"GPU", 1}});
  if (!two.ok() || !one.ok()) return 1;
  std::vector<placement::Resources> bundles(3, *one), nodes{*two, *one};
  auto plan = placement::assign_bundles(runtime::GroupStrategy::kPack, bundles, nodes);
  if (!plan) return 1;
  std::size_t on_first = 0;
  for (std::size_t node : *plan) on_first += node == 0;
  std::printf("bundles on the first node: %zu\n", on_first);
}
