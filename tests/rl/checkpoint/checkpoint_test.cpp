#include "rl/checkpoint/checkpoint.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "rl/checkpoint/hidden_folder.h"
#include "rl/checkpoint/shared_file.h"
#include "rl/weights/atomic_file.h"
#include "tests/support/file_size_limit.h"

namespace rl {
namespace {

namespace fs = std::filesystem;

// Whether a process that does this, and ends as by a kill, exits with 0.
bool ends_well(const std::function<void()>& work) {
  const pid_t child = ::fork();
  if (child == 0) work();
  int status = -1;
  return ::waitpid(child, &status, 0) == child && status == 0;
}

class Checkpoint : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::temp_directory_path() / ("starling-checkpoint-" + std::to_string(::getpid()));
    fs::remove_all(root_);
  }
  void TearDown() override { fs::remove_all(root_); }

  runtime::Status save(std::int64_t step, const std::string& weights = "weights") {
    auto writer = CheckpointWriter::begin(root_, step);
    if (!writer.ok()) return writer.status();
    fs::create_directories(writer->folder() / "actor");
    const auto written = write_file_atomically(writer->folder() / "actor/model", weights);
    if (!written.ok()) return written;
    const auto state = writer->write_json("trainer.json", {{"step", step}});
    if (!state.ok()) return state;
    return writer->commit({"actor/model", "trainer.json"}).status();
  }

  std::vector<std::string> entries() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(root_))
      names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
  }

  fs::path root_;
};

TEST_F(Checkpoint, IsFoundAfterCommitAndCarriesItsState) {
  EXPECT_FALSE(latest_whole_checkpoint(root_).value_or(std::nullopt).has_value());
  ASSERT_TRUE(save(5).ok());
  ASSERT_TRUE(save(10).ok());
  const auto latest = latest_whole_checkpoint(root_).value_or(std::nullopt);
  ASSERT_TRUE(latest.has_value());
  EXPECT_EQ(checkpoint_step(*latest), 10);
  EXPECT_EQ((*read_checkpoint_json(*latest, "trainer.json"))["step"], 10);
  EXPECT_EQ(entries(), (std::vector<std::string>{"global_step_10", "global_step_5",
                                                 "latest_checkpointed_iteration.txt"}));
}

TEST_F(Checkpoint, AbandonedWriterLeavesNothing) {
  ASSERT_TRUE(save(1).ok());
  {
    auto writer = CheckpointWriter::begin(root_, 2);
    ASSERT_TRUE(writer.ok());
    ASSERT_TRUE(writer->write_json("trainer.json", {}).ok());
  }
  EXPECT_EQ(entries(),
            (std::vector<std::string>{"global_step_1", "latest_checkpointed_iteration.txt"}));
}

TEST_F(Checkpoint, LeftoversOfAKilledWriterGoWithTheNextOne) {
  fs::create_directories(root_);
  ASSERT_TRUE(ends_well([&] {
    auto writer = CheckpointWriter::begin(root_, 3);
    auto pointer = AtomicFile::create(root_ / "latest_checkpointed_iteration.txt");
    const bool is_begun =
        writer.ok() && pointer.ok() && writer->write_json("trainer.json", {}).ok();
    ::_exit(is_begun ? 0 : 1);  // nothing is cleared away
  }));
  EXPECT_EQ(entries().size(), 2u);
  ASSERT_TRUE(save(4).ok());
  EXPECT_EQ(entries(),
            (std::vector<std::string>{"global_step_4", "latest_checkpointed_iteration.txt"}));
}

TEST_F(Checkpoint, AWriterThatLivesKeepsWhatItHasBegun) {
  // Of this very process, too: a pid says nothing.
  auto writer = CheckpointWriter::begin(root_, 3);
  ASSERT_TRUE(writer.ok());
  ASSERT_TRUE(writer->write_json("trainer.json", {{"step", 3}}).ok());
  auto file = AtomicFile::create(root_ / "metrics.csv");
  ASSERT_TRUE(file.ok() && file->write("step\n").ok());
  ASSERT_TRUE(save(3).ok());
  ASSERT_TRUE(ends_well([&] { ::_exit(save(4).ok() ? 0 : 1); }));
  EXPECT_TRUE(file->commit().ok());
  const auto committed = writer->commit({"trainer.json"});
  ASSERT_TRUE(committed.ok()) << committed.status().message();
  EXPECT_TRUE(verify_checkpoint(*committed).ok());
}

