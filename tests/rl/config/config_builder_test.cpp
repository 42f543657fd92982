// The order of sources, and what becomes of what is wrong in them. What keys mean is
// config_test.cpp's.
#include "rl/config/config_builder.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "tests/support/expect_failure.h"
#include "tests/support/temporary_folder.h"

namespace rl {
namespace {

using runtime::ErrorCode;
using runtime::Result;
using support::expect_failure;

constexpr UsedKey kBuiltRows[] = {
    {"job.rows", "1", KeyKind::kInt, "[1,)", "rows of a step"},
    {"job.rate", "0.5", KeyKind::kFloat, "", "the rate of it"},
    {"job.both", "${job.rows}", KeyKind::kInt, "", "as many again"},
    {"job.name", "null", KeyKind::kStringOrNull, "", "the name of it"}};
constexpr UnusedKey kUnbuiltRows[] = {
    {"job.idle", "false", KeyKind::kBool, KeySupport::kNoEffect, "", "it is idle here"},
    {"job.other", "false", KeyKind::kBool, KeySupport::kRefused, "", "it is not built"}};
constexpr KeyAlias kBuiltNames[] = {{"old_rows", "job.rows"}};

class ConfigBuilderTest : public ::testing::Test {
 protected:
  std::string file(const std::string& text) {
    const std::string path = folder_.file(std::to_string(++files_) + ".yaml");
    std::ofstream(path) << text;
    return path;
  }
  std::int64_t rows(ConfigBuilder& builder) {
    const Result<Config> config = builder.finish();
    EXPECT_TRUE(config.ok()) << config.status().to_string();
    return config.ok() ? config->get_int("job.rows").value_or(-1) : -1;
  }

