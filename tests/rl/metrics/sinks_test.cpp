// The files of other programs, byte by byte; tests/rl/metrics/check_with_python.py reads them with
// those programs.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "rl/metrics/csv_sink.h"
#include "rl/metrics/metric_log.h"
#include "rl/metrics/prometheus_sink.h"
#include "rl/metrics/protobuf.h"
#include "rl/metrics/tensorboard_sink.h"
#include "rl/metrics/wandb_sink.h"
#include "tests/support/file_size_limit.h"
#include "tests/support/temporary_folder.h"

namespace rl {
namespace {

using support::TemporaryFolder;

std::string bytes_of(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

std::vector<std::filesystem::path> files_below(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

// The example of the encoding's documentation, and one of each other kind of field.
TEST(Protobuf, EncodesEachKindOfField) {
  EXPECT_EQ(ProtobufMessage().integer(1, 150).bytes(), "\x08\x96\x01");
  EXPECT_EQ(ProtobufMessage().text(2, "testing").bytes(), "\x12\x07testing");
  EXPECT_EQ(ProtobufMessage().message(3, ProtobufMessage().integer(1, 150)).bytes(),
            "\x1a\x03\x08\x96\x01");
  EXPECT_EQ(ProtobufMessage().real(1, 1.0).bytes(), std::string("\x09\0\0\0\0\0\0\xf0\x3f", 9));
  EXPECT_EQ(ProtobufMessage().real(2, 1.0F).bytes(), std::string("\x15\0\0\x80\x3f", 5));
  EXPECT_EQ(ProtobufMessage().integer(16, -1).bytes(),
            "\x80\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01");
}

TEST(CsvSink, NewMetricsAreNewColumnsOfAllRows) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "deep" / "metrics.csv";
  auto sink = CsvSink::open(path, 0);
  ASSERT_TRUE(sink.ok()) << sink.status().to_string();
  ASSERT_TRUE((*sink)->write({1, 3, 0, {{"b", 0.5}}}).ok());
  ASSERT_TRUE((*sink)->write({2, 3, 0, {{"b", std::nan("")}, {"a,\"x\"", 2}}}).ok());
  ASSERT_TRUE((*sink)->write({3, 3, 1, {{"b", 1e-30}}}).ok());
  EXPECT_EQ(bytes_of(path),
            "step,total,epoch,phase,b,\"a,\"\"x\"\"\"\n1,3,0,,0.5,\n2,3,0,,nan,2\n3,3,1,,1."
            "0000000000000001e-30,\n");
}

TEST(CsvSink, ResumingDropsLaterStepsAndATornRow) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "metrics.csv";
  std::ofstream(path) << "step,total,epoch,phase,a,late\n1,2,0,sft,0.5,\n1,4,0,,0.5,\n2,4,0,,0.25,"
                         "\n3,4,0,,0.125,7\n2,4,0,,0.2";
  auto sink = CsvSink::open(path, 2);
  ASSERT_TRUE(sink.ok());
  ASSERT_TRUE((*sink)->write({3, 4, 0, {{"a", 2}}}).ok());
  EXPECT_EQ(bytes_of(path),
            "step,total,epoch,phase,a\n1,2,0,sft,0.5\n1,4,0,,0.5\n2,4,0,,0.25\n3,4,0,,2\n");
  EXPECT_NE(
      CsvSink::open("/proc/no/metrics.csv", 0).status().message().find("/proc/no/metrics.csv"),
      std::string::npos);
}

TEST(PrometheusSink, HoldsTheLastStep) {
  const TemporaryFolder folder;
  PrometheusSink sink(folder.path() / "metrics.prom", "p", "a \"name\"");
  ASSERT_TRUE(sink.write({1, 2, 0, {{"gone", 1}}}).ok());
  ASSERT_TRUE(
      sink.write({2, 2, 0, {{"actor/lr", 0.5}, {"x", std::numeric_limits<double>::infinity()}}})
          .ok());
  EXPECT_EQ(bytes_of(folder.path() / "metrics.prom"),
            "# HELP starling_train_step Steps done.\n# TYPE starling_train_step "
            "gauge\nstarling_train_step{project=\"p\",experiment=\"a \\\"name\\\"\"} 2\n"
            "# HELP starling_train Metrics of the last step.\n# TYPE starling_train gauge\n"
            "starling_train{name=\"actor/lr\",project=\"p\",experiment=\"a \\\"name\\\"\"} "
            "0.5\nstarling_train{name=\"x\",project=\"p\",experiment=\"a \\\"name\\\"\"} +Inf\n");
}

// The first record of any event file: its bytes are in TensorFlow's tests.
TEST(TensorBoardSink, FramesRecordsWithMaskedChecksums) {
  const TemporaryFolder folder;
  auto sink = TensorBoardSink::open(folder.path(), 0);
  ASSERT_TRUE(sink.ok()) << sink.status().to_string();
  auto another = TensorBoardSink::open(folder.path(), 0);
  ASSERT_TRUE(another.ok());
  const auto files = files_below(folder.path());
  ASSERT_EQ(files.size(), 2u);
  const std::string bytes = bytes_of(files.front());
  // A length of 24 and its checksum, which depend on nothing else: so begins every file that
  // TensorFlow writes.
  EXPECT_EQ(bytes.substr(0, 12), std::string("\x18\0\0\0\0\0\0\0\xa3\x7f\x4b\x22", 12));
  EXPECT_NE(bytes.find("brain.Event:2"), std::string::npos);
}

// A session's start, as TensorFlow encodes it: it forgets what earlier files have from its step on.
TEST(TensorBoardSink, ARunThatBeginsSupersedesTheValidationBeforeTheFirstStep) {
  for (const auto& [last_step, first] : {std::pair(0, '\0'), std::pair(5, '\6')}) {
    const TemporaryFolder folder;
    auto sink = TensorBoardSink::open(folder.path(), last_step);
    ASSERT_TRUE(sink.ok()) << sink.status().to_string();
    const std::string start{'\x10', first, '\x3a', '\x02', '\x08', '\x01'};
    EXPECT_NE(bytes_of(files_below(folder.path()).front()).find(start), std::string::npos)
        << last_step;
  }
}

TEST(WandbSink, RecordsAreCutAtBlocksAndTheRunKeepsItsId) {
  const TemporaryFolder folder;
  const WandbOptions options{
      .folder = folder.path(), .project = "p", .name = "n", .config = {{"data", {{"seed", 1}}}}};
  std::string id;
  {
    auto sink = WandbSink::open(options);
    ASSERT_TRUE(sink.ok()) << sink.status().to_string();
    const std::string long_name(100'000, 'x');  // over three blocks
    ASSERT_TRUE((*sink)->write({1, 2, 0, {{long_name, 1}}}).ok());
  }
  for (const auto& file : files_below(folder.path())) {
    if (file.filename() == "run_id") id = bytes_of(file).substr(0, 8);
  }
  ASSERT_EQ(id.size(), 8u);
  for (const auto& file : files_below(folder.path())) {
    if (file.extension() != ".wandb") continue;
    EXPECT_EQ(file.filename(), "run-" + id + ".wandb");
    const std::string bytes = bytes_of(file);
    EXPECT_EQ(bytes.substr(0, 7), std::string(":W&B\xE1\xBE\0", 7));
    EXPECT_EQ(bytes[32 * 1024 + 6], 3) << "the second block begins with a middle piece";
    EXPECT_EQ(bytes[3 * 32 * 1024 + 6], 4) << "and the fourth with the last";
  }
  ASSERT_TRUE(WandbSink::open(options).ok());
  EXPECT_EQ(files_below(folder.path()).size(), 3u) << "the first start's file is still there";
  EXPECT_EQ(bytes_of(folder.path() / "wandb" / "run_id"), id + "\n");
}

// As with one WANDB_DIR for all runs.
TEST(WandbSink, RunsThatShareAFolderHaveIdsOfTheirOwn) {
  const TemporaryFolder folder;
  for (const char* run : {"a", "b", "a"}) {
    ASSERT_TRUE(WandbSink::open({.folder = folder.path(),
                                 .project = "p",
                                 .name = run,
                                 .config = {},
                                 .run_folder = folder.path() / run})
                    .ok());
  }
  const std::string a = bytes_of(folder.path() / "a" / "wandb" / "run_id"),
                    b = bytes_of(folder.path() / "b" / "wandb" / "run_id");
  EXPECT_NE(a, b);
  std::map<std::string, int> starts;
  for (const auto& file : files_below(folder.path())) {
    if (file.extension() == ".wandb") ++starts[file.filename()];
  }
  EXPECT_EQ(starts, (std::map<std::string, int>{{"run-" + a.substr(0, 8) + ".wandb", 2},
                                                {"run-" + b.substr(0, 8) + ".wandb", 1}}));
}

class FullDisk : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    ::unsetenv("TENSORBOARD_DIR");
    ::unsetenv("WANDB_DIR");
  }
  // The file that grows.
  std::filesystem::path log() const {
    for (const auto& file : files_below(folder_.path())) {
      if (file.filename() != "run_id") return file;
    }
    return {};
  }

