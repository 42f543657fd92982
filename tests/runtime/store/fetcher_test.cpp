// Copies of objects of other nodes: where they come from, how they survive what breaks, and when
// they go.
#include "runtime/store/fetcher.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/runtime/store/other_store.h"
#include "tests/support/file_bytes.h"

namespace runtime::object_detail {
namespace {

using namespace std::chrono_literals;

class FetcherTest : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kPart = kPageBytes;  // that is asked for at a time

  FetcherTest() {
    options_.credentials.node = NodeId::random();
    options_.chunk_bytes = kPart;
    options_.streams = 1;
    options_.chunks_in_flight_max = 2;
    options_.slab_bytes = 0;  // no copy goes because it shares its range
    options_.on_fetched = [this](const FetchedObject& fetched) { reports_.push_back(fetched); };
    auto segment = Segment::create(16 * kPageBytes);
    EXPECT_TRUE(segment.ok()) << segment.status().to_string();
    memory_ = std::make_shared<StoreMemory>(loop_, *std::move(segment), options_);
    memory_->endpoint = "10.0.0.1:1";
  }
  ~FetcherTest() override {
    run_on(loop_, [&] {
      if (fetcher_) fetcher_->stop();
      peers_->stop();
      home_.close();
      second_.close();
    });
    run_on(loop_, [] {});  // what that closed
    run_on(loop_, [&] { fetcher_.reset(); });
  }

  Fetcher& fetcher() {
    if (!fetcher_) fetcher_ = std::make_shared<Fetcher>(memory_, peers_, options_);
    return *fetcher_;
  }
  /// An object of the other node with this number of bytes.
  ObjectLocation object(std::uint64_t bytes) const {
    return {ObjectId::random(), home_node_, home_.endpoint(), 0, 5, 64, bytes};
  }
  using Answer = std::shared_ptr<std::optional<Result<ObjectLocation>>>;
  Answer fetch(const ObjectLocation& location, std::chrono::milliseconds room = 20s) {
    auto answer = std::make_shared<std::optional<Result<ObjectLocation>>>();
    run_on(loop_, [&] {
      fetcher().fetch(location, deadline_after(room),
                      [answer](Result<ObjectLocation> here) { answer->emplace(std::move(here)); });
    });
    return answer;
  }
  bool is_there(const Answer& answer) {
    return on_loop(loop_, [&] { return answer->has_value(); });
  }
  /// Waits for it.
  Result<ObjectLocation> outcome(const Answer& answer) {
    EXPECT_TRUE(comes_true(loop_, [&] { return answer->has_value(); }));
    return on_loop(loop_, [&] {
      return answer->has_value() ? **answer : Result<ObjectLocation>(internal_error("no answer"));
    });
  }
  /// Answers the oldest read that waits at a store, of this object.
  object_wire::Read serve(OtherStore& store, const std::string& bytes) {
    const auto read = store.next<object_wire::Read>();
    store.answer(object_wire::encode_reply(object_wire::Data{}),
                 Buffer::copy_of(bytes.substr(read.from, read.length)));
    return read;
  }
  /// The copy of an object that comes without trouble.
  ObjectLocation copy_of(const ObjectLocation& location, const std::string& bytes) {
    const Answer answer = fetch(location);
    if (location.size > kPart) answer_source("");
    for (std::uint64_t got = 0; got < location.size; got += kPart) serve(home_, bytes);
    const Result<ObjectLocation> here = outcome(answer);
    EXPECT_TRUE(here.ok()) << here.status().to_string();
    return here.value_or(ObjectLocation());
  }
  /// Whom its own node names for a copy; empty: itself. Returns who had been named before.
  std::string answer_source(const std::string& endpoint) {
    const auto asked = home_.next<object_wire::Source>();
    EXPECT_EQ(asked.endpoint, "10.0.0.1:1") << "where this store is";
    home_.answer(object_wire::encode_reply(object_wire::SourceFound{endpoint}));
    return asked.failed;
  }
  std::string text_at(const ObjectLocation& copy) {
    return on_loop(loop_, [&] {
      auto bytes = memory_->segment->find(copy, 0, memory_->segment->bytes());
      EXPECT_TRUE(bytes.ok()) << bytes.status().to_string();
      return bytes.ok() ? std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size())
                        : "";
    });
  }
  bool has_room_again() {
    return comes_true(loop_, [&] { return memory_->table.used_bytes() == 0; });
  }