// What it replaced was moved out of the way, and its writer was killed before it was removed.
TEST_F(Checkpoint, AReplacedCheckpointOfAKilledWriterGoes) {
  ASSERT_TRUE(save(3).ok());
  ASSERT_TRUE(ends_well([&] {
    auto hidden = HiddenFolder::make(root_, 3);
    if (!hidden.ok()) ::_exit(1);
    std::error_code error;
    fs::rename(root_ / "global_step_3", hidden->content(), error);
    ::_exit(error ? 1 : 0);
  }));
  ASSERT_TRUE(save(4).ok());
  EXPECT_EQ(entries(),
            (std::vector<std::string>{"global_step_4", "latest_checkpointed_iteration.txt"}));
}

TEST_F(Checkpoint, ReplacesOneOfTheSameStep) {
  ASSERT_TRUE(save(7, "old").ok());
  ASSERT_TRUE(save(7, "new").ok());
  std::string text;
  std::ifstream(root_ / "global_step_7/actor/model") >> text;
  EXPECT_EQ(text, "new");
  EXPECT_TRUE(verify_checkpoint(root_ / "global_step_7").ok());
  EXPECT_EQ(entries().size(), 2u);
}

TEST_F(Checkpoint, MissingFileIsAnErrorThatSpeaksOfTheSharedFolder) {
  auto writer = CheckpointWriter::begin(root_, 1);
  ASSERT_TRUE(writer.ok());
  const auto committed = writer->commit({"actor/model"});
  EXPECT_EQ(committed.status().code(), runtime::ErrorCode::kNotFound);
  EXPECT_NE(committed.status().message().find("share"), std::string::npos);
}

TEST_F(Checkpoint, DamageIsFoundAndTheOneBeforeIsUsed) {
  ASSERT_TRUE(save(1).ok());
  ASSERT_TRUE(save(2).ok());
  std::fstream(root_ / "global_step_2/actor/model", std::ios::in | std::ios::out).put('W');
  const auto status = verify_checkpoint(root_ / "global_step_2");
  EXPECT_EQ(status.code(), runtime::ErrorCode::kInvalidArgument);
  EXPECT_NE(status.message().find("actor/model"), std::string::npos);
  EXPECT_EQ(latest_whole_checkpoint(root_).value_or(std::nullopt), root_ / "global_step_1");

  std::ofstream(root_ / "global_step_1/actor/model") << "short";
  EXPECT_NE(verify_checkpoint(root_ / "global_step_1").message().find("5 bytes instead of 7"),
            std::string::npos);
  std::ofstream(root_ / "global_step_1/manifest.json") << "{\"files\":[{\"path\":3}]}";
  EXPECT_FALSE(verify_checkpoint(root_ / "global_step_1").ok());
  EXPECT_FALSE(latest_whole_checkpoint(root_).value_or(std::nullopt).has_value());
}

// What is whole must not be passed over, for an older one or for none.
TEST_F(Checkpoint, WithoutDescriptorsNothingIsSaidOfIt) {
  ASSERT_TRUE(save(1).ok());
  ASSERT_TRUE(save(2).ok());
  rlimit usual{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &usual), 0);
  const rlimit none{0, usual.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const auto status = verify_checkpoint(root_ / "global_step_2");
  const auto latest = latest_whole_checkpoint(root_);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &usual), 0);
  EXPECT_EQ(status.code(), runtime::ErrorCode::kResourceExhausted) << status.message();
  EXPECT_EQ(latest.status().code(), runtime::ErrorCode::kResourceExhausted);
  EXPECT_EQ(latest_whole_checkpoint(root_).value_or(std::nullopt), root_ / "global_step_2");
}

TEST_F(Checkpoint, AFileNamedLikeANoteOfNoFileStays) {
  auto writer = CheckpointWriter::begin(root_, 1);
  ASSERT_TRUE(writer.ok());
  const std::string name = "mine.hashes-0badcafe";
  ASSERT_TRUE(write_file_atomically(writer->folder() / name, "mine").ok());
  ASSERT_TRUE(writer->commit({name}).ok());
  EXPECT_TRUE(fs::exists(root_ / "global_step_1" / name));
  EXPECT_TRUE(verify_checkpoint(root_ / "global_step_1").ok());
}

TEST_F(Checkpoint, ALostPointerDoesNotLoseTheCheckpoint) {
  ASSERT_TRUE(save(9).ok());
  ASSERT_TRUE(save(11).ok());
  std::ofstream(root_ / "latest_checkpointed_iteration.txt") << "not a number";
  EXPECT_EQ(latest_whole_checkpoint(root_).value_or(std::nullopt), root_ / "global_step_11");
}

