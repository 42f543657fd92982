#include "runtime/store/borrowers.h"

#include "tests/runtime/store/other_store.h"

namespace runtime::object_detail {
namespace {

constexpr std::uint64_t kSixteenPages = 16 * kPageBytes;

// A store with the process that owns an extent, and one that borrows.
class BorrowersTest : public ::testing::Test {
 protected:
  BorrowersTest() {
    auto segment = Segment::create(kSixteenPages);
    EXPECT_TRUE(segment.ok()) << segment.status().to_string();
    memory_ = std::make_shared<StoreMemory>(loop_, *std::move(segment), ObjectStoreOptions());
    borrowers_ = std::make_shared<Borrowers>(memory_, peers_, node_, clients_, ended_);
    peers_->on_first_lost = [this](const std::string& endpoint) {
      ++lost_;
      borrowers_->renew(endpoint);
    };
    run_on(loop_, [&] {
      owner_.far->set_handler([this](const std::shared_ptr<Channel>&, const Message& message) {
        told_.push_back(*object_wire::decode_request(message.meta));
      });
      here_ = {ObjectId::random(), node_, "10.0.0.1:1", 0, 0, 64, 1000};
      here_.extent = memory_->lease(kPageBytes, clients_->number_of(owner_.near))->id;
      there_ = {ObjectId::random(), NodeId::random(), other_.endpoint(), 0, 5, 64, 1000};
    });
  }
  ~BorrowersTest() override {
    run_on(loop_, [&] {
      peers_->stop();
      other_.close();
      for (ChannelPair* pair : {&owner_, &borrower_, &second_}) pair->close();
    });
    run_on(loop_, [] {});  // what that closed
  }
  /// The answer of the store to a process that borrows these.
  std::shared_ptr<std::optional<Status>> keep(const std::vector<ObjectLocation>& locations,
                                              ChannelPair& by) {
    auto status = std::make_shared<std::optional<Status>>();
    run_on(loop_, [&] {
      by.near->set_handler([this](const std::shared_ptr<Channel>& from, const Message& message) {
        auto request = object_wire::decode_request(message.meta);
        borrowers_->keep(from, message, std::get<object_wire::Keep>(*request));
      });
      Message message;
      message.kind = FrameKind::kObject;
      message.meta = object_wire::encode_request(object_wire::Keep{locations});
      by.far->request(std::move(message), deadline_after(std::chrono::seconds(20)),
                      [status](Result<Message> reply) {
                        *status = reply.ok() ? object_wire::decode_reply(reply->meta).status()
                                             : reply.status();
                      });
    });
    return status;
  }
  Status answer(const std::shared_ptr<std::optional<Status>>& status) {
    EXPECT_TRUE(comes_true(loop_, [&] { return status->has_value(); }));
    return on_loop(loop_, [&] { return status->value_or(internal_error("no answer")); });
  }
  void release(const std::vector<ObjectLocation>& locations, ChannelPair& by) {
    run_on(loop_, [&] { borrowers_->release(by.near, object_wire::Release{locations}); });
  }
  std::size_t size() {
    return on_loop(loop_, [&] { return borrowers_->size(); });
  }
  /// What the owner was told last, once it was told `times` times.
  template <class T>
  bool is_told(std::size_t times, const ObjectLocation& location) {
    EXPECT_TRUE(comes_true(loop_, [&] { return told_.size() >= times; }));
    return on_loop(loop_, [&] {
      const auto* last = told_.empty() ? nullptr : std::get_if<T>(&told_.back());
      return told_.size() == times && last && last->locations == std::vector{location};
    });
  }