  ObjectStoreOptions options_;
  const NodeId home_node_ = NodeId::random();
  EventLoop loop_;
  OtherStore home_{loop_}, second_{loop_};  // the object's own node, and one that has a copy
  std::shared_ptr<StoreMemory> memory_;
  const std::shared_ptr<PeerLinks> peers_ =
      std::make_shared<PeerLinks>(loop_, OtherStore::credentials());
  std::vector<FetchedObject> reports_;
  std::shared_ptr<Fetcher> fetcher_;
};

TEST_F(FetcherTest, BringsASmallObjectInOnePiece) {
  const ObjectLocation far = object(1000);
  const std::string bytes = support::drawn_bytes(1000);
  const Answer answer = fetch(far);
  const auto read = serve(home_, bytes);
  EXPECT_EQ(read.location, far);
  EXPECT_EQ(read.from, 0u);
  EXPECT_EQ(read.length, 1000u);
  const Result<ObjectLocation> here = outcome(answer);
  ASSERT_TRUE(here.ok()) << here.status().to_string();
  EXPECT_EQ(here->id, far.id);
  EXPECT_EQ(here->node, options_.credentials.node);
  EXPECT_EQ(here->endpoint, "10.0.0.1:1");
  EXPECT_EQ(text_at(*here), bytes);
  run_on(loop_, [&] {
    EXPECT_EQ(fetcher().fetched_bytes(), 1000u);
    EXPECT_EQ(fetcher().replica_bytes(), kPageBytes);
    EXPECT_EQ(fetcher().copies(), std::vector{*here});
    ASSERT_EQ(reports_.size(), 1u);
    EXPECT_EQ(reports_[0].from, home_.endpoint());
    EXPECT_TRUE(reports_[0].arrived);
  });
}

TEST_F(FetcherTest, AnEmptyObjectComesToo) {
  const Answer answer = fetch(object(0));
  EXPECT_EQ(serve(home_, "").length, 0u);
  const Result<ObjectLocation> here = outcome(answer);
  ASSERT_TRUE(here.ok()) << here.status().to_string();
  EXPECT_EQ(text_at(*here), "");
}

TEST_F(FetcherTest, FetchesOnceForAllThatAsk) {
  const ObjectLocation far = object(10);
  const Answer first = fetch(far), second = fetch(far);
  serve(home_, "0123456789");
  EXPECT_EQ(outcome(first).value_or({}), outcome(second).value_or({}));
  const Answer third = fetch(far);
  EXPECT_TRUE(is_there(third)) << "at once";
  run_on(loop_, [&] { EXPECT_EQ(home_.waiting(), 0u); });
}

TEST_F(FetcherTest, ALargeObjectComesInPartsAFewAtATime) {
  const std::string bytes = support::drawn_bytes(3 * kPart + 100);
  const Answer answer = fetch(object(bytes.size()));
  EXPECT_EQ(answer_source(""), "");
  home_.next<object_wire::Read>();
  run_on(loop_, [&] { EXPECT_LE(home_.waiting(), 2u); });
  for (const std::uint64_t begin : {0, 1, 2, 3}) {
    const auto read = serve(home_, bytes);
    EXPECT_EQ(read.from, begin * kPart);
    EXPECT_EQ(read.length, begin == 3 ? 100 : kPart);
    EXPECT_TRUE(comes_true(loop_, [&] { return home_.waiting() <= 2; }));
  }
  const Result<ObjectLocation> here = outcome(answer);
  ASSERT_TRUE(here.ok()) << here.status().to_string();
  EXPECT_EQ(text_at(*here), bytes);
}

TEST_F(FetcherTest, ComesFromTheNodeThatItsOwnOneNames) {
  const std::string bytes = support::drawn_bytes(2 * kPart);
  const Answer answer = fetch(object(bytes.size()));
  answer_source(second_.endpoint());
  EXPECT_EQ(serve(second_, bytes).from, 0u);
  // That node has dropped its copy: the own one names another, here itself.
  second_.next<object_wire::Read>();
  second_.answer(object_wire::encode_failure(not_found("there is no copy here")));
  EXPECT_EQ(answer_source(""), second_.endpoint());
  EXPECT_EQ(serve(home_, bytes).from, kPart) << "what has come stays";
  const Result<ObjectLocation> here = outcome(answer);
  ASSERT_TRUE(here.ok()) << here.status().to_string();
  EXPECT_EQ(text_at(*here), bytes);
}

