// Libraries that tests compile, in the process that loads them.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "rl/reward/process_scorer.h"
#include "tests/support/eventually.h"

namespace rl {
namespace {

namespace fs = std::filesystem;
using runtime::ErrorCode;

class LibraryScorer : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "starling_library_XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    limits_.workers = 2;
    limits_.retries = 1;
    limits_.timeout = std::chrono::milliseconds(1000);
    limits_.overtake = false;
    ::setenv("STARLING_REWARD_HOST", STARLING_BIN_DIR "/starling-reward-host", 1);
  }
  void TearDown() override {
    ::unsetenv("STARLING_REWARD_HOST");
    fs::remove_all(folder_);
  }

  fs::path compile(const std::string& code) {
    std::ofstream(folder_ / "reward.c")
        << "#include \"rl/reward/reward_library.h\"\n#include <math.h>\n#include "
           "<stdio.h>\n#include <stdlib.h>\n#include <string.h>\n"
        << code;
    const std::string command = "cc -shared -fPIC -w -I" STARLING_SOURCE_DIR " -o " +
                                (folder_ / "reward.so").string() + " " +
                                (folder_ / "reward.c").string();
    EXPECT_EQ(std::system(command.c_str()), 0);
    return folder_ / "reward.so";
  }

  fs::path folder_;
  ScoringLimits limits_;
};

constexpr const char* kLibrary = R"(
int starling_reward_abi(void) { return STARLING_REWARD_ABI; }
int starling_compute_score(const struct starling_reward_sample* sample, double* score, char* message, size_t size) {
  printf("looking at %s\n", sample->response);
  if (!strcmp(sample->response, "crash")) abort();
  if (!strcmp(sample->response, "hang")) for (volatile int i = 0;;) i = 1;
  if (!strcmp(sample->response, "nan")) { *score = NAN; return 0; }
  if (!strcmp(sample->response, "fail")) { snprintf(message, size, "cannot judge %s", sample->ground_truth); return 7; }
  *score = (double)strlen(sample->response) + (strcmp(sample->extra_info, "{\"index\":3}") ? 0.0 : 0.5);
  return 0;
}
)";

TEST_F(LibraryScorer, ScoresApartFromTheTraining) {
  const auto scorer = ProcessScorer::library(compile(kLibrary), limits_);
  ASSERT_TRUE(scorer.ok()) << scorer.status().to_string();
  std::vector<ScoreRequest> requests;
  for (const char* response : {"abc", "crash", "hang", "nan", "fail", "de"})
    requests.push_back({.data_source = "x",
                        .response = response,
                        .ground_truth = "T",
                        .extra_info = R"({"index": 3})",
                        .where = "t:1"});
  const auto batch = (*scorer)->score(requests);
  ASSERT_TRUE(batch.ok()) << batch.status().to_string();
  EXPECT_EQ(batch->scores[0].value, 3.5);
  EXPECT_EQ(batch->scores[1].failure, ScoreFailure::kCrash);
  EXPECT_EQ(batch->scores[2].failure, ScoreFailure::kTimeout);
  EXPECT_EQ(batch->scores[3].failure, ScoreFailure::kInvalid);
  EXPECT_EQ(batch->scores[4].failure, ScoreFailure::kError);
  EXPECT_NE(batch->scores[4].message.find("cannot judge T"), std::string::npos)
      << batch->scores[4].message;
  EXPECT_EQ(batch->scores[5].value, 2.5);
}

std::vector<double> scores_of_answers(const fs::path& library, const ScoringLimits& limits) {
  const auto scorer = ProcessScorer::library(library, limits);
  EXPECT_TRUE(scorer.ok()) << scorer.status().to_string();
  ScoreRequest missing{
      .data_source = "x", .response = "a", .ground_truth = "", .extra_info = "", .where = "t:1"};
  missing.has_ground_truth = false;
  ScoreRequest empty = missing, given = missing;
  empty.has_ground_truth = given.has_ground_truth = true;
  given.ground_truth = "abc";
  const auto batch = (*scorer)->score(std::vector{missing, empty, given});
  EXPECT_TRUE(batch.ok()) << batch.status().to_string();
  std::vector<double> values;
  for (const Score& score : batch->scores) {
    EXPECT_EQ(score.failure, ScoreFailure::kNone) << score.message;
    values.push_back(score.value);
  }
  return values;
}

