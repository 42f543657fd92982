// Requests that come again, and run once.
#include "runtime/head/request_ledger.h"

#include <utility>

#include "parts_fixture.h"

namespace runtime {
namespace {

using namespace std::chrono_literals;

class RequestLedgerTest : public PartTest {
 protected:
  /// A request as it is served: its answerer has been through the ledger.
  struct Served {
    HeadCall call;
    ControlAnswerer answer;  // null: it is not run
    Answer said = std::make_shared<std::optional<Result<ControlAnswer>>>();
  };
  Served serve(RequestId id, ControlRequest::Body body = control::KvAdd{"sum", 1}) {
    return serve(ledger_, id, std::move(body));
  }
  static Served serve(RequestLedger& ledger, RequestId id,
                      ControlRequest::Body body = control::KvAdd{"sum", 1}) {
    Served served;
    const ControlRequest request{{}, 10s, std::move(body), id};
    served.answer =
        ledger.once(served.call, request, [said = served.said](Result<ControlAnswer> result) {
          EXPECT_FALSE(said->has_value()) << "answered twice";
          said->emplace(std::move(result));
        });
    return served;
  }
  static std::int64_t number(const Answer& said) {
    EXPECT_TRUE(status(said).ok()) << status(said).message();
    return status(said).ok() ? std::get<std::int64_t>(***said) : -1;
  }

  const RequestId id_ = RequestId::random();
  RequestLedger ledger_{context_};
};

TEST_F(RequestLedgerTest, WhatHasNoIdRunsEachTime) {
  for (int i = 1; i <= 2; ++i) {
    Served served = serve(RequestId());
    ASSERT_TRUE(served.answer);
    EXPECT_TRUE(served.call.id.is_none());
    served.answer(ControlAnswer{std::int64_t{i}});
    EXPECT_EQ(number(served.said), i);
  }
  EXPECT_TRUE(tables_.requests().all().empty());
}

TEST_F(RequestLedgerTest, WhatMayRunTwiceIsNotRemembered) {
  for (int i = 1; i <= 2; ++i) {
    Served served = serve(id_, control::KvGet{"key"});
    ASSERT_TRUE(served.answer);
    served.answer(ControlAnswer{std::int64_t{i}});
  }
  EXPECT_FALSE(ledger_.knows(id_));
}

TEST_F(RequestLedgerTest, OneThatComesAgainMeanwhileGetsTheSameAnswer) {
  Served first = serve(id_);
  ASSERT_TRUE(first.answer);
  EXPECT_EQ(first.call.id, id_);
  EXPECT_FALSE(first.call.has_begun);
  EXPECT_TRUE(ledger_.knows(id_));
  const Served second = serve(id_), third = serve(id_);
  EXPECT_FALSE(second.answer);
  EXPECT_FALSE(third.answer);
  EXPECT_FALSE(second.said->has_value());
  Served other = serve(RequestId::random());
  EXPECT_TRUE(other.answer) << "another request";
  first.answer(ControlAnswer{std::int64_t{7}});
  for (const Served* served : {&std::as_const(first), &second, &third})
    EXPECT_EQ(number(served->said), 7);
  EXPECT_FALSE(other.said->has_value());
  other.answer(ControlAnswer{std::int64_t{8}});
  EXPECT_EQ(number(other.said), 8);
}

TEST_F(RequestLedgerTest, OneThatComesAgainLaterIsAnsweredAsItWas) {
  serve(id_).answer(ControlAnswer{std::int64_t{7}});
  EXPECT_TRUE(ledger_.knows(id_));
  const Served again = serve(id_);
  EXPECT_FALSE(again.answer);
  EXPECT_EQ(number(again.said), 7);
  RequestLedger next(context_);  // of another head, with the same journal
  const Served once_more = serve(next, id_);
  EXPECT_FALSE(once_more.answer);
  EXPECT_EQ(number(once_more.said), 7);
}

TEST_F(RequestLedgerTest, AFailureStaysOne) {
  const Status why = invalid_argument("the value of 'sum' is not a number");
  serve(id_).answer(why);
  EXPECT_EQ(status(serve(id_).said), why);
}

TEST_F(RequestLedgerTest, TheNextHeadKnowsWhatHadBegunAndWhatItWasAbout) {
  Served first = serve(id_);
  ledger_.note_begun(first.call, 7);
  RequestLedger next(context_);
  EXPECT_TRUE(next.knows(id_));
  Served again = serve(next, id_);
  ASSERT_TRUE(again.answer) << "it has no answer yet, and goes on";
  EXPECT_TRUE(again.call.has_begun);
  EXPECT_EQ(again.call.about, 7u);
  next.note_begun(again.call, 8);
  EXPECT_EQ(tables_.requests().find(id_)->about, 7u) << "it began once";
  again.answer(ControlAnswer{std::int64_t{5}});
  EXPECT_EQ(number(serve(next, id_).said), 5);
}

TEST_F(RequestLedgerTest, NothingIsNotedOfWhatHasNoId) {
  ledger_.note_begun(serve(RequestId()).call, 7);
  EXPECT_TRUE(tables_.requests().all().empty());
}

TEST_F(RequestLedgerTest, ALargeAnswerIsNotKept) {
  serve(id_).answer(ControlAnswer{std::string(100 << 10, 'x')});
  EXPECT_FALSE(ledger_.knows(id_));
  EXPECT_TRUE(serve(id_).answer) << "it runs again";
}

}  // namespace
}  // namespace runtime
