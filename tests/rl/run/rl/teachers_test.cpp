#include "rl/run/rl/teachers.h"

#include <gtest/gtest.h>

namespace rl {
namespace {

const std::string kModels = "distillation.teacher_models.";

runtime::Result<std::vector<NamedTeacher>> teachers(std::vector<std::string> overrides) {
  const auto config = Config::load({.file = std::nullopt, .overrides = std::move(overrides)});
  EXPECT_TRUE(config.ok()) << config.status().to_string();
  return teachers_from_config(*config);
}

std::string error(std::vector<std::string> overrides) {
  return teachers(std::move(overrides)).status().message();
}

TEST(Teachers, OneHasAllRowsWhateverItsName) {
  EXPECT_EQ(*teachers({kModels + "teacher_model.model_path=/t"}),
            (std::vector<NamedTeacher>{{.name = "teacher_model",
                                        .model_key = kModels + "teacher_model.model_path",
                                        .rows = ""}}));
  EXPECT_EQ(*teachers({kModels + "maths.model_path=/t", kModels + "maths.key=gsm8k"}),
            (std::vector<NamedTeacher>{
                {.name = "maths", .model_key = kModels + "maths.model_path", .rows = ""}}));
}

TEST(Teachers, SeveralHaveTheRowsOfTheirKeys) {
  const auto both = teachers({kModels + "maths.model_path=/t", kModels + "maths.key=gsm8k",
                              kModels + "code.model_path=/t", kModels + "code.key=mbpp"});
  ASSERT_TRUE(both.ok()) << both.status().to_string();
  ASSERT_EQ(both->size(), 2u);
  EXPECT_EQ((*both)[0].rows, "gsm8k");
  EXPECT_EQ((*both)[1].name, "code");
  EXPECT_EQ((*both)[1].rows, "mbpp");
}

TEST(Teachers, WhatDoesNotGoTogetherIsNamed) {
  EXPECT_NE(error({}).find(kModels + "teacher_model.model_path is not set"), std::string::npos);
  const std::string maths = kModels + "maths.model_path=/m", key = kModels + "maths.key=a",
                    code = kModels + "code.model_path=/c";
  EXPECT_NE(error({maths, key, code}).find(kModels + "code.key is not set"), std::string::npos);
  EXPECT_NE(
      error({maths, key, kModels + "code.key=b"}).find(kModels + "code.model_path is not set"),
      std::string::npos);
  EXPECT_EQ(error({maths, key, code, kModels + "code.key=a"}),
            kModels + "code.key: 'a' is the key of maths already");
  EXPECT_NE(
      error({maths, key, kModels + "teacher_model.model_path=/t"})
          .find(
              "teacher_model is the name of a teacher for all rows, and there is 'maths' besides"),
      std::string::npos);
}

}  // namespace
}  // namespace rl
