#include "runtime/node/node_jobs.h"

#include "runtime/process/job_user.h"
#include "runtime/transport/blocking.h"
#include "tests/runtime/node/fake_head.h"
#include "tests/runtime/transport/fixture.h"

namespace runtime {
namespace {

class NodeJobsTest : public ::testing::Test {
 protected:
  NodeJobsTest() {
    clients_.add(pair_.server);
    NodeJobsOptions options;
    options.files = {.cache = folder_.path() / "cache", .folders = folder_.path() / "jobs"};
    NodeJobs::Callbacks callbacks;
    callbacks.head = head_.ask();
    callbacks.refuse = [this](const std::string&) { return refusal_; };
    callbacks.is_stopping = [] { return false; };
    callbacks.offer = [](const DriverInfo&) {};
    callbacks.warm = [](JobId, const DriverInfo&) {};
    callbacks.user_of = [](const Channel& channel) { return peer_user(channel.peer(), ""); };
    jobs_ = std::make_unique<NodeJobs>(pair_.server_loop, options, callbacks, clients_, ends_);
  }
  ~NodeJobsTest() override {
    on_loop(pair_.server_loop, [&] {
      jobs_.reset();
      clients_.clear();
      return 0;
    });
  }
  /// Nothing: it was not served, or not answered yet.
  std::optional<Status> serve(ControlRequest::Body body) {
    return on_loop(pair_.server_loop, [&] {
      auto told = std::make_shared<std::optional<Status>>();
      ControlRequest request{{}, seconds(1), std::move(body)};
      ControlAnswerer answer = [told](const Result<ControlAnswer>& result) {
        *told = result.status();
      };
      served_ = jobs_->serve(pair_.server, request, answer);
      return *told;
    });
  }
  control::QueueJob queue() {
    control::QueueJob request;
    request.job = JobId::random();
    request.place = GroupId::random();
    request.argv = {"true"};
    request.resources = {{"CPU", 1}};
    return request;
  }

  support::TemporaryFolder folder_;
  Pair pair_;
  FakeHead head_;
  EndReports ends_{head_.ask()};
  ClientTable clients_;
  Status refusal_;
  bool served_ = false;
  std::unique_ptr<NodeJobs> jobs_;
};

TEST_F(NodeJobsTest, ServesRequestsAboutJobsOnly) {
  EXPECT_FALSE(serve(control::QueryCluster{}));
  EXPECT_FALSE(served_);
  EXPECT_FALSE(serve(control::CancelJob{JobId::random()}));
  EXPECT_FALSE(served_) << "a job that is not here is the head's to find";
  EXPECT_EQ(serve(control::DriverDone{3})->code(), ErrorCode::kOk);
  EXPECT_EQ(clients_.find(*pair_.server)->exit_code, 3);
}

TEST_F(NodeJobsTest, ChecksWhatIsToBeQueued) {
  control::QueueJob nothing = queue();
  nothing.resources.clear();
  EXPECT_EQ(serve(nothing)->message(), "a job that is to wait for a place reserves something");
  const control::QueueJob job = queue();
  EXPECT_FALSE(serve(job)) << "it waits for the head";
  EXPECT_EQ(jobs_->all(), std::vector<JobId>{job.job});
  EXPECT_EQ(serve(job)->message(), "job " + job.job.short_hex() + " is here already");
}

TEST_F(NodeJobsTest, ChecksWhatIsSubmitted) {
  control::SubmitJob request;
  EXPECT_EQ(serve(request)->message(), "no command to run");
  request.argv = {"true"};
  request.env = {{"A=B", "1"}};
  EXPECT_EQ(serve(request)->message(), "'A=B' is not a variable name");
  refusal_ = unavailable("it is drained");
  EXPECT_EQ(serve(request)->message(), "it is drained")
      << "before anything of the job is looked at";
}

TEST_F(NodeJobsTest, CancelsAJobThatWaits) {
  const control::QueueJob job = queue();
  EXPECT_FALSE(serve(job));
  EXPECT_TRUE(serve(control::CancelJob{job.job})->ok());
  EXPECT_TRUE(ends_.jobs().contains(job.job));
  EXPECT_TRUE(jobs_->cancel(job.job, "again").ok()) << "its end is on its way";
  const JobId other = JobId::random();
  EXPECT_EQ(jobs_->cancel(other, "").message(),
            "no job " + other.short_hex() + " runs on this node");
}

}  // namespace
}  // namespace runtime
