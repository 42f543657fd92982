#include "rl/weights/dequantize.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "rl/weights/convert.h"
#include "test_files.h"

namespace rl {
namespace {

// The reference was written by the gguf package's numpy code, over random blocks.
TEST(Dequantize, EqualsTheReferenceInEveryBlockFormat) {
  auto cases = nlohmann::json::parse(
      testing::read_file(STARLING_SOURCE_DIR "/tests/rl/weights/dequantize_reference.json"));
  int compared = 0;
  for (int number = 0; number <= static_cast<int>(DType::kQ6_K); ++number) {
    const auto dtype = static_cast<DType>(number);
    for (const auto& reference : cases) {
      if (reference["dtype"].get<std::string>() != dtype_name(dtype)) continue;
      std::string bytes;
      const auto hex = reference["bytes"].get<std::string>();
      for (std::size_t i = 0; i < hex.size(); i += 2)
        bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
      const auto expected = reference["values"].get<std::vector<float>>();
      std::vector<float> out(expected.size()), converted(expected.size());
      dequantize(dtype, reinterpret_cast<const std::byte*>(bytes.data()), out);
      EXPECT_EQ(out, expected) << dtype_name(dtype);
      convert_to_f32(dtype, reinterpret_cast<const std::byte*>(bytes.data()), converted);
      EXPECT_EQ(converted, expected) << dtype_name(dtype);
      ++compared;
    }
  }
  EXPECT_EQ(compared, 10);
}

}  // namespace
}  // namespace rl
