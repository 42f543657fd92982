#include "runtime/store/peer_links.h"

#include "tests/runtime/store/other_store.h"

namespace runtime::object_detail {
namespace {

class PeerLinksTest : public ::testing::Test {
 protected:
  PeerLinksTest() {
    links_->on_ended = [this](const std::vector<ObjectId>& objects) {
      ended_.insert(ended_.end(), objects.begin(), objects.end());
    };
    links_->on_first_lost = [this](const std::string& endpoint) { lost_.push_back(endpoint); };
  }
  ~PeerLinksTest() override {
    run_on(loop_, [&] {
      if (links_) links_->stop();
      other_.close();
    });
    run_on(loop_, [] {});  // what that closed
  }
  void with(const std::string& endpoint, int stream = 0) {
    run_on(loop_, [&] {
      links_->with(endpoint, stream, [this](Result<std::shared_ptr<Channel>> channel) {
        given_.push_back(std::move(channel));
      });
    });
  }
  /// The first that were given.
  std::vector<Result<std::shared_ptr<Channel>>> given(std::size_t count) {
    EXPECT_TRUE(comes_true(loop_, [&] { return given_.size() >= count; }));
    return on_loop(loop_, [&] { return given_; });
  }
  void ask(const std::string& endpoint) {
    run_on(loop_, [&] {
      links_->ask(endpoint, object_wire::Keep{}, deadline_after(std::chrono::seconds(20)),
                  [this](Result<object_wire::Reply> reply) { replies_.push_back(reply.status()); });
    });
  }
  std::vector<Status> replies(std::size_t count) {
    EXPECT_TRUE(comes_true(loop_, [&] { return replies_.size() >= count; }));
    return on_loop(loop_, [&] { return replies_; });
  }

  EventLoop loop_;
  OtherStore other_{loop_};
  std::shared_ptr<PeerLinks> links_ = std::make_shared<PeerLinks>(loop_, OtherStore::credentials());
  std::vector<Result<std::shared_ptr<Channel>>> given_;
  std::vector<Status> replies_;
  std::vector<ObjectId> ended_;
  std::vector<std::string> lost_;
};

TEST_F(PeerLinksTest, KeepsOneConnectionForEachStream) {
  const std::string endpoint = other_.endpoint();
  for (int stream : {0, 0, 1}) with(endpoint, stream);
  const auto made = given(3);
  with(endpoint);
  const auto again = given(4);
  for (const auto& channel : again) ASSERT_TRUE(channel.ok()) << channel.status().to_string();
  EXPECT_EQ(*made[0], *made[1]) << "the second waited for the first";
  EXPECT_NE(*made[0], *made[2]);
  EXPECT_EQ(*made[0], *again[3]);
  EXPECT_TRUE(comes_true(loop_, [&] { return other_.connections() == 2; }));
}

TEST_F(PeerLinksTest, AsksAndIsAnswered) {
  ask(other_.endpoint());
  other_.next<object_wire::Keep>();
  other_.answer(object_wire::encode_reply(object_wire::Done{}));
  EXPECT_TRUE(replies(1)[0].ok());
  ask(other_.endpoint());
  other_.next<object_wire::Keep>();
  other_.answer(object_wire::encode_failure(object_lost("it was freed")));
  EXPECT_EQ(replies(2)[1], object_lost("it was freed"));
}

TEST_F(PeerLinksTest, SaysThatThereIsNoStoreThere) {
  with("no endpoint");
  EXPECT_EQ(given(1)[0].status().code(), ErrorCode::kInvalidArgument);
  const std::string endpoint = other_.endpoint();
  run_on(loop_, [&] { other_.close(); });
  ask(endpoint);
  EXPECT_EQ(replies(1)[0].code(), ErrorCode::kUnavailable);
  EXPECT_TRUE(lost_.empty()) << "there was none to lose";
}

TEST_F(PeerLinksTest, TellsOfALostConnectionAndMakesANewOne) {
  const std::string endpoint = other_.endpoint();
  with(endpoint, 0);
  with(endpoint, 1);
  given(2);
  ask(endpoint);
  other_.next<object_wire::Keep>();
  run_on(loop_, [&] { other_.drop_connections(); });
  EXPECT_EQ(replies(1)[0].code(), ErrorCode::kUnavailable);
  EXPECT_TRUE(comes_true(loop_, [&] { return !lost_.empty(); }));
  with(endpoint);
  const auto channels = given(3);
  ASSERT_TRUE(channels[2].ok()) << channels[2].status().to_string();
  EXPECT_NE(*channels[0], *channels[2]);
  run_on(loop_,
         [&] { EXPECT_EQ(lost_, std::vector<std::string>{endpoint}) << "of the first only"; });
}

TEST_F(PeerLinksTest, PassesOnWhichObjectsHaveEnded) {
  with(other_.endpoint());
  given(1);
  EXPECT_TRUE(comes_true(loop_, [&] { return other_.connections() == 1; }));
  const ObjectId object = ObjectId::random();
  Message malformed;
  malformed.kind = FrameKind::kObject;
  malformed.meta = Buffer::copy_of(std::string_view("no request"));
  run_on(loop_, [&] {
    other_.send(std::move(malformed));
    other_.send(object_wire::Keep{});  // nothing that a store asks of the one that connects to it
    other_.send(object_wire::Ended{{object}});
  });
  EXPECT_TRUE(comes_true(loop_, [&] { return !ended_.empty(); }));
  run_on(loop_, [&] { EXPECT_EQ(ended_, std::vector<ObjectId>{object}); });
}

TEST_F(PeerLinksTest, EndsAllThatWaitsWhenItStops) {
  const std::string endpoint = other_.endpoint();
  with(endpoint, 0);
  given(1);
  ask(endpoint);
  other_.next<object_wire::Keep>();
  run_on(loop_, [&] {
    links_->with(endpoint, 1, [this](Result<std::shared_ptr<Channel>> channel) {
      given_.push_back(std::move(channel));
    });
    links_->stop();
    ASSERT_EQ(given_.size(), 2u);
    EXPECT_EQ(given_[1].status(), unavailable("object store: stopped"));
  });
  EXPECT_EQ(replies(1)[0].code(), ErrorCode::kUnavailable);
  EXPECT_TRUE(comes_true(loop_, [&] { return other_.connections() == 0; }))
      << "also the one that was being made";
  with(endpoint);
  EXPECT_EQ(given(3)[2].status(), unavailable("object store: stopped"));
  run_on(loop_, [&] { EXPECT_TRUE(lost_.empty()); });
}

TEST_F(PeerLinksTest, MayGoWhileItConnects) {
  const std::string endpoint = other_.endpoint();
  run_on(loop_, [&] {
    links_->with(endpoint, 0, [this](Result<std::shared_ptr<Channel>> channel) {
      given_.push_back(std::move(channel));
    });
    links_.reset();
  });
  EXPECT_FALSE(given(1)[0].ok());
}

}  // namespace
}  // namespace runtime::object_detail
