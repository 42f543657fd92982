#include "runtime/node/user_connections.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "runtime/process/job_user.h"
#include "tests/runtime/transport/channel_pair.h"

namespace runtime {
namespace {

constexpr const char* kAddress = "10.0.0.1:7000";

PeerInfo submitter_at(const std::string& address) {
  PeerInfo peer = peer_of(Role::kTool);
  peer.address = address;
  peer.is_submitter = true;
  return peer;
}

PeerInfo submitter_of(uid_t uid) {
  PeerInfo peer = submitter_at("unix:/test");
  peer.uid = uid;
  return peer;
}

class UserConnectionsTest : public ::testing::Test {
 protected:
  using Request = std::shared_ptr<UserConnections::Request>;

  const std::string own_ = user_name(::getuid());
  EventLoop loop_;
  UserConnections users_{2};
  ChannelPair first_{loop_, submitter_of(::getuid())}, second_{loop_, submitter_of(::getuid())},
      third_{loop_, submitter_of(::getuid())}, far_{loop_, submitter_at("10.0.0.2:40000")},
      member_{loop_, peer_of(Role::kDriver)};
};

TEST_F(UserConnectionsTest, EachUserHasALimit) {
  EXPECT_TRUE(users_.add(*first_.near, kAddress).ok());
  EXPECT_TRUE(users_.check(third_.near->peer(), kAddress).ok());
  EXPECT_TRUE(users_.add(*second_.near, kAddress).ok());
  const Status full = users_.add(*third_.near, kAddress);
  EXPECT_EQ(full.code(), ErrorCode::kResourceExhausted);
  EXPECT_TRUE(full.message().starts_with(own_ + " has 2 connections")) << full.message();
  EXPECT_EQ(users_.check(third_.near->peer(), kAddress), full);
  EXPECT_TRUE(users_.add(*far_.near, kAddress).ok()) << "another user";
  users_.remove(*third_.near);  // which was not added
  EXPECT_FALSE(users_.add(*third_.near, kAddress).ok());
  users_.remove(*first_.near);
  users_.remove(*first_.near);
  EXPECT_TRUE(users_.add(*third_.near, kAddress).ok());
  EXPECT_FALSE(users_.add(*first_.near, kAddress).ok()) << "it was removed once only";
}

TEST_F(UserConnectionsTest, MembersOfTheClusterAreNotCounted) {
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(users_.add(*member_.near, kAddress).ok());
  EXPECT_TRUE(users_.check(member_.near->peer(), kAddress).ok());
  EXPECT_EQ(users_.begin(*member_.near, 1).status().code(), ErrorCode::kUnavailable);
}

TEST_F(UserConnectionsTest, AMachineStandsForItsUsers) {
  ChannelPair same(loop_, submitter_at("10.0.0.2:40001")),
      other(loop_, submitter_at("10.0.0.3:40000")), again(loop_, submitter_at("10.0.0.2:40002"));
  EXPECT_TRUE(users_.add(*far_.near, kAddress).ok());
  EXPECT_TRUE(users_.add(*same.near, kAddress).ok());
  const Status full = users_.add(*again.near, kAddress);
  EXPECT_TRUE(full.message().starts_with("a user at 10.0.0.2 has 2 connections")) << full.message();
  EXPECT_TRUE(users_.add(*other.near, kAddress).ok());
  EXPECT_EQ(users_.user_of(*far_.near), std::nullopt);
  EXPECT_EQ(users_.uid_of(*far_.near, kAddress), std::nullopt);
}

TEST_F(UserConnectionsTest, RemembersWhoTheCallerIs) {
  EXPECT_EQ(users_.user_of(*first_.near), std::nullopt) << "it was not added";
  EXPECT_EQ(users_.uid_of(*first_.near, kAddress), ::getuid()) << "the kernel knows anyway";
  EXPECT_TRUE(users_.add(*first_.near, kAddress).ok());
  EXPECT_EQ(users_.user_of(*first_.near), own_);
  EXPECT_EQ(users_.uid_of(*first_.near, kAddress), ::getuid());
}

TEST_F(UserConnectionsTest, RequestsOfAUserCountOverAllConnections) {
  EXPECT_TRUE(users_.add(*first_.near, kAddress).ok());
  EXPECT_TRUE(users_.add(*second_.near, kAddress).ok());
  EXPECT_TRUE(users_.add(*far_.near, kAddress).ok());
  std::vector<Request> requests;
  for (std::size_t i = 0; i < UserConnections::kRequestsMax; ++i) {
    auto request = users_.begin(i % 2 == 0 ? *first_.near : *second_.near, 1);
    ASSERT_TRUE(request.ok()) << request.status().to_string();
    requests.push_back(*request);
  }
  const Status full = users_.begin(*first_.near, 0).status();
  EXPECT_EQ(full.code(), ErrorCode::kResourceExhausted);
  EXPECT_TRUE(full.message().starts_with(own_ + " waits for the answers to 512 requests"))
      << full.message();
  EXPECT_TRUE(users_.begin(*far_.near, 1).ok()) << "another user";
  requests.pop_back();
  EXPECT_TRUE(users_.begin(*second_.near, 1).ok());
}

TEST_F(UserConnectionsTest, BytesOfRequestsHaveALimitThatOneAloneMayExceed) {
  EXPECT_TRUE(users_.add(*first_.near, kAddress).ok());
  auto large = users_.begin(*first_.near, 2 * UserConnections::kRequestBytesMax);
  ASSERT_TRUE(large.ok()) << large.status().to_string();
  EXPECT_EQ(users_.begin(*first_.near, 0).status().code(), ErrorCode::kResourceExhausted);
  *large = nullptr;
  auto half = users_.begin(*first_.near, UserConnections::kRequestBytesMax / 2);
  ASSERT_TRUE(half.ok());
  EXPECT_TRUE(users_.begin(*first_.near, UserConnections::kRequestBytesMax / 2).ok());
  EXPECT_FALSE(users_.begin(*first_.near, UserConnections::kRequestBytesMax / 2 + 1).ok());
}

TEST_F(UserConnectionsTest, WhatAClosedConnectionAskedForCountsForTheNext) {
  EXPECT_TRUE(users_.add(*first_.near, kAddress).ok());
  auto large = users_.begin(*first_.near, UserConnections::kRequestBytesMax);
  ASSERT_TRUE(large.ok());
  users_.remove(*first_.near);
  EXPECT_EQ(users_.begin(*first_.near, 1).status(), unavailable("the connection has ended"));
  EXPECT_TRUE(users_.add(*second_.near, kAddress).ok());
  EXPECT_EQ(users_.begin(*second_.near, 1).status().code(), ErrorCode::kResourceExhausted);
  *large = nullptr;
  EXPECT_TRUE(users_.begin(*second_.near, 1).ok());
}

TEST_F(UserConnectionsTest, ARequestMayOutliveTheNode) {
  Request request;
  {
    UserConnections users(1);
    ASSERT_TRUE(users.add(*first_.near, kAddress).ok());
    request = *users.begin(*first_.near, 1);
  }
  request = nullptr;
}

}  // namespace
}  // namespace runtime