TEST_F(FetcherTest, ABrokenConnectionCostsNothingThatHasCome) {
  const std::string bytes = support::drawn_bytes(3 * kPart);
  const Answer answer = fetch(object(bytes.size()));
  answer_source("");
  serve(home_, bytes);
  EXPECT_TRUE(comes_true(loop_, [&] { return fetcher().fetched_bytes() == kPart; }));
  home_.next<object_wire::Read>();
  const std::size_t lost = on_loop(loop_, [&] {
    home_.drop_connections();
    return home_.waiting();
  });
  for (std::size_t i = 0; i < lost; ++i) home_.answer({});  // into nothing
  std::vector<std::uint64_t> again;
  for (int i = 0; i < 2; ++i) again.push_back(serve(home_, bytes).from);
  std::sort(again.begin(), again.end());
  EXPECT_EQ(again, (std::vector<std::uint64_t>{kPart, 2 * kPart}));
  const Result<ObjectLocation> here = outcome(answer);
  ASSERT_TRUE(here.ok()) << here.status().to_string();
  EXPECT_EQ(text_at(*here), bytes);
}

TEST_F(FetcherTest, AFailureIsOneOfAllThatAsked) {
  const ObjectLocation far = object(10);
  const Answer first = fetch(far), second = fetch(far);
  home_.next<object_wire::Read>();
  home_.answer(object_wire::encode_failure(object_lost("its owner has freed it")));
  EXPECT_EQ(outcome(first).status(), object_lost("its owner has freed it"));
  EXPECT_EQ(outcome(second).status(), object_lost("its owner has freed it"));
  EXPECT_TRUE(has_room_again());
  run_on(loop_, [&] {
    ASSERT_EQ(reports_.size(), 1u);
    EXPECT_FALSE(reports_[0].arrived);
  });
  const Answer again = fetch(far);
  serve(home_, "0123456789");
  EXPECT_TRUE(outcome(again).ok()) << "the next one asks again";
}

TEST_F(FetcherTest, AnotherNodeAtItsAddressHasNotTheObject) {
  const Answer answer = fetch(object(10));
  home_.next<object_wire::Read>();
  home_.answer(object_wire::encode_failure(not_found("this is another node")));
  EXPECT_EQ(outcome(answer).status().code(), ErrorCode::kObjectLost);
}

TEST_F(FetcherTest, APartOfTheWrongSizeIsRefused) {
  const Answer answer = fetch(object(10));
  home_.next<object_wire::Read>();
  home_.answer(object_wire::encode_reply(object_wire::Data{}), Buffer::copy_of("012345678"));
  EXPECT_EQ(outcome(answer).status().code(), ErrorCode::kInvalidArgument);
}

TEST_F(FetcherTest, ANodeThatHasLeftIsNotTriedAgain) {
  options_.is_member = [this](NodeId node, UniqueFunction<void(bool)> done) {
    EXPECT_EQ(node, home_node_);
    done(false);
  };
  run_on(loop_, [&] { home_.close(); });
  const Status left = outcome(fetch(object(10))).status();
  EXPECT_EQ(left.code(), ErrorCode::kObjectLost);
  EXPECT_NE(left.message().find("has left the cluster"), std::string::npos) << left.message();
  EXPECT_TRUE(has_room_again());
}

TEST_F(FetcherTest, AMemberThatCannotBeReachedIsTriedSomeTimes) {
  int asked = 0;
  options_.is_member = [&](NodeId, UniqueFunction<void(bool)> done) {
    ++asked;
    done(true);
  };
  run_on(loop_, [&] { home_.close(); });
  const Status unreachable = outcome(fetch(object(10))).status();
  EXPECT_EQ(unreachable.code(), ErrorCode::kUnavailable);
  EXPECT_NE(unreachable.message().find("cannot be reached"), std::string::npos)
      << unreachable.message();
  EXPECT_GE(asked, 2);
  EXPECT_TRUE(has_room_again());
}

