// A job's folder on its way from the node that has it.
#include "runtime/job/job_fetcher.h"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/process/content_hash.h"
#include "tests/runtime/control/fake_node.h"
#include "tests/support/expect_failure.h"
#include "tests/support/file_bytes.h"
#include "tests/support/temporary_folder.h"

namespace runtime {
namespace {

using namespace std::chrono_literals;
using support::expect_failure;

class JobFetcherTest : public ::testing::Test {
 protected:
  JobFetcherTest()
      : node_([this](const ControlRequest::Body& body, ControlAnswerer& answer) {
          const auto* wanted = std::get_if<control::FetchFile>(&body);
          if (!wanted || is_silent_) return false;
          ++reads_;
          answer(part_of(wanted->hash, wanted->offset));
          return true;
        }) {
    JobFilesOptions options;
    options.cache = folder_.path() / "files";
    options.folders = folder_.path() / "jobs/n1";
    Credentials credentials;
    credentials.token = FakeNode::kToken;
    credentials.role = Role::kNode;
    credentials.node = NodeId::random();
    run_on(loop_, [&] {
      files_ = std::make_unique<JobFiles>(loop_, options);
      fetcher_ = std::make_unique<JobFetcher>(loop_, credentials, *files_);
      JobFetcher offering(loop_, credentials, *files_);
      offering.offer(job_, {file("a.txt", "text of a"),
                            {"sub", JobFile::Kind::kFolder, false, 0, "", ""},
                            file("sub/b", ""),
                            file("c", "text of a")});
      list_ = offering.read_list(JobFetcher::folder_name(job_), 0).value_or("");
    });
  }
  ~JobFetcherTest() override {
    run_on(loop_, [&] { fetcher_.reset(); });
    loop_.stop();
  }

  /// A file that the other node has.
  JobFile file(const std::string& path, const std::string& text) {
    ContentHash hash;
    hash.add(text);
    const std::string name = hash.finish();
    contents_[name] = text;
    return {path, JobFile::Kind::kFile, false, text.size(), name, ""};
  }
  /// What the other node answers, in small parts.
  Result<ControlAnswer> part_of(const std::string& name, std::uint64_t offset) const {
    const bool is_list = name == JobFetcher::folder_name(job_);
    const auto content = contents_.find(name);
    if (is_gone_ || (!is_list && content == contents_.end())) return not_found("it is not here");
    const std::string& text = is_list ? list_ : content->second;
    if (offset >= text.size()) return ControlAnswer{std::string()};
    return ControlAnswer{text.substr(offset, is_list ? 100 : 4)};
  }
  Result<std::string> find() {
    const Deadline deadline = deadline_after(20s);
    return wait_for<std::string>(loop_, deadline, [&](auto found) {
      loop_.post([this, deadline, found] {
        fetcher_->find(job_, node_.endpoint().to_string(), deadline, found);
      });
    });
  }

  const JobId job_ = JobId::random();
  support::TemporaryFolder folder_;
  std::map<std::string, std::string> contents_;  // by hash
  std::string list_;
  std::atomic<int> reads_ = 0;
  std::atomic<bool> is_gone_ = false, is_silent_ = false;
  FakeNode node_;
  EventLoop loop_;
  std::unique_ptr<JobFiles> files_;
  std::unique_ptr<JobFetcher> fetcher_;
};

TEST_F(JobFetcherTest, BringsTheFolderHereOnce) {
  const Result<std::string> work = find();
  ASSERT_TRUE(work.ok()) << work.status().to_string();
  EXPECT_TRUE(JobFetcher::is_shipped(job_, *work)) << *work;
  EXPECT_EQ(support::content_of(*work + "/a.txt"), "text of a");
  EXPECT_EQ(support::content_of(*work + "/c"), "text of a");
  EXPECT_TRUE(std::filesystem::exists(*work + "/sub/b"));
  const int reads = reads_;
  EXPECT_EQ(find().value_or(""), *work);
  EXPECT_EQ(reads_, reads);
}

TEST_F(JobFetcherTest, AFailureNamesTheJobAndIsNotTheLastWord) {
  is_gone_ = true;
  expect_failure(find().status(), ErrorCode::kNotFound, {job_.short_hex(), "it is not here"});
  is_gone_ = false;
  EXPECT_TRUE(find().ok());
}

TEST_F(JobFetcherTest, AFileThatIsShorterThanItWasSaidToBeIsNamed) {
  for (auto& [hash, text] : contents_) text.resize(text.size() / 2);
  expect_failure(find().status(), ErrorCode::kUnavailable, {"shorter"});
}

TEST_F(JobFetcherTest, AJobThatEndsMeanwhileLeavesNoFolder) {
  is_silent_ = true;
  std::optional<Status> ended;
  run_on(loop_, [&] {
    fetcher_->find(job_, node_.endpoint().to_string(), deadline_after(20s),
                   [&](const Result<std::string>& found) { ended = found.status(); });
  });
  EXPECT_EQ(node_.next<control::FetchFile>().hash, JobFetcher::folder_name(job_));
  run_on(loop_, [&] { fetcher_->forget(job_); });
  is_silent_ = false;
  node_.answer<control::FetchFile>(ControlAnswer{list_});
  EXPECT_TRUE(comes_true(loop_, [&] { return ended.has_value(); }));
  expect_failure(on_loop(loop_, [&] { return ended.value_or(Status()); }), ErrorCode::kCancelled,
                 {job_.short_hex(), "has ended"});
}

TEST_F(JobFetcherTest, AListIsGivenInPartsAndOnlyWhileTheFolderIsHere) {
  run_on(loop_, [&] {
    const std::string name = JobFetcher::folder_name(job_);
    expect_failure(fetcher_->read_list(name, 0).status(), ErrorCode::kNotFound, {job_.hex()});
    fetcher_->offer(job_, {file("a.txt", "text of a")});
    const std::string whole = fetcher_->read_list(name, 0).value_or("");
    EXPECT_EQ(fetcher_->read_list(name, 8).value_or(""), whole.substr(8));
    EXPECT_EQ(fetcher_->read_list(name, whole.size()).value_or("none"), "");
    EXPECT_EQ(fetcher_->read_list(name, UINT64_MAX).value_or("none"), "");
    fetcher_->forget(job_);
    EXPECT_FALSE(fetcher_->read_list(name, 0).ok());
  });
}

}  // namespace
}  // namespace runtime
