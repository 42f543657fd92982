// A job's files on their way to the node where it is to run.
#include "runtime/job/job_shipping.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "tests/runtime/control/fake_node.h"
#include "tests/support/expect_failure.h"
#include "tests/support/temporary_folder.h"

namespace runtime {
namespace {

using support::expect_failure;

class JobShippingTest : public ::testing::Test {
 protected:
  JobShippingTest()
      : node_([this](const ControlRequest::Body& body, ControlAnswerer& answer) {
          std::lock_guard lock(mutex_);
          if (const auto* offer = std::get_if<control::OfferFiles>(&body)) {
            offers_.push_back(*offer);
            answer(offer->hashes.empty() && !room_.ok()
                       ? Result<ControlAnswer>(room_)
                       : Result<ControlAnswer>(ControlAnswer{wanted_of(*offer)}));
            return true;
          }
          const auto* part = std::get_if<control::StoreFile>(&body);
          if (!part) return false;
          stored_[part->hash] += part->data;
          answer(ControlAnswer{});
          return true;
        }) {}

  void write_file(const std::string& name, const std::string& text) {
    std::ofstream(folder_.file(name)) << text;
  }
  Status ship(const std::optional<std::string>& folder, const std::string& command,
              bool node_is_here = false) {
    request_.argv = {command};
    return ship_files(loop_, *client_, folder, node_is_here, request_);
  }
  /// All that it does not have.
  control::FilesWanted wanted_of(const control::OfferFiles& offer) const {
    control::FilesWanted wanted;
    for (std::uint32_t i = 0; i < offer.hashes.size() + also_wanted_; ++i)
      if (i >= offer.hashes.size() || !stored_.contains(offer.hashes[i]))
        wanted.places.push_back(i);
    return wanted;
  }
  std::string hash_of_path(const std::string& path) const {
    const auto found = std::find_if(request_.files.begin(), request_.files.end(),
                                    [&](const JobFile& file) { return file.path == path; });
    return found == request_.files.end() ? "none" : found->hash;
  }

  support::TemporaryFolder folder_;
  std::mutex mutex_;  // guards what follows while the node is asked
  std::vector<control::OfferFiles> offers_;
  std::map<std::string, std::string> stored_;  // by hash
  Status room_;
  std::uint32_t also_wanted_ = 0;
  FakeNode node_;
  EventLoop loop_;
  std::unique_ptr<NodeClient> client_ = node_.connect(loop_);
  JobRequest request_;
};

TEST_F(JobShippingTest, WithoutAFolderANodeOfThisMachineRunsTheCommandHere) {
  EXPECT_TRUE(ship(std::nullopt, "./anything", true).ok());
  EXPECT_EQ(request_.working_dir, std::filesystem::current_path().string());
  EXPECT_TRUE(offers_.empty());
}

TEST_F(JobShippingTest, OnlyWhatTheNodeLacksIsSentAndEachContentOnce) {
  write_file("a", "same");
  write_file("b", "same");
  write_file("c", "other");
  EXPECT_EQ(ship(folder_.path().string(), "train"), Status());
  ASSERT_EQ(request_.files.size(), 3u);
  EXPECT_EQ(offers_.back().bytes, 13u);
  EXPECT_EQ(offers_.back().count, 3u);
  EXPECT_EQ(offers_.back().hashes.size(), 2u);
  EXPECT_EQ(stored_[hash_of_path("b")], "same");
  EXPECT_EQ(stored_[hash_of_path("c")], "other");
  write_file("d", "new");
  stored_[hash_of_path("c")] = "as it was";
  EXPECT_EQ(ship(folder_.path().string(), "train"), Status());
  EXPECT_EQ(stored_[hash_of_path("d")], "new");
  EXPECT_EQ(stored_[hash_of_path("c")], "as it was") << "it was sent again";
}

TEST_F(JobShippingTest, AProgramFromElsewhereGoesNextToTheFolder) {
  write_file("train", "program");
  EXPECT_EQ(ship(std::nullopt, folder_.file("train")), Status());
  EXPECT_TRUE(request_.files.empty());
  EXPECT_EQ(request_.program.path, "train");
  EXPECT_TRUE(request_.program.executable);
  EXPECT_EQ(stored_[request_.program.hash], "program");
  request_ = {};
  EXPECT_EQ(ship(folder_.path().string(), "./train"), Status());
  EXPECT_EQ(request_.program.path, "") << "it is in the folder";
  expect_failure(ship(std::nullopt, folder_.path().string()), ErrorCode::kInvalidArgument,
                 {folder_.path().string(), "not a program"});
}

TEST_F(JobShippingTest, WhatIsTooLargeIsNamedBeforeAnythingIsSent) {
  write_file("small", "1");
  write_file("large", std::string(2000, 'x'));
  room_ = resource_exhausted("a job may bring 1 KiB");
  const std::string folder = folder_.path().string();
  for (const Status& status :
       {ship(folder, "train"), check_files(loop_, *client_, folder, "train")})
    expect_failure(status, ErrorCode::kResourceExhausted,
                   {folder, "a job may bring 1 KiB", "The largest: large", ".starlingignore"});
  EXPECT_TRUE(stored_.empty());
}

TEST_F(JobShippingTest, ANodeThatWantsWhatItWasNotOfferedIsRefused) {
  write_file("a", "text");
  also_wanted_ = 1;
  EXPECT_EQ(ship(folder_.path().string(), "train").code(), ErrorCode::kInternal);
}

}  // namespace
}  // namespace runtime
