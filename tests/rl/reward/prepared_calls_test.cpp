#include "rl/reward/prepared_calls.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tests/rl/reward/scripted_pool.h"
#include "tests/support/eventually.h"
#include "tests/support/file_bytes.h"
#include "tests/support/gate.h"
#include "tests/support/temporary_folder.h"

namespace rl {
namespace {

using Json = nlohmann::json;
using support::content_of;

// Calls {"word": w} are answered by {"said": w}, and noted in a file in the order of their answers.
class PreparedCallsTest : public ::testing::Test {
 protected:
  // `before`: further lines of Python, which see `word`, before it is noted.
  void make(const std::string& before = "", int retries = 0) {
    auto pool = testing::scripted_pool(
        "import time\n"
        "def note(word):\n"
        "    with open('" +
            folder_.file("noted") +
            "', 'a') as file: file.write(word)\n"
            "def answers(request):\n"
            "    word = request['word']\n" +
            before +
            "    note(word)\n"
            "    return [{'id': request['id'], 'said': word}]\n",
        retries);
    ASSERT_TRUE(pool);
    calls_ = std::make_unique<PreparedCalls>(std::move(pool));
  }
  // Python that waits at the gate where `word` is this one.
  std::string waits_at(const support::Gate& gate, const std::string& word) const {
    return "    if word == '" + word + "':\n        open('" + gate.path() +
           ".arrived', 'a').write('x')\n        while not os.path.exists('" + gate.path() +
           "'): time.sleep(0.001)\n";
  }

  static std::vector<Json> words(const std::string& letters) {
    std::vector<Json> all;
    for (const char letter : letters) all.push_back({{"word", std::string(1, letter)}});
    return all;
  }
  std::string said(const std::string& letters) {
    const auto answers = calls_->run(words(letters), counts_);
    EXPECT_TRUE(answers.ok()) << answers.status().to_string();
    std::string all;
    for (const PoolAnswer& answer : answers.value_or(std::vector<PoolAnswer>()))
      all +=
          answer.failure == ScoreFailure::kNone ? answer.message["said"].get<std::string>() : "!";
    return all;
  }
  std::string noted() const { return content_of(folder_.path() / "noted"); }
  bool comes_to_note(const std::string& letters) const {
    return support::eventually([&] { return noted() == letters; });
  }

  support::TemporaryFolder folder_;
  ScoreCounts counts_;
  std::unique_ptr<PreparedCalls> calls_;
};

TEST_F(PreparedCallsTest, AreAnsweredBeforeTheyAreAskedForAndInTheOrderAsked) {
  make();
  calls_->prepare(words("ab"));
  ASSERT_TRUE(comes_to_note("ab"));
  calls_->prepare(words("c"));
  ASSERT_TRUE(comes_to_note("abc"));
  EXPECT_EQ(said("cab"), "cab");
  EXPECT_EQ(noted(), "abc") << "asked again";
}

TEST_F(PreparedCallsTest, WhatWasNotPreparedIsDoneThen) {
  make();
  EXPECT_EQ(said("ab"), "ab");
  calls_->prepare({});
  EXPECT_EQ(said(""), "");
  calls_->prepare(words("c"));
  EXPECT_EQ(said("dc"), "dc");
  EXPECT_EQ(noted().size(), 4u);
}

TEST_F(PreparedCallsTest, EqualCallsAreMadeAsOftenAsTheyAreThere) {
  make();
  calls_->prepare(words("aa"));
  EXPECT_EQ(said("aaa"), "aaa");
  EXPECT_EQ(noted(), "aaa");
}

TEST_F(PreparedCallsTest, WhatIsNotAskedForIsForgotten) {
  make();
  calls_->prepare(words("ab"));
  ASSERT_TRUE(comes_to_note("ab"));
  EXPECT_EQ(said("a"), "a");
  EXPECT_EQ(said("b"), "b");
  EXPECT_EQ(noted(), "abb");
}

TEST_F(PreparedCallsTest, TheRestIsWaitedFor) {
  const support::Gate gate(folder_.file("gate"));
  make(waits_at(gate, "b"));
  calls_->prepare(words("abc"));
  ASSERT_TRUE(gate.is_reached());
  EXPECT_EQ(noted(), "a");
  gate.open();
  EXPECT_EQ(said("abc"), "abc");
  EXPECT_EQ(noted(), "abc");
}

// A forgotten call may still be on its way; its answer is no other call's.
TEST_F(PreparedCallsTest, AForgottenCallsAnswerIsNobodysElse) {
  const support::Gate gate(folder_.file("gate"));
  make(waits_at(gate, "a"));
  calls_->prepare(words("a"));
  ASSERT_TRUE(gate.is_reached());
  gate.open();
  EXPECT_EQ(said("b"), "b");
  EXPECT_EQ(said("cd"), "cd");
}

TEST_F(PreparedCallsTest, FailuresAreRetriedAndCountedAsWithoutPreparation) {
  const std::string first_time_fails =
      "    if word == 'x' and not os.path.exists('" + folder_.file("failed") +
      "'):\n        open('" + folder_.file("failed") +
      "', 'w').close()\n        return [{'id': request['id'], 'error': 'not yet'}]\n"
      "    if word == 'y': return [{'id': request['id'], 'error': 'never'}]\n";
  std::vector<ScoreCounts> counts;
  for (const bool prepares : {false, true}) {
    std::filesystem::remove(folder_.path() / "failed");
    make(first_time_fails, /*retries=*/1);
    if (prepares) calls_->prepare(words("xy"));
    counts_ = {};
    EXPECT_EQ(said("xya"), "x!a");
    counts.push_back(counts_);
  }
  for (const ScoreCounts& of_one : counts) {
    EXPECT_EQ(of_one.errors, 3);
    EXPECT_EQ(of_one.retries, 2);
    EXPECT_EQ(of_one.crashes, 0);
  }
}

TEST_F(PreparedCallsTest, APoolThatIsLostIsToldByRun) {
  const std::string lost = folder_.file("lost");
  // The processes after the first one cannot begin.
  auto pool = testing::scripted_pool("if os.path.exists('" + lost +
                                         "'):\n"
                                         "    lines.readline()\n"
                                         "    write({'fatal': 'all is lost'})\n"
                                         "    os._exit(0)\n"
                                         "def answers(request):\n"
                                         "    open('" +
                                         lost +
                                         "', 'w').close()\n"
                                         "    os._exit(1)\n",
                                     /*retries=*/1);
  ASSERT_TRUE(pool);
  calls_ = std::make_unique<PreparedCalls>(std::move(pool));
  calls_->prepare(words("a"));
  const auto answers = calls_->run(words("a"), counts_);
  ASSERT_FALSE(answers.ok());
  EXPECT_NE(answers.status().message().find("all is lost"), std::string::npos)
      << answers.status().to_string();
  EXPECT_FALSE(calls_->run(words("a"), counts_).ok());
}

TEST_F(PreparedCallsTest, EndWithCallsThatHang) {
  const support::Gate gate(folder_.file("never"));
  make(waits_at(gate, "a"));
  calls_->prepare(words("ab"));
  ASSERT_TRUE(gate.is_reached());
  calls_ = nullptr;
  EXPECT_EQ(noted(), "");
}

}  // namespace
}  // namespace rl
