#include "rl/data/python_dataset.h"

#include <gtest/gtest.h>

#include <fstream>

#include "rl/config/config.h"
#include "rl/data/dataset.h"
#include "tests/support/temporary_folder.h"

namespace rl {
namespace {

class PythonDatasetTest : public ::testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& text) {
    std::ofstream(folder_.file(name)) << text;
    return folder_.file(name);
  }

  runtime::Result<Dataset> load(const std::string& path, const std::string& name,
                                const std::vector<std::string>& more = {}) {
    std::vector<std::string> overrides{"data.train_files=" + folder_.file("data.txt"),
                                       "data.custom_cls.path=" + path,
                                       "data.custom_cls.name=" + name};
    overrides.insert(overrides.end(), more.begin(), more.end());
    const auto config = Config::load({std::nullopt, overrides});
    if (!config.ok()) return config.status();
    const auto options = dataset_options(*config, Split::kTrain);
    if (!options.ok()) return options.status();
    return Dataset::load(**options);
  }

  support::TemporaryFolder folder_;
};

constexpr const char* kSums = R"(
class Sums:
    def __init__(self, data_files, tokenizer, processor, config, max_samples=-1):
        print("reading", data_files)
        files = [data_files] if isinstance(data_files, str) else data_files
        self.lines = [line.strip() for name in files for line in open(name)]
        assert config.max_prompt_length == config.get("max_prompt_length") == config["max_prompt_length"]
        self.limit = config.max_prompt_length

    def __len__(self):
        return len(self.lines)

    def __getitem__(self, index):
        a, b = self.lines[index].split("+")
        return {"raw_prompt": [{"role": "user", "content": f"{a} and {b}?"}], "data_source": "sums", "reward_model": {"style": "rule", "ground_truth": str(int(a) + int(b))},
                "extra_info": {"index": index, "limit": self.limit}, "opaque": object()}


class Stream:
    def __init__(self, data_files, config):
        self.files = data_files

    def __iter__(self):
        for number in range(3):
            yield {"prompt": f"{number}+1=", "reward_model": {"ground_truth": str(number + 1)}}
)";

TEST_F(PythonDatasetTest, AClassMakesTheRows) {
  write("data.txt", "1+2\n3+4\n5+6\n");
  const std::string file = write("sums.py", kSums);
  const auto dataset = load(file, "Sums", {"data.max_prompt_length=77"});
  ASSERT_TRUE(dataset.ok()) << dataset.status().to_string();
  ASSERT_EQ(dataset->size(), 3);
  EXPECT_TRUE(dataset->row(1).is_chat());
  EXPECT_EQ(dataset->row(1).prompt[0]["content"], "3 and 4?");
  EXPECT_EQ(dataset->row(1).ground_truth, "7");
  EXPECT_EQ(dataset->row(1).data_source, "sums");
  EXPECT_EQ(dataset->row(2).extra.at("index"), 2);
  EXPECT_EQ(dataset->row(2).extra.at("limit"), 77);
  EXPECT_EQ(dataset->row(2).where, file + ": Sums row 3");
  EXPECT_EQ(load(file, "Sums", {"data.train_max_samples=2"})->size(), 2);
  EXPECT_EQ(load(file, "Stream")->size(), 3) << "an iterable that takes fewer arguments";
}

TEST_F(PythonDatasetTest, ACopyThatTheUsersCodeForksMakesNoRows) {
  write("data.txt", "");
  const std::string file = write("forks.py", R"(
import os

class Forks:
    def __init__(self, data_files):
        pass

    def __len__(self):
        return 50

    def __getitem__(self, index):
        if index == 20:
            os.fork()
        return {"prompt": f"{index}", "reward_model": {"ground_truth": "1"}}
)");
  const auto dataset = load(file, "Forks");
  ASSERT_TRUE(dataset.ok()) << dataset.status().to_string();
  ASSERT_EQ(dataset->size(), 50);
  for (std::int64_t i = 0; i < 50; ++i) EXPECT_EQ(dataset->row(i).prompt, std::to_string(i));
}

TEST_F(PythonDatasetTest, WhatGoesWrongIsNamed) {
  write("data.txt", "1+2\nno sum\n");
  const std::string file = write("sums.py", kSums);
  const auto told = [&](const std::string& path, const std::string& name) {
    return load(path, name).status().to_string();
  };
  EXPECT_NE(told(folder_.file("none.py"), "Sums").find("there is no file"), std::string::npos);
  EXPECT_NE(told(file, "Other").find("has no class 'Other'; it has Sums, Stream"),
            std::string::npos)
      << told(file, "Other");
  EXPECT_NE(told(file, "Sums").find("ValueError"), std::string::npos) << told(file, "Sums");
  EXPECT_NE(told(write("syntax.py", "class Sums(:\n"), "Sums").find("SyntaxError"),
            std::string::npos);
  EXPECT_NE(
      told(
          write("list.py",
                "class Rows(list):\n    def __init__(self, data_files):\n        self.append(5)\n"),
          "Rows")
          .find("row 1 is a int, not a dict"),
      std::string::npos)
      << told(folder_.file("list.py"), "Rows");
  EXPECT_NE(
      told(
          write(
              "ends.py",
              "import os\nclass Rows:\n    def __init__(self, data_files):\n        os._exit(3)\n"),
          "Rows")
          .find("ended after 0 of them"),
      std::string::npos);
  EXPECT_NE(told(write("column.py",
                       "class Rows(list):\n    def __init__(self, data_files):\n        "
                       "self.append({'text': 'a'})\n"),
                 "Rows")
                .find("no key 'prompt'"),
            std::string::npos)
      << told(folder_.file("column.py"), "Rows");
  EXPECT_NE(told(write("none.py",
                       "class Rows(list):\n    def __init__(self, data_files):\n        pass\n"),
                 "Rows")
                .find("the data set is empty"),
            std::string::npos);
}

TEST_F(PythonDatasetTest, ABuiltInDataSetHasNoFilesToMakeRowsOf) {
  const auto both = load(write("sums.py", kSums), "Sums", {"data.dataset_name=toy"});
  EXPECT_NE(both.status().message().find("data.dataset_name=toy"), std::string::npos)
      << both.status().to_string();
}

TEST_F(PythonDatasetTest, AnInterpreterThatIsNotThereIsNamed) {
  const std::string file = write("sums.py", kSums);
  ::setenv("STARLING_PYTHON", "/no/such/python", 1);
  const auto dataset = load(file, "Sums");
  ::unsetenv("STARLING_PYTHON");
  EXPECT_EQ(dataset.status().code(), runtime::ErrorCode::kUnavailable);
  EXPECT_NE(dataset.status().message().find("/no/such/python"), std::string::npos)
      << dataset.status().to_string();
}

}  // namespace
}  // namespace rl