  const NodeId node_ = NodeId::random();
  EventLoop loop_;
  OtherStore other_{loop_};
  std::shared_ptr<StoreMemory> memory_;
  const std::shared_ptr<PeerLinks> peers_ =
      std::make_shared<PeerLinks>(loop_, OtherStore::credentials());
  const std::shared_ptr<StoreClients> clients_ = std::make_shared<StoreClients>();
  const std::shared_ptr<EndedOwners> ended_ =
      std::make_shared<EndedOwners>(node_, [](pid_t) { return std::string("killed by SIGKILL"); });
  std::shared_ptr<Borrowers> borrowers_;
  ChannelPair owner_{loop_}, borrower_{loop_}, second_{loop_};
  ObjectLocation here_, there_;
  std::vector<object_wire::Request> told_;  // to the owner
  int lost_ = 0;                            // connections to the other store
};

TEST_F(BorrowersTest, TheOwnerHearsOfTheFirstAndTheLast) {
  EXPECT_TRUE(answer(keep({here_}, borrower_)).ok());
  EXPECT_TRUE(is_told<object_wire::Hold>(1, here_));
  EXPECT_TRUE(answer(keep({here_}, second_)).ok());
  release({here_}, borrower_);
  EXPECT_EQ(size(), 1u);
  release({here_}, second_);
  EXPECT_TRUE(is_told<object_wire::Unhold>(2, here_));
  EXPECT_EQ(size(), 0u);
}

TEST_F(BorrowersTest, AProcessThatEndsBorrowsNothingAnyMore) {
  EXPECT_TRUE(answer(keep({here_}, borrower_)).ok());
  EXPECT_TRUE(answer(keep({here_}, borrower_)).ok());
  run_on(loop_, [&] { borrowers_->client_ended(clients_->number_of(borrower_.near)); });
  EXPECT_TRUE(is_told<object_wire::Unhold>(2, here_));
  EXPECT_EQ(size(), 0u);
}

TEST_F(BorrowersTest, ANodeCountsOnceHoweverOftenItRepeatsItself) {
  ChannelPair node(loop_, peer_of(Role::kNode));
  EXPECT_TRUE(answer(keep({here_}, node)).ok());
  EXPECT_TRUE(answer(keep({here_}, node)).ok());
  release({here_}, node);
  EXPECT_TRUE(is_told<object_wire::Unhold>(2, here_));
}

TEST_F(BorrowersTest, SaysWhyAnObjectIsGone) {
  run_on(loop_, [&] {
    PeerInfo owner = peer_of(Role::kDriver);
    owner.pid = 17;
    ended_->note({here_.extent}, owner);
    memory_->table.drop(clients_->number_of(owner_.near));
  });
  ObjectLocation freed = here_;
  freed.extent = 99;
  for (int time = 0; time < 2; ++time) {
    const Status lost = answer(keep({here_}, borrower_));
    EXPECT_EQ(lost.code(), ErrorCode::kObjectLost);
    EXPECT_NE(lost.message().find("driver (pid 17"), std::string::npos) << lost.message();
    EXPECT_NE(lost.message().find("killed by SIGKILL"), std::string::npos) << lost.message();
    EXPECT_EQ(answer(keep({freed}, borrower_)).code(), ErrorCode::kObjectLost);
  }
}

TEST_F(BorrowersTest, WhatTheStoreHasKeptIsOfNoConcernToAnOwner) {
  std::vector<ObjectLocation> returned;
  run_on(loop_, [&] {
    borrowers_->on_returned([&](const ObjectLocation& location) {
      returned.push_back(location);
      return true;
    });
  });
  EXPECT_TRUE(answer(keep({here_}, borrower_)).ok());
  EXPECT_TRUE(is_told<object_wire::Hold>(1, here_));
  release({here_}, borrower_);
  run_on(loop_, [&] { EXPECT_EQ(returned, std::vector{here_}); });
  run_on(loop_, [&] { EXPECT_EQ(told_.size(), 1u); });
}

TEST_F(BorrowersTest, AnotherNodesOwnerIsAskedBeforeTheAnswer) {
  const auto first = keep({here_, there_}, borrower_);
  EXPECT_EQ(other_.next<object_wire::Keep>().locations, std::vector{there_});
  run_on(loop_, [&] { EXPECT_FALSE(first->has_value()) << "the other node has not said"; });
  other_.answer(object_wire::encode_reply(object_wire::Done{}));
  EXPECT_TRUE(answer(first).ok());
  const auto second = keep({there_}, second_);
  other_.next<object_wire::Keep>();
  other_.answer(object_wire::encode_failure(object_lost("its owner ended")));
  EXPECT_EQ(answer(second), object_lost("its owner ended"));
  release({there_}, borrower_);
  release({there_}, second_);
  EXPECT_EQ(other_.next<object_wire::Release>().locations, std::vector{there_});
}

TEST_F(BorrowersTest, AnOtherNodeThatIsGoneFailsTheBorrower) {
  run_on(loop_, [&] { other_.close(); });
  EXPECT_EQ(answer(keep({there_}, borrower_)).code(), ErrorCode::kUnavailable);
}

TEST_F(BorrowersTest, TellsAnOtherNodeAgainAfterALostConnection) {
  const auto kept = keep({there_}, borrower_);
  other_.next<object_wire::Keep>();
  other_.answer(object_wire::encode_reply(object_wire::Done{}));
  EXPECT_TRUE(answer(kept).ok());
  run_on(loop_, [&] { other_.drop_connections(); });
  EXPECT_EQ(other_.next<object_wire::Keep>().locations, std::vector{there_});
  other_.answer({});
  // Its store begins again, after a moment without one.
  run_on(loop_, [&] { other_.close(); });
  EXPECT_TRUE(comes_true(loop_, [&] { return lost_ == 2; }));
  run_on(loop_, [&] { other_.open_again(); });
  EXPECT_EQ(other_.next<object_wire::Keep>().locations, std::vector{there_});
}

TEST_F(BorrowersTest, HasNothingToTellANodeThatItBorrowsNothingFrom) {
  EXPECT_TRUE(answer(keep({here_}, borrower_)).ok());
  run_on(loop_, [&] { borrowers_->renew(other_.endpoint()); });
  const auto kept = keep({there_}, borrower_);
  other_.next<object_wire::Keep>();
  other_.answer(object_wire::encode_reply(object_wire::Done{}));
  EXPECT_TRUE(answer(kept).ok());
  run_on(loop_, [&] { EXPECT_EQ(other_.waiting(), 0u); });
}

}  // namespace
}  // namespace runtime::object_detail