  TemporaryFolder folder_;
};

TEST_P(FullDisk, LeavesNothingInPartAndLosesNothing) {
  const auto metrics = [](std::int64_t step) {
    Metrics values = {{"a", static_cast<double>(step)}};
    if (step > 1) values["b"] = 0.5;  // a column that is new while there is no room
    return values;
  };
  auto logger = open_metric_log({.loggers = {GetParam()},
                                 .folder = folder_.path(),
                                 .project = "p",
                                 .experiment = "e",
                                 .config = {}});
  ASSERT_TRUE(logger.ok()) << logger.status().to_string();
  logger->write({1, 4, 0, metrics(1)});
  const std::string before = bytes_of(log());
  {
    const support::FileSizeLimit room(before.size() + 5);  // the next line is cut after five bytes
    for (const std::int64_t step : {2, 3}) logger->write({step, 4, 0, metrics(step)});
    EXPECT_EQ(bytes_of(log()), before);
    const runtime::Status waiting = logger->flush();
    EXPECT_NE(waiting.message().find("2 records could not be written"), std::string::npos)
        << waiting.message();
    EXPECT_NE(waiting.message().find(log().string()), std::string::npos) << waiting.message();
  }
  logger->write({4, 4, 0, metrics(4)});

  EXPECT_TRUE(logger->flush().ok());
  const std::string after = bytes_of(log()), name = GetParam();
  ASSERT_GT(after.size(), before.size());
  if (name == "csv") {
    EXPECT_EQ(after,
              "step,total,epoch,phase,a,b\n1,4,0,,1,\n2,4,0,,2,0.5\n3,4,0,,3,0.5\n4,4,0,,4,0.5\n");
    return;
  }
  if (name == "file") {
    const auto line = [](const std::string& step) {
      return "{\"step\":" + step + ",\"total\":4,\"epoch\":0,\"data\":{\"a\":" + step +
             ".0,\"b\":0.5}}\n";
    };
    EXPECT_EQ(after, before + line("2") + line("3") + line("4"));
    return;
  }
  EXPECT_EQ(after.substr(0, before.size()), before);
  // The others' frames follow each other without a gap: a version and a start before the four, or a
  // header and a run.
  std::size_t frames = 0, at = name == "wandb" ? 7 : 0;
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(after[i]); };
  for (; at < after.size(); ++frames)
    at += name == "wandb" ? 7 + byte(at + 4) + 256 * byte(at + 5)
                          : 16 + byte(at) + 256 * byte(at + 1);
  EXPECT_EQ(frames, 6u);
  EXPECT_EQ(at, after.size());
}