TEST_F(Checkpoint, AManifestOfNothingOrOfAnotherStepIsNone) {
  ASSERT_TRUE(save(3).ok());
  ASSERT_TRUE(save(5).ok());
  ASSERT_TRUE(verify_checkpoint(root_ / "global_step_5").ok());
  std::filesystem::rename(root_ / "global_step_5", root_ / "global_step_7");
  EXPECT_NE(verify_checkpoint(root_ / "global_step_7").message().find("it is of step 5"),
            std::string::npos);
  EXPECT_EQ(latest_whole_checkpoint(root_).value_or(std::nullopt), root_ / "global_step_3");
  std::ofstream(root_ / "global_step_3" / "manifest.json") << R"({"step": 3, "files": []})";
  EXPECT_NE(verify_checkpoint(root_ / "global_step_3").message().find("lists no files"),
            std::string::npos);
}

// By whatever name and of whichever process: what carries no mark of ours is the user's.
TEST_F(Checkpoint, WhatWeHaveNotMadeStays) {
  const std::vector<std::string> folders = {
      "thesis.tmp.3999999.1",        ".global_step_notes.3999998.tmp", ".global_step_3.3999998.tmp",
      ".global_step_3.0badcafe.tmp", ".global_step_x.0badcafe.tmp",    "a.starling-tmp-0badcafe"};
  const std::vector<std::string> files = {"results.tmp.3999999.2",
                                          "notes.tmp.x.1",
                                          "a.tmp.1",
                                          "latest_checkpointed_iteration.txt.tmp.3999999.4",
                                          "my.starling-tmp-notes",
                                          ".starling-tmp-0badcafe"};
  for (const std::string& name : folders) {
    fs::create_directories(root_ / name / "checkpoint");
    std::ofstream(root_ / name / "checkpoint" / "thesis.tex") << "x";
  }
  std::ofstream(root_ / ".global_step_x.0badcafe.tmp" / "writer.lock") << "";
  fs::create_directory_symlink(root_ / folders[4], root_ / ".global_step_1.0badcafe.tmp");
  for (const std::string& name : files) std::ofstream(root_ / name) << "x";
  ASSERT_TRUE(save(1).ok());
  ASSERT_TRUE(save(2).ok());
  ASSERT_TRUE(prune_checkpoints(root_, 1).ok());
  for (const std::string& name : folders)
    EXPECT_TRUE(fs::exists(root_ / name / "checkpoint" / "thesis.tex")) << name;
  for (const std::string& name : files) EXPECT_TRUE(fs::exists(root_ / name)) << name;
  EXPECT_FALSE(fs::exists(root_ / "global_step_1"));
}

