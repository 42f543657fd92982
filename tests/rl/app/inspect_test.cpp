#include "rl/app/inspect.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/rl/model/fixtures.h"
#include "tests/support/temporary_folder.h"

namespace rl {
namespace {

using nlohmann::json;

struct Answer {
  int code;
  std::string out;
};

Answer inspect(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "inspect");
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  ::testing::internal::CaptureStdout();
  const int code = inspect_command(static_cast<int>(argv.size()), argv.data());
  std::fflush(stdout);
  return {code, ::testing::internal::GetCapturedStdout()};
}

TEST(Inspect, SaysWhatAModelIsAndTakes) {
  const std::string folder = testing::fixtures() / "models" / "qwen3_moe";
  const Answer answer = inspect({folder, "--json"});
  EXPECT_EQ(answer.code, 0) << answer.out;
  const json found = json::parse(answer.out);
  EXPECT_EQ(found["family"], "qwen3_moe");
  EXPECT_EQ(found["task"], "causal language model");
  EXPECT_EQ(found["parameters"], found["stored_elements"]);
  EXPECT_EQ(found["memory_bytes"]["float32"], 4 * found["parameters"].get<std::int64_t>());
  EXPECT_EQ(found["memory_bytes"]["bfloat16"], 2 * found["parameters"].get<std::int64_t>());
  EXPECT_EQ(found["stored"][0]["dtype"], "F32");
  EXPECT_EQ(found["context"], 128);
  EXPECT_TRUE(found["tokenizer"].is_null());
  EXPECT_TRUE(found["not_supported"].empty());
  const Answer text = inspect({folder});
  EXPECT_NE(text.out.find("family          qwen3_moe, causal language model"), std::string::npos)
      << text.out;
}

TEST(Inspect, KnowsTokenizersTemplatesAndQuantisedWeights) {
  const auto gguf = testing::smollm2_gguf();
  if (!gguf) GTEST_SKIP() << "SmolLM2 is not in the cache";
  const Answer answer = inspect({gguf->string(), "--json"});
  EXPECT_EQ(answer.code, 0) << answer.out;
  const json found = json::parse(answer.out);
  EXPECT_EQ(found["parameters"], 134515008);
  EXPECT_EQ(found["tokenizer"]["kind"], "BPE");
  EXPECT_EQ(found["tokenizer"]["eos"], "<|im_end|>");
  EXPECT_GT(found["chat_template"]["bytes"], 100);
  EXPECT_TRUE(found["stored"].dump().find("Q4_1") != std::string::npos) << found["stored"];
  EXPECT_NE(inspect({gguf->string()}).out.find("134.5 million, tied embeddings"),
            std::string::npos);
}

TEST(Inspect, NamesWhatIsNotSupported) {
  const support::TemporaryFolder folder;
  std::ofstream(folder.file("config.json")) << R"({"model_type": "mamba"})";
  std::ofstream(folder.file("tokenizer.json")) << R"({"model": {"type": "Novel"}})";
  const Answer answer = inspect({folder.path().string(), "--json"});
  EXPECT_EQ(answer.code, 1);
  const json found = json::parse(answer.out);
  ASSERT_EQ(found["not_supported"].size(), 3u) << found;
  EXPECT_NE(found["not_supported"][0].get<std::string>().find("mamba"), std::string::npos) << found;
  EXPECT_NE(found["not_supported"][2].get<std::string>().find("Novel"), std::string::npos) << found;
}

TEST(Inspect, AModelThatIsNotThereIsAMistake) { EXPECT_EQ(inspect({"/nowhere"}).code, 1); }

}  // namespace
}  // namespace rl
