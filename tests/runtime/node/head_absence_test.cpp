#include "runtime/node/head_absence.h"

#include <gtest/gtest.h>

#include <string>

#include "runtime/core/time_text.h"
#include "tests/support/turned_clock.h"

namespace runtime {
namespace {

using namespace std::chrono_literals;
using Contact = HeadAbsence::Contact;

constexpr const char* kMeanwhile =
    ". Meanwhile actors, calls between them and objects keep working; requests that the head must "
    "answer wait";

// A node that has just lost its head.
class HeadAbsenceTest : public ::testing::Test {
 protected:
  HeadAbsenceTest() {
    options_.patience = 600s;
    options_.patience_brief = 6s;
    options_.away_max = 2s;
    options_.mute_max = 5s;
  }
  HeadAbsence absence_of(const Endpoint& head) {
    HeadAbsence absence(head, options_, [this] { return trouble_; });
    absence.heard();
    absence.begin();
    absence.set_reason(unavailable("connection refused"));
    return absence;
  }
  HeadAbsence far() { return absence_of(Endpoint::tcp("10.0.0.1", 7000)); }
  HeadAbsence local() { return absence_of(*Endpoint::unix_socket("/run/head.sock")); }

  support::TurnedClock clock_;
  HeadLinkOptions options_;
  Status trouble_;
};

TEST_F(HeadAbsenceTest, AHeadThatMayBeLostIsWaitedForBriefly) {
  const HeadAbsence absence = far();
  clock_.turn(6s);
  EXPECT_TRUE(absence.check_patience().ok()) << absence.check_patience().message();
  clock_.turn(1ns);
  EXPECT_EQ(absence.check_patience(),
            unavailable("the head has been away for 6 s: connection refused"));
}

TEST_F(HeadAbsenceTest, OneThatComesBackIsWaitedForLonger) {
  HeadAbsence durable = far();
  durable.set_durable(true);
  const HeadAbsence local = this->local();
  clock_.turn(600s);
  EXPECT_TRUE(durable.check_patience().ok());
  EXPECT_TRUE(local.check_patience().ok());
  clock_.turn(1ns);
  const Status gone = unavailable("the head has been away for 600 s: connection refused");
  EXPECT_EQ(durable.check_patience(), gone);
  EXPECT_EQ(local.check_patience(), gone);
  durable.set_durable(false);
  durable.begin();
  clock_.turn(7s);
  EXPECT_FALSE(durable.check_patience().ok()) << "as the head said last";
}

TEST_F(HeadAbsenceTest, PatienceBeginsAgainWithEachAbsence) {
  HeadAbsence absence = far();
  clock_.turn(7s);
  EXPECT_FALSE(absence.check_patience().ok());
  absence.heard();
  EXPECT_FALSE(absence.check_patience().ok()) << "what it says ends no absence";
  absence.begin();
  EXPECT_TRUE(absence.check_patience().ok());
}

TEST_F(HeadAbsenceTest, WhatKeepsTheHeadFromStartingIsAskedWhenItIsTold) {
  const HeadAbsence absence = local();
  EXPECT_EQ(absence.describe(Contact::kNone).message().find("disk"), std::string::npos);
  trouble_ = resource_exhausted("starting the head: the journal's disk is full");
  clock_.turn(601s);
  EXPECT_EQ(absence.check_patience().message(),
            "the head has been away for 600 s: connection refused: starting the head: the "
            "journal's disk is full");
  EXPECT_NE(absence.describe(Contact::kNone)
                .message()
                .find("(10 min): connection refused: starting the head: the journal's disk is "
                      "full. Meanwhile"),
            std::string::npos)
      << absence.describe(Contact::kNone).message();
  EXPECT_EQ(absence.describe(Contact::kUp).message().find("disk"), std::string::npos)
      << "a head that is connected to has started";
}

TEST_F(HeadAbsenceTest, UrgentRequestsWaitByWhatThereIsOfAConnection) {
  HeadAbsence far = this->far();
  const HeadAbsence local = this->local();
  const Deadline lost = steady_now();
  clock_.turn(10s);
  far.heard();
  EXPECT_EQ(far.heard_at(), lost + 10s);
  EXPECT_EQ(far.too_long_at(Contact::kNone), lost + 2s);
  EXPECT_EQ(local.too_long_at(Contact::kNone), lost + 5s) << "its node starts it meanwhile";
  EXPECT_EQ(far.too_long_at(Contact::kRegistering), lost + 5s) << "it may be reading its journal";
  EXPECT_EQ(far.too_long_at(Contact::kUp), lost + 15s) << "of what it has said last";
}

TEST_F(HeadAbsenceTest, AHeadOnAnotherMachineIsToldWithTheTimeThatIsLeft) {
  const WorkerId worker = *WorkerId::from_hex(std::string(32, '7'));  // which is not told
  HeadAbsence absence = absence_of(Endpoint::tcp("10.0.0.1", 7000).for_worker(worker));
  const std::string begun = time_text(unix_milliseconds());
  clock_.turn(2500ms);
  EXPECT_EQ(absence.describe(Contact::kNone),
            unavailable("the head at 10.0.0.1:7000 has not answered since " + begun +
                        " (3 s): connection refused" + kMeanwhile +
                        ". This node waits another 4 s and ends then. Its cluster had no journal "
                        "that outlives its node (starling start --head --journal): start a new "
                        "one"));
  absence.set_durable(true);
  EXPECT_EQ(absence.describe(Contact::kRegistering),
            unavailable("the head at 10.0.0.1:7000 has not answered since " + begun +
                        " (3 s): connection refused" + kMeanwhile +
                        ". This node waits another 598 s and ends then. Start it again at the same "
                        "address, with its journal (starling start --head --journal), or end this "
                        "node with starling stop"));
}

TEST_F(HeadAbsenceTest, TheTimeThatIsLeftIsNeverBelowZero) {
  const HeadAbsence absence = far();
  clock_.turn(1h);
  const std::string text = absence.describe(Contact::kNone).message();
  EXPECT_NE(text.find("(60 min)"), std::string::npos) << text;
  EXPECT_NE(text.find("waits another 0 ms and ends then"), std::string::npos) << text;
}

TEST_F(HeadAbsenceTest, ASilentHeadIsToldSinceItSpokeAndKeepsTheNode) {
  HeadAbsence absence = far();
  clock_.turn(30s);
  absence.heard();
  const std::string heard = time_text(unix_milliseconds());
  clock_.turn(5s);
  EXPECT_EQ(absence.describe(Contact::kUp),
            unavailable("the head at 10.0.0.1:7000 has not answered since " + heard + " (5 s)" +
                        kMeanwhile +
                        ". Its cluster had no journal that outlives its node (starling start "
                        "--head --journal): start a new one"));
}

TEST_F(HeadAbsenceTest, TheHeadNextToTheNodeIsStartedAgainByIt) {
  const HeadAbsence absence = local();
  const std::string begun = time_text(unix_milliseconds());
  clock_.turn(900ms);
  EXPECT_EQ(absence.describe(Contact::kNone),
            unavailable("the head on this machine has not answered since " + begun +
                        " (900 ms): connection refused" + kMeanwhile +
                        ". Its node starts it again as soon as its process has ended (a process "
                        "that was stopped has not). head.log in the session's logs says what keeps "
                        "it from staying"));
}

TEST_F(HeadAbsenceTest, NothingNeedBeKnownOfWhy) {
  HeadAbsence absence(Endpoint::tcp("h", 1), options_, nullptr);
  absence.begin();
  EXPECT_TRUE(absence.reason().ok());
  clock_.turn(7s);
  EXPECT_NE(absence.describe(Contact::kNone).message().find(" (7 s)" + std::string(kMeanwhile)),
            std::string::npos)
      << absence.describe(Contact::kNone).message();
}

}  // namespace
}  // namespace runtime