// -- Room

TEST_F(FetcherTest, WhatCanNeverFitFailsAtOnce) {
  const Answer answer = fetch(object(17 * kPageBytes));
  ASSERT_TRUE(is_there(answer));
  EXPECT_EQ(outcome(answer).status().code(), ErrorCode::kResourceExhausted);
}

TEST_F(FetcherTest, WaitsForRoomUntilItsDeadline) {
  std::uint64_t taken = 0;
  run_on(loop_, [&] { taken = memory_->lease(16 * kPageBytes, 7)->id; });
  EXPECT_EQ(outcome(fetch(object(10), 10ms)).status().code(), ErrorCode::kResourceExhausted);
  const Answer answer = fetch(object(10));
  EXPECT_FALSE(is_there(answer));
  run_on(loop_, [&] {
    EXPECT_TRUE(memory_->table.give_back(taken, 7));
    memory_->changed();
  });
  serve(home_, "0123456789");
  EXPECT_TRUE(outcome(answer).ok());
}

TEST_F(FetcherTest, DropsTheCopyThatWasUsedLongestAgoAndIsNotRead) {
  const ObjectLocation a = object(1), b = object(1), c = object(1);
  const ObjectLocation copy_a = copy_of(a, "a"), copy_b = copy_of(b, "b"), copy_c = copy_of(c, "c");
  (void)outcome(fetch(a));  // used again
  run_on(loop_, [&] {
    ASSERT_TRUE(memory_->table.pin(copy_b.extent, 8));
    EXPECT_TRUE(fetcher().drop_oldest());
    EXPECT_FALSE(memory_->table.find(copy_c.extent)) << "that of b is being read";
    EXPECT_TRUE(fetcher().drop_oldest());
    EXPECT_FALSE(memory_->table.find(copy_a.extent));
    EXPECT_FALSE(fetcher().drop_oldest());
    EXPECT_EQ(fetcher().copies(), std::vector{copy_b});
    EXPECT_EQ(fetcher().replica_bytes(), kPageBytes);
  });
}

// -- The end of objects and copies

TEST_F(FetcherTest, ACopyGoesWithItsObject) {
  const ObjectLocation far = object(1);
  const ObjectLocation copy = copy_of(far, "x");
  run_on(loop_, [&] {
    fetcher().ended({ObjectId::random(), far.id});
    EXPECT_FALSE(memory_->table.find(copy.extent));
    EXPECT_TRUE(fetcher().copies().empty());
    EXPECT_EQ(fetcher().replica_bytes(), 0u);
  });
}

TEST_F(FetcherTest, ACopyThatIsReadStaysForItsReaders) {
  const ObjectLocation far = object(1);
  const ObjectLocation copy = copy_of(far, "x");
  run_on(loop_, [&] {
    ASSERT_TRUE(memory_->table.pin(copy.extent, 8));
    fetcher().ended({far.id});
    EXPECT_TRUE(memory_->table.find(copy.extent));
    EXPECT_TRUE(memory_->table.unpin(copy.extent, 8));
    EXPECT_FALSE(memory_->table.find(copy.extent));
  });
}

TEST_F(FetcherTest, AnObjectThatEndsOnItsWayArrivesAndGoes) {
  const ObjectLocation far = object(1);
  const Answer answer = fetch(far);
  home_.next<object_wire::Read>();
  run_on(loop_, [&] { fetcher().ended({far.id}); });
  serve(home_, "x");
  EXPECT_TRUE(outcome(answer).ok()) << "it was asked for in time";
  EXPECT_TRUE(has_room_again());
}

TEST_F(FetcherTest, AnObjectThatIsHandedOverIsNoCopyAnyMore) {
  const ObjectLocation far = object(1);
  const Answer answer = fetch(far);
  home_.next<object_wire::Read>();
  run_on(loop_, [&] { EXPECT_FALSE(fetcher().hand_over(far.id)) << "it is not whole"; });
  serve(home_, "x");
  const Result<ObjectLocation> copy = outcome(answer);
  run_on(loop_, [&] {
    EXPECT_EQ(fetcher().hand_over(far.id), *copy);
    EXPECT_FALSE(fetcher().hand_over(far.id));
    EXPECT_FALSE(fetcher().drop_oldest());
    fetcher().ended({far.id});
    EXPECT_TRUE(memory_->table.find(copy->extent)) << "the store keeps it in its own name";
    EXPECT_EQ(fetcher().replica_bytes(), 0u);
    EXPECT_TRUE(memory_->table.unkeep(copy->extent));
  });
}

