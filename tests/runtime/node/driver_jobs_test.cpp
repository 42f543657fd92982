#include "runtime/node/driver_jobs.h"

#include "runtime/transport/blocking.h"
#include "tests/runtime/node/fake_head.h"
#include "tests/runtime/transport/fixture.h"

namespace runtime {
namespace {

class DriverJobsTest : public ::testing::Test {
 protected:
  DriverJobsTest() {
    clients_.add(pair_.server);
    DriverJobs::Callbacks callbacks;
    callbacks.head = head_.ask();
    callbacks.refuse = [this] { return refusal_; };
    callbacks.submitted = [this](JobId job) {
      return submitted_.job == job && !job.is_none() ? &submitted_ : nullptr;
    };
    callbacks.runs = [this](JobId job) { return submitted_.job == job && !job.is_none(); };
    callbacks.offer = [this](const DriverInfo&) { ++offered_; };
    callbacks.warm = [this](JobId, const DriverInfo&) { ++warmed_; };
    drivers_ = std::make_unique<DriverJobs>(pair_.server_loop, DriverJobsOptions{}, callbacks,
                                            clients_, ends_);
  }
  ~DriverJobsTest() override {
    on_loop(pair_.server_loop, [&] {
      drivers_.reset();
      clients_.clear();
      return 0;
    });
  }
  void add(JobId wanted = {}) {
    on_loop(pair_.server_loop, [&] {
      drivers_->add(pair_.server, wanted, {},
                    [this](Result<ControlAnswer> answer) { answer_ = std::move(answer); });
      return 0;
    });
  }
  JobId job() { return clients_.find(*pair_.server)->job; }

  Pair pair_;
  FakeHead head_;
  EndReports ends_{head_.ask()};
  ClientTable clients_;
  Status refusal_;
  JobInfo submitted_;
  int offered_ = 0, warmed_ = 0;
  std::optional<Result<ControlAnswer>> answer_;
  std::unique_ptr<DriverJobs> drivers_;
};

TEST_F(DriverJobsTest, ADriverIsAJobOnceTheHeadKnowsIt) {
  add();
  EXPECT_EQ(offered_, 1);
  EXPECT_EQ(warmed_, 0);
  EXPECT_FALSE(job().is_none());
  EXPECT_EQ(head_.next<control::StartJob>().info.job, job());
  head_.answer();
  EXPECT_EQ(warmed_, 1);
  ASSERT_TRUE(answer_ && answer_->ok());
  EXPECT_EQ(std::get<JobId>(**answer_), job());
}

TEST_F(DriverJobsTest, OneDriverRegistersOnce) {
  add();
  add();
  ASSERT_TRUE(answer_);
  EXPECT_EQ(answer_->status().message(), "this driver is registered already");
}

TEST_F(DriverJobsTest, ANodeThatLeavesTakesTheDriversOfItsOwnJobsOnly) {
  refusal_ = unavailable("it is drained");
  add();
  ASSERT_TRUE(answer_);
  EXPECT_EQ(answer_->status().code(), ErrorCode::kUnavailable);
  submitted_.job = JobId::random();
  add(submitted_.job);
  EXPECT_EQ(job(), submitted_.job);
  EXPECT_EQ(head_.next<control::StartJob>().info.job, submitted_.job);
}

TEST_F(DriverJobsTest, ReportsHowADriverEnded) {
  add();
  head_.answer();
  ClientTable::Client driver = *clients_.find(*pair_.server);
  drivers_->on_closed(driver);
  EXPECT_EQ(head_.next<control::EndJob>().outcome, JobOutcome::kFailed) << "without a word";
  head_.answer();
  driver.exit_code = 0;
  drivers_->on_closed(driver);
  EXPECT_EQ(head_.next<control::EndJob>().outcome, JobOutcome::kSucceeded);
  head_.answer();
  driver.stop_reason = "stopped on request";
  drivers_->on_closed(driver);
  EXPECT_EQ(head_.next<control::EndJob>().cause.text, "stopped on request");
}

TEST_F(DriverJobsTest, ASubmittedJobGoesOnWithoutItsDriver) {
  submitted_.job = JobId::random();
  add(submitted_.job);
  head_.answer();
  drivers_->on_closed(*clients_.find(*pair_.server));
  EXPECT_TRUE(head_.next<control::EndJob>().goes_on);
  EXPECT_TRUE(ends_.jobs().empty());
}

TEST_F(DriverJobsTest, StopsNoDriverThatIsElsewhere) {
  EXPECT_FALSE(drivers_->stop(JobId::random(), "stopped on request"));
}

}  // namespace
}  // namespace runtime