TEST_F(LibraryScorer, TellsAMissingAnswerFromAnEmptyOne) {
  EXPECT_EQ(scores_of_answers(compile(R"(
int starling_reward_abi(void) { return STARLING_REWARD_ABI; }
int starling_compute_score(const struct starling_reward_sample* sample, double* score, char* message, size_t size) {
  *score = 10.0 * sample->has_ground_truth + (double)strlen(sample->ground_truth);
  return 0;
}
)"),
                              limits_),
            (std::vector<double>{0.0, 10.0, 13.0}));
}

// Compiled when a sample had four texts and no more.
TEST_F(LibraryScorer, LibrariesOfTheFirstVersionGoOn) {
  EXPECT_EQ(scores_of_answers(compile(R"(
struct first_sample { const char *data_source, *response, *ground_truth, *extra_info; };
int starling_reward_abi(void) { return 1; }
int starling_compute_score(const struct starling_reward_sample* sample, double* score, char* message, size_t size) {
  *score = (double)strlen(((const struct first_sample*)sample)->ground_truth);
  return 0;
}
)"),
                              limits_),
            (std::vector<double>{0.0, 0.0, 3.0}));
}

// Without a session, parent or environment by which it could be found.
TEST_F(LibraryScorer, WhatItStartsEndsWithItsCall) {
  limits_.retries = 0;
  const std::string told = (folder_ / "pid").string();
  const auto scorer = ProcessScorer::library(compile("#define TOLD \"" + told + "\"\n" + R"(
int starling_reward_abi(void) { return STARLING_REWARD_ABI; }
int starling_compute_score(const struct starling_reward_sample* sample, double* score, char* message, size_t size) {
  system("setsid env -i /bin/sh -c '(sleep 1000 & echo $! > " TOLD ")'");
  for (volatile int i = 0;;) i = 1;
}
)"),
                                             limits_);
  ASSERT_TRUE(scorer.ok()) << scorer.status().to_string();
  const ScoreRequest asked{
      .data_source = "x", .response = "a", .ground_truth = "", .extra_info = "", .where = "t:1"};
  const auto batch = (*scorer)->score(std::span(&asked, 1));
  ASSERT_TRUE(batch.ok());
  EXPECT_EQ(batch->scores[0].failure, ScoreFailure::kTimeout);
  pid_t child = 0;
  std::ifstream(told) >> child;
  ASSERT_GT(child, 1);
  EXPECT_TRUE(support::eventually([child] {
    std::string stat;
    std::getline(std::ifstream("/proc/" + std::to_string(child) + "/stat") >> std::ws, stat);
    return stat.empty() || stat.find(") Z ") != std::string::npos;
  }));
}

TEST_F(LibraryScorer, LibrariesThatCannotBeUsedAreFoundAtOnce) {
  const auto status = [&](const fs::path& file) {
    return ProcessScorer::library(file, limits_).status();
  };
  EXPECT_EQ(status(folder_ / "none.so").code(), ErrorCode::kNotFound);
  EXPECT_NE(status(compile("int starling_reward_abi(void) { return 1; }\n"))
                .message()
                .find("no function starling_compute_score"),
            std::string::npos);
  EXPECT_NE(
      status(compile(
                 "int starling_reward_abi(void) { return 99; }\nint starling_compute_score(const "
                 "struct starling_reward_sample* a, double* b, char* c, size_t d) { return 0; }\n"))
          .message()
          .find("version 99"),
      std::string::npos);
  std::ofstream(folder_ / "text.so") << "no library";
  EXPECT_NE(status(folder_ / "text.so").message().find("cannot be loaded"), std::string::npos)
      << status(folder_ / "text.so").message();
  ::setenv("STARLING_REWARD_HOST", "/none/host", 1);
  EXPECT_EQ(status(compile(kLibrary)).code(), ErrorCode::kNotFound);
}

}  // namespace
}  // namespace rl