// -- Passed on to other nodes

TEST_F(FetcherTest, PartsGoOnToOthersAsTheyArrive) {
  const ObjectLocation far = object(2 * kPart);
  const std::string bytes = support::drawn_bytes(2 * kPart);
  std::optional<Result<ObjectLocation>> none, first, all;
  const auto when_here = [&](ByteRange part, std::optional<Result<ObjectLocation>>& answer) {
    run_on(loop_, [&] {
      fetcher().when_here(far, part,
                          [&](Result<ObjectLocation> here) { answer.emplace(std::move(here)); });
    });
  };
  when_here({0, 1}, none);
  ASSERT_TRUE(none);
  EXPECT_EQ(none->status().code(), ErrorCode::kNotFound);
  const Answer answer = fetch(far);
  answer_source("");
  home_.next<object_wire::Read>();
  when_here({10, 20}, first);
  when_here({0, 2 * kPart}, all);
  EXPECT_FALSE(first);
  serve(home_, bytes);
  EXPECT_TRUE(comes_true(loop_, [&] { return first.has_value(); }));
  EXPECT_TRUE(first->ok());
  run_on(loop_, [&] { EXPECT_FALSE(all); });
  serve(home_, bytes);
  const Result<ObjectLocation> here = outcome(answer);
  run_on(loop_, [&] { EXPECT_TRUE(all && all->value_or({}) == here.value_or({})); });
  std::optional<Result<ObjectLocation>> beyond;
  when_here({0, 1}, beyond);
  EXPECT_TRUE(beyond && beyond->ok()) << "it is whole";
}

TEST_F(FetcherTest, WhatDoesNotArriveIsNotPassedOn) {
  const ObjectLocation far = object(1);
  const Answer answer = fetch(far);
  home_.next<object_wire::Read>();
  std::optional<Result<ObjectLocation>> part, beyond;
  run_on(loop_, [&] {
    fetcher().when_here(far, {0, 1}, [&](Result<ObjectLocation> here) { part.emplace(here); });
    fetcher().when_here(far, {1, 1}, [&](Result<ObjectLocation> here) { beyond.emplace(here); });
  });
  ASSERT_TRUE(beyond);
  EXPECT_EQ(beyond->status().code(), ErrorCode::kNotFound);
  home_.answer(object_wire::encode_failure(object_lost("freed")));
  EXPECT_EQ(outcome(answer).status(), object_lost("freed"));
  run_on(loop_, [&] { EXPECT_TRUE(part && part->status() == object_lost("freed")); });
}

// -- Its end

TEST_F(FetcherTest, FailsAllWhenItStops) {
  std::uint64_t taken = 0;
  const Answer coming = fetch(object(1));
  home_.next<object_wire::Read>();
  run_on(loop_, [&] { taken = memory_->lease(15 * kPageBytes, 7)->id; });
  const Answer in_line = fetch(object(1));
  EXPECT_FALSE(is_there(in_line));
  run_on(loop_, [&] {
    fetcher().stop();
    fetcher().stop();
  });
  for (const Answer& answer : {coming, in_line, fetch(object(1))}) {
    ASSERT_TRUE(is_there(answer));
    EXPECT_EQ(outcome(answer).status().code(), ErrorCode::kUnavailable);
  }
  run_on(loop_, [&] {
    EXPECT_EQ(reports_.size(), 2u);
    memory_->line->stop();
    EXPECT_EQ(reports_.size(), 2u) << "each is reported once";
    EXPECT_TRUE(memory_->table.give_back(taken, 7));
    memory_->changed();
  });
  home_.answer(object_wire::encode_reply(object_wire::Data{}), Buffer::copy_of("x"));
  EXPECT_TRUE(has_room_again()) << "a late part keeps no memory";
}

}  // namespace
}  // namespace runtime::object_detail