INSTANTIATE_TEST_SUITE_P(MetricLog, FullDisk,
                         ::testing::Values("file", "csv", "tensorboard", "wandb"),
                         [](const auto& test) { return std::string(test.param); });

TEST(MetricLog, OpensWhatIsNamedAndSaysWhereItIs) {
  const TemporaryFolder folder;
  ::unsetenv("TENSORBOARD_DIR");
  ::unsetenv("WANDB_DIR");
  ::setenv("WANDB_MODE", "disabled", 1);
  auto log = open_metric_log(
      {.loggers = {"csv", "tensorboard", "wandb", "mlflow"}, .folder = folder.path()});
  ::unsetenv("WANDB_MODE");
  ASSERT_TRUE(log.ok()) << log.status().to_string();
  log->write({1, 1, 0, {{"a", 1}}});
  EXPECT_EQ(log->places(), (std::vector<std::string>{folder.path() / "metrics.csv",
                                                     folder.path() / "metrics.jsonl",
                                                     folder.path() / "tensorboard"}));
  EXPECT_EQ(bytes_of(folder.path() / "metrics.jsonl"),
            "{\"step\":1,\"total\":1,\"epoch\":0,\"data\":{\"a\":1.0}}\n");
  EXPECT_EQ(open_metric_log({.loggers = {"csv"}, .folder = "/proc/no"}).status().code(),
            runtime::ErrorCode::kNotFound);
}

