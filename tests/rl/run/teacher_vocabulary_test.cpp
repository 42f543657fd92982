#include "rl/run/teacher_vocabulary.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "rl/worker/toy_model.h"

namespace rl {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using runtime::ErrorCode;

json read(const fs::path& file) { return json::parse(std::ifstream(file)); }

class VocabularyTest : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::remove_all(folder_);
    for (const char* name : {"policy", "other"}) {
      fs::create_directories(folder_ / name);
      ASSERT_TRUE(
          make_toy_model(folder_ / name, {.layers = 1, .hidden_size = 16, .intermediate_size = 16})
              .ok());
    }
  }
  void TearDown() override { fs::remove_all(folder_); }

  // Two letters change places in the other's tokenizer.
  void swap_letters() {
    json tokenizer = read(other_ / "tokenizer.json");
    json& vocabulary = tokenizer["model"]["vocab"];
    std::swap(vocabulary["a"], vocabulary["b"]);
    std::ofstream(other_ / "tokenizer.json") << tokenizer.dump();
  }
  void shrink_embeddings() {
    json config = read(other_ / "config.json");
    config["vocab_size"] = 5;
    std::ofstream(other_ / "config.json") << config.dump();
  }
  runtime::Status reads() const { return check_reads_vocabulary(policy_, other_, "critic"); }

  const fs::path folder_ =
      fs::temp_directory_path() / ("starling-vocabulary-" + std::to_string(::getpid()));
  const fs::path policy_ = folder_ / "policy";
  const fs::path other_ = folder_ / "other";
};

TEST_F(VocabularyTest, EqualOnesPass) {
  EXPECT_TRUE(reads().ok()) << reads().to_string();
  EXPECT_TRUE(check_same_vocabulary(policy_, other_).ok());
}

TEST_F(VocabularyTest, ATokenThatMeansSomethingElseIsNamed) {
  swap_letters();
  const runtime::Status status = reads();
  EXPECT_EQ(status.code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(status.message().find("is 'b' in the critic " + other_.string() +
                                  " and 'a' in the policy " + policy_.string()),
            std::string::npos)
      << status.message();
  EXPECT_NE(check_same_vocabulary(policy_, other_).message().find("in the teacher"),
            std::string::npos);
}

TEST_F(VocabularyTest, AReaderMayHaveNoTokenizerAndMustHaveTheEmbeddings) {
  fs::remove(other_ / "tokenizer.json");
  EXPECT_TRUE(reads().ok()) << reads().to_string();
  shrink_embeddings();
  EXPECT_EQ(reads().code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(reads().message().find("has embeddings for 5 tokens"), std::string::npos)
      << reads().message();
}

}  // namespace
}  // namespace rl