TEST_F(Checkpoint, FullDiskKeepsTheOldOneWhole) {
  ASSERT_TRUE(save(1).ok());
  const auto status = [&] {
    const support::FileSizeLimit room(4096);
    return save(2, std::string(100'000, 'x'));
  }();
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.message().find("actor/model"), std::string::npos) << status.message();
  EXPECT_EQ(latest_whole_checkpoint(root_).value_or(std::nullopt), root_ / "global_step_1");
  EXPECT_EQ(entries(),
            (std::vector<std::string>{"global_step_1", "latest_checkpointed_iteration.txt"}));
}

TEST_F(Checkpoint, PruningKeepsTheNewest) {
  for (const std::int64_t step : {2, 4, 6, 8}) ASSERT_TRUE(save(step).ok());
  ASSERT_TRUE(prune_checkpoints(root_, 0).ok());
  EXPECT_EQ(entries().size(), 5u);
  ASSERT_TRUE(prune_checkpoints(root_, 2).ok());
  EXPECT_EQ(entries(), (std::vector<std::string>{"global_step_6", "global_step_8",
                                                 "latest_checkpointed_iteration.txt"}));
}

// Of a run that was longer, and was begun again in the same folder.
TEST_F(Checkpoint, WhatIsAboveThePointerIsAnotherRuns) {
  for (const std::int64_t step : {7, 8, 9, 2, 4, 6}) ASSERT_TRUE(save(step).ok());
  std::filesystem::create_directories(root_ / "global_step_5");  // of no run
  std::filesystem::create_directories(root_ / "global_step_007");
  ASSERT_TRUE(prune_checkpoints(root_, 2).ok());
  EXPECT_EQ(entries(),
            (std::vector<std::string>{"global_step_007", "global_step_4", "global_step_5",
                                      "global_step_6", "global_step_7", "global_step_8",
                                      "global_step_9", "latest_checkpointed_iteration.txt"}));
  std::ofstream(root_ / "global_step_6" / "actor/model") << "damaged";
  EXPECT_EQ(latest_whole_checkpoint(root_).value_or(std::nullopt), root_ / "global_step_4");
}

TEST_F(Checkpoint, AManifestNamesFilesOfItsFolder) {
  ASSERT_TRUE(save(3).ok());
  for (const char* path : {"/dev/zero", "../global_step_3/trainer.json"}) {
    std::ofstream(root_ / "global_step_3" / "manifest.json")
        << R"({"step": 3, "files": [{"path": ")" << path << R"(", "bytes": 1, "xxh3_128": "x"}]})";
    EXPECT_NE(
        verify_checkpoint(root_ / "global_step_3").message().find("names a file outside of it"),
        std::string::npos);
  }
  std::filesystem::create_symlink("/dev/zero", root_ / "global_step_3" / "zero");
  std::ofstream(root_ / "global_step_3" / "manifest.json")
      << R"({"step": 3, "files": [{"path": "zero", "bytes": 1, "xxh3_128": "x"}]})";
  EXPECT_NE(verify_checkpoint(root_ / "global_step_3").message().find("not a file"),
            std::string::npos);
}

// Of several writers, whose notes go with the manifest; each byte is one of a range.
TEST_F(Checkpoint, HashesAreThoseOfTheBytesAsTheyWereWritten) {
  const std::string bytes(5'000'000, 'x');
  auto writer = CheckpointWriter::begin(root_, 1);
  ASSERT_TRUE(writer.ok());
  const fs::path file = writer->folder() / "moments";
  for (const bool is_first : {true, false}) {
    auto part = SharedFile::open(file, bytes.size(), is_first);
    ASSERT_TRUE(part.ok()) << part.status().message();
    const std::size_t begin = is_first ? 0 : 2'000'000, end = is_first ? 2'000'000 : bytes.size();
    ASSERT_TRUE(part->write(begin, std::string_view(bytes).substr(begin, end - begin)).ok());
    ASSERT_TRUE(part->finish().ok());
  }
  // On its way to the disk: hashes that were made of the file would not know.
  std::fstream(file, std::ios::in | std::ios::out).seekp(3'000'000).put('y');
  const auto committed = writer->commit({"moments"});
  ASSERT_TRUE(committed.ok()) << committed.status().message();
  const auto manifest = *read_checkpoint_json(*committed, "manifest.json");
  EXPECT_EQ(manifest["files"][0]["ranges"].size(), 2u);
  EXPECT_NE(verify_checkpoint(*committed).message().find("moments: damaged"), std::string::npos);
  std::fstream(*committed / "moments", std::ios::in | std::ios::out).seekp(3'000'000).put('x');
  EXPECT_TRUE(verify_checkpoint(*committed).ok());
  EXPECT_EQ(std::distance(fs::directory_iterator(*committed), {}), 2) << "notes are gone";
  fs::resize_file(*committed / "moments", 4'999'999);
  EXPECT_NE(verify_checkpoint(*committed).message().find("4999999 bytes instead of 5000000"),
            std::string::npos);
}

TEST_F(Checkpoint, PruningKeepsTheBest) {
  for (const std::int64_t step : {2, 4, 6}) ASSERT_TRUE(save(step).ok());
  EXPECT_FALSE(best_checkpoint_step(root_).has_value());
  ASSERT_TRUE(mark_best_checkpoint(root_, 2).ok());
  ASSERT_TRUE(prune_checkpoints(root_, 1).ok());
  EXPECT_EQ(entries(),
            (std::vector<std::string>{"best_checkpointed_iteration.txt", "global_step_2",
                                      "global_step_6", "latest_checkpointed_iteration.txt"}));
}

TEST(CheckpointStep, ReadsOnlyItsOwnNames) {
  EXPECT_EQ(checkpoint_step("/x/global_step_12"), 12);
  EXPECT_FALSE(checkpoint_step("/x/global_step_").has_value());
  EXPECT_FALSE(checkpoint_step("/x/global_step_1x").has_value());
  EXPECT_FALSE(checkpoint_step("/x/step_1").has_value());
}

}  // namespace
}  // namespace rl