TEST(MetricLog, AFolderIsFoundByTheKeyBeforeTheEnvironmentAndErrorsNameWhichItWas) {
  const TemporaryFolder folder;
  ::setenv("TENSORBOARD_DIR", "/proc/no", 1);
  ::setenv("WANDB_DIR", "/proc/no", 1);
  ::unsetenv("WANDB_MODE");
  const auto by_key = open_metric_log({.loggers = {"tensorboard"},
                                       .folder = folder.path(),
                                       .tensorboard_folder = folder.path() / "board"});
  const auto by_variable = open_metric_log({.loggers = {"tensorboard"}, .folder = folder.path()});
  const auto wandb = open_metric_log({.loggers = {"wandb"}, .folder = folder.path()});
  const auto wrong_key = open_metric_log(
      {.loggers = {"tensorboard"}, .folder = folder.path(), .tensorboard_folder = "/proc/no"});
  ::unsetenv("TENSORBOARD_DIR");
  ::unsetenv("WANDB_DIR");
  ASSERT_TRUE(by_key.ok()) << by_key.status().to_string();
  EXPECT_EQ(by_key->places(), (std::vector<std::string>{folder.path() / "board"}));
  EXPECT_EQ(by_variable.status().message().substr(0, 17), "TENSORBOARD_DIR: ");
  EXPECT_EQ(wandb.status().message().substr(0, 11), "WANDB_DIR: ");
  EXPECT_EQ(wrong_key.status().message().substr(0, 25), "trainer.tensorboard_dir: ");
}

// The programs themselves, where a Python with them is named: STARLING_PYTHON.
TEST(MetricLog, TensorBoardAndWandbReadWhatIsWritten) {
  const char* python = std::getenv("STARLING_PYTHON");
  if (python == nullptr)
    GTEST_SKIP() << "STARLING_PYTHON names no Python with tensorboard and wandb";
  const TemporaryFolder folder;
  const auto write = [&](std::int64_t from, std::int64_t to, std::int64_t last) {
    auto log = open_metric_log({.loggers = {"tensorboard", "wandb", "csv"},
                                .folder = folder.path(),
                                .last_step = last,
                                .project = "project",
                                .experiment = "name",
                                .config = {{"data", {{"seed", 7}}}}});
    ASSERT_TRUE(log.ok()) << log.status().to_string();
    for (std::int64_t step = from; step <= to; ++step) {
      Metrics metrics{{"actor/lr", 0.5 / static_cast<double>(step)},
                      {"critic/score/mean", static_cast<double>(100 * from + step)}};
      for (int i = 0; i < 300; ++i)
        metrics["many/" + std::to_string(i)] = i;  // enough to cross blocks
      log->write({step, 9, 0, metrics});
    }
  };
  write(1, 6, 0);
  write(4, 9, 3);  // resumed after step 3
  const std::string command = std::string(python) +
                              " " STARLING_SOURCE_DIR "/tests/rl/metrics/check_with_python.py " +
                              folder.path().string();
  EXPECT_EQ(std::system(command.c_str()), 0);
}

}  // namespace
}  // namespace rl
