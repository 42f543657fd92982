#include "rl/weights/safetensors_layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "rl/weights/safetensors.h"
#include "tests/support/expect_failure.h"

namespace rl {
namespace {

using runtime::ErrorCode;
using runtime::Status;

TEST(SafetensorsLayout, EachTensorFollowsTheOneBeforeAsTheHeaderSays) {
  const std::vector<PlannedTensor> tensors = {{"z", {2, 3}, DType::kF32},
                                              {"half", {5}, DType::kBF16},
                                              {"empty", {0, 4}, DType::kF32},
                                              {"scalar", {}, DType::kF32}};
  const auto layout = plan_safetensors(tensors, {{"format", "pt"}});
  ASSERT_TRUE(layout.ok()) << layout.status().to_string();
  const std::uint64_t begin = layout->header.size();
  EXPECT_EQ(begin % 8, 0u);
  EXPECT_EQ(layout->offsets,
            (std::vector<std::uint64_t>{begin, begin + 24, begin + 34, begin + 34}));
  EXPECT_EQ(layout->bytes, begin + 38);

  const std::string file = layout->header + std::string(38, '\0');
  const auto header = parse_safetensors(std::as_bytes(std::span(file)), "m.safetensors");
  ASSERT_TRUE(header.ok()) << header.status().to_string();
  EXPECT_EQ(header->data_offset, begin);
  EXPECT_EQ(header->metadata.at("format"), "pt");
  ASSERT_EQ(header->entries.size(), tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const auto entry =
        std::find_if(header->entries.begin(), header->entries.end(),
                     [&](const SafetensorsEntry& e) { return e.info.name == tensors[i].name; });
    ASSERT_NE(entry, header->entries.end()) << tensors[i].name;
    EXPECT_EQ(begin + entry->begin, layout->offsets[i]) << tensors[i].name;
    EXPECT_EQ(entry->info.shape, tensors[i].shape);
    EXPECT_EQ(entry->info.dtype, tensors[i].dtype);
  }
}

TEST(SafetensorsLayout, WhatNoFileCanHaveIsRefusedByName) {
  const auto refused = [](const std::vector<PlannedTensor>& tensors,
                          const std::vector<std::string>& parts) {
    support::expect_failure(plan_safetensors(tensors, {}).status(), ErrorCode::kInvalidArgument,
                            parts);
  };
  refused({{"a.weight", {2}}, {"b", {2}}, {"a.weight", {3}}}, {"a.weight", "twice"});
  refused({{"__metadata__", {2}}}, {"__metadata__", "reserved"});
  refused({{"a", {2}}, {"b.weight", {-1}}}, {"b.weight", "shape"});
  refused({{"b.weight", {std::int64_t{1} << 62, 4}}}, {"b.weight", "shape"});
  const Status metadata = plan_safetensors({}, {{"author", "\xff"}}).status();
  support::expect_failure(metadata, ErrorCode::kInvalidArgument, {"metadata", "UTF-8"});
}

}  // namespace
}  // namespace rl