  support::TemporaryFolder folder_;
  int files_ = 0;
  const KeyTable keys_{"test", {{kBuiltRows, kUnbuiltRows}}, kBuiltNames};
};

TEST_F(ConfigBuilderTest, WithoutSourcesThereAreTheDefaults) {
  ConfigBuilder builder(keys_);
  const Result<Config> config = builder.finish();
  ASSERT_TRUE(config.ok()) << config.status().to_string();
  EXPECT_EQ(config->get_int("job.both").value_or(0), 1);
  EXPECT_FALSE(config->is_set("job"));
  EXPECT_TRUE(config->notes().empty());
}

TEST_F(ConfigBuilderTest, ALaterSourceGoesBeforeAnEarlierOne) {
  ConfigBuilder builder(keys_);
  ASSERT_TRUE(builder.add_file(file("job: {rows: 2, rate: 2}")).ok());
  ASSERT_TRUE(builder.add_file(file("job: {rows: 3}")).ok());
  builder.add_override("job.rows=4");
  builder.add_override("job.rows=5");
  const Result<Config> config = builder.finish();
  ASSERT_TRUE(config.ok()) << config.status().to_string();
  EXPECT_EQ(config->get_int("job.rows").value_or(0), 5);
  EXPECT_EQ(config->get_int("job.both").value_or(0), 5) << "what refers to it is resolved last";
  EXPECT_EQ(config->get_float("job.rate").value_or(0), 2.0);
  EXPECT_EQ(config->origin("job.rows"), "from the command line");
  EXPECT_NE(config->origin("job.rate").find("1.yaml:1"), std::string::npos);
}

TEST_F(ConfigBuilderTest, AFileThatCannotBeReadIsToldAtOnceAWrongKeyAtTheEnd) {
  ConfigBuilder builder(keys_);
  EXPECT_EQ(builder.add_file(folder_.path() / "none.yaml").code(), ErrorCode::kNotFound);
  EXPECT_FALSE(builder.add_file(file("job: [")).ok());
  EXPECT_TRUE(builder.add_file(file("job: {rwos: 2}")).ok());
  builder.add_override("job.rate");
  builder.add_override("job=7");
  const Result<Config> config = builder.finish();
  ASSERT_FALSE(config.ok());
  expect_failure(config.status(), ErrorCode::kInvalidArgument,
                 {"'job.rwos'", "job.rows", "yaml:1", "job.rate", "'job' is a section"});
  const std::string& message = config.status().message();
  EXPECT_LT(message.find("rwos"), message.find("is a section")) << "in their order";
}

TEST_F(ConfigBuilderTest, AllWrongValuesAreInOneMessageWithTheGraverCode) {
  ConfigBuilder builder(keys_);
  for (const char* text : {"job.other=true", "job.rows=0", "job.rate=fast"})
    builder.add_override(text);
  expect_failure(builder.finish().status(), ErrorCode::kInvalidArgument,
                 {"job.other", "job.rows", "job.rate", "(from the command line)"});
  ConfigBuilder refused(keys_);
  refused.add_override("job.other=true");
  expect_failure(refused.finish().status(), ErrorCode::kUnimplemented, {"it is not built"});
}

TEST_F(ConfigBuilderTest, ACommandLineSettlesWhatAFileContradicts) {
  const std::string contradicting = file("old_rows: 2\njob: {rows: 3}");
  ConfigBuilder alone(keys_);
  ASSERT_TRUE(alone.add_file(contradicting).ok());
  expect_failure(alone.finish().status(), ErrorCode::kInvalidArgument, {"contradicts"});
  ConfigBuilder settled(keys_);
  ASSERT_TRUE(settled.add_file(contradicting).ok());
  settled.add_override("job.rows=4");
  EXPECT_EQ(rows(settled), 4);
  ConfigBuilder deleted(keys_);
  ASSERT_TRUE(deleted.add_file(contradicting).ok());
  deleted.add_override("job.both=1");
  deleted.add_override("~job.rows");
  const Result<Config> without = deleted.finish();
  EXPECT_TRUE(without.ok()) << without.status().to_string();
}

TEST_F(ConfigBuilderTest, AddedAndDeletedKeysAreAskedAfterWhatIsThere) {
  ConfigBuilder builder(keys_);
  builder.add_override("+job.mine=1");
  builder.add_override("++job.rows=2");
  builder.add_override("+job.rows=3");
  builder.add_override("~job.rate=0.7");
  builder.add_override("~job.unheard");
  expect_failure(
      builder.finish().status(), ErrorCode::kInvalidArgument,
      {"'job.rows' already has the value 2", "'job.rate' is 0.5, not 0.7", "job.unheard"});
  ConfigBuilder good(keys_);
  good.add_override("+job.mine=1");
  good.add_override("~job.rate=0.5");
  const Result<Config> config = good.finish();
  ASSERT_TRUE(config.ok()) << config.status().to_string();
  EXPECT_EQ(config->get_int("job.mine").value_or(0), 1);
  EXPECT_EQ(config->find("job.rate"), nullptr);
}

TEST_F(ConfigBuilderTest, CheckSaysOfEachKeyWhatItMeansWhereFinishFails) {
  ConfigBuilder builder(keys_);
  for (const char* text :
       {"job.rows=2", "job.idle=true", "job.other=true", "job.rate=fast", "job.rwos=1"})
    builder.add_override(text);
  const ConfigCheck check = builder.check();
  EXPECT_FALSE(check.passes());
  EXPECT_EQ(check.count(Judgement::Verdict::kUsed), 1u);
  EXPECT_EQ(check.count(Judgement::Verdict::kNoEffect), 1u);
  EXPECT_EQ(check.count(Judgement::Verdict::kRefused), 1u);
  EXPECT_EQ(check.count(Judgement::Verdict::kInvalid), 2u);
  ConfigBuilder older(keys_);
  older.add_override("old_rows=2");
  const ConfigCheck named = older.check();
  ASSERT_EQ(named.keys.size(), 1u);
  EXPECT_EQ(named.keys[0].written, "old_rows");
  EXPECT_EQ(named.keys[0].key, "job.rows");
  EXPECT_TRUE(named.passes());
}

TEST_F(ConfigBuilderTest, WhatHydraReadsItselfIsPassedOver) {
  ConfigBuilder builder(keys_);
  ASSERT_TRUE(
      builder.add_file(file("defaults: [a]\nhydra: {run: {dir: x}}\njob: {_target_: b}")).ok());
  for (const char* text : {"hydra.run.dir=y", "hydra/launcher=joblib", "job._target_=c"})
    builder.add_override(text);
  EXPECT_EQ(rows(builder), 1);
}

}  // namespace
}  // namespace rl
