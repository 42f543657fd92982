// Processes of two releases: each is told which both are.
#include <poll.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "runtime/control/control_channel.h"
#include "runtime/process/file_util.h"
#include "runtime/process/session.h"
#include "tests/runtime/cluster/fixture.h"
#include "tests/support/listening_socket.h"
#include "wire.h"

namespace runtime::test {
namespace {

/// The layout of an answer, which all versions share.
std::string answer_of(std::uint16_t version, ErrorCode code, const std::string& reason) {
  std::string answer = "STARLING";
  const auto append = [&answer](const auto& number) {
    answer.append(reinterpret_cast<const char*>(&number), sizeof number);
  };
  append(version);
  append(static_cast<std::uint16_t>(code));
  append(static_cast<std::uint32_t>(reason.size()));
  return answer + reason;
}

/// A port that answers any caller with the same bytes, as soon as the first have been read.
class FixedAnswer {
 public:
  explicit FixedAnswer(std::string answer)
      : answer_(std::move(answer)), listener_(support::listen_at("127.0.0.1", 0)) {
    thread_ = std::thread([this] { serve(); });
  }
  ~FixedAnswer() {
    stopping_ = true;
    thread_.join();
  }
  std::string address() const { return "127.0.0.1:" + std::to_string(support::port_of(listener_)); }

 private:
  void serve() {
    while (!stopping_) {
      pollfd waiting{listener_.get(), POLLIN, 0};
      if (::poll(&waiting, 1, 20) <= 0) continue;
      const FileDescriptor caller(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      (void)hear(caller, Preamble::kBytes + NoiseHandshake::kOverheadBytes,
                 std::chrono::milliseconds(2000));
      (void)say(caller, answer_);
    }
  }

  const std::string answer_;
  FileDescriptor listener_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

class ReleasesTest : public NetworkTest {
 protected:
  void SetUp() override {
    start_here({.machines = 1, .arguments = {"--num-cpus", "1"}});
    const std::string& address = cluster_->address(0);
    port_ = static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1)));
    auto token = read_file(cluster_->token_file(), 1000);
    ASSERT_TRUE(token.ok());
    token_ = *token;
  }
  Preamble preamble(WorkerId target) const {
    const AddressDigest here = digest_of(Endpoint::tcp("127.0.0.1", port_));
    return {.target = target, .dialled = here, .reached = here};
  }
  FileDescriptor stranger() const { return dial("127.0.0.1", port_); }

  std::uint16_t port_ = 0;
  std::string token_;
};

// What a caller of the first wire version sends, and where it looks for the answer.
TEST_F(ReleasesTest, ACallerOfTheFirstVersionIsToldBoth) {
  for (const WorkerId target : {WorkerId{}, head_target(), WorkerId::random()}) {
    Preamble old = preamble(target);
    old.version = 1;
    const FileDescriptor socket = stranger();
    ASSERT_TRUE(
        say(socket, preamble_bytes(old).substr(0, Preamble::kCommonBytes) + std::string(32, 'n')));
    const std::string heard = hear(socket, 4096);
    EXPECT_TRUE(heard.starts_with(std::string("STARLING\x02\0", 10))) << heard;
    EXPECT_NE(heard.find("wire version 1 is not spoken here, only 2"), std::string::npos) << heard;
    EXPECT_TRUE(is_closed(socket));
  }
}

TEST_F(ReleasesTest, ACommandReportsAnOlderAndANewerNode) {
  for (const std::uint16_t version : {1, 3}) {
    const FixedAnswer node(answer_of(version, ErrorCode::kUnimplemented, "not spoken here"));
    const Finished listed = cluster_->run(0, {"env", "STARLING_TOKEN=" + token_, starling_program(),
                                              "list", "nodes", "--address", node.address()});
    EXPECT_EQ(listed.code, 1) << listed.output;
    EXPECT_NE(listed.output.find("speaks wire version " + std::to_string(version) +
                                 ", this release 2: use the same release on all machines"),
              std::string::npos)
        << listed.output;
  }
}

// As after the program was replaced: what runs is not killed for that, with its jobs.
TEST_F(ReleasesTest, AStopDoesNotKillANodeOfAnotherRelease) {
  const FixedAnswer node(answer_of(3, ErrorCode::kUnimplemented, "not spoken here"));
  const auto folders = node_folders(cluster_->folder() / "s0");
  ASSERT_TRUE(folders.ok() && folders->size() == 1);
  const std::filesystem::path file = folders->front() / "node.json";
  auto session = read_session(folders->front());
  ASSERT_TRUE(session);
  std::string text = *read_file(file, 1 << 16);
  for (std::size_t at; (at = text.find(session->address)) != text.npos;)
    text.replace(at, session->address.size(), node.address());
  std::filesystem::remove(folders->front() / "node.sock");  // else it is asked there
  ASSERT_TRUE(write_file_atomic(file, text, 0600).ok());
  const Finished stopped = cluster_->run(0, {starling_program(), "stop"});
  EXPECT_EQ(stopped.code, 1) << stopped.output;
  EXPECT_NE(stopped.output.find("speaks wire version 3, this release 2"), std::string::npos)
      << stopped.output;
  EXPECT_NE(stopped.output.find("--force"), std::string::npos) << stopped.output;
  EXPECT_TRUE(is_running(*session));
}

// The handshake is spoken by both, the frames behind it are not.
TEST_F(ReleasesTest, ANodeWithOtherFramesIsToldBothRanges) {
  for (const WorkerId target : {WorkerId{}, head_target()}) {
    const FileDescriptor socket = stranger();
    HandCaller caller(token_, preamble(target));
    ASSERT_TRUE(say(socket, caller.first_flight()));
    ASSERT_TRUE(caller.take_answer(hear(socket, HandCaller::kAnswerBytes)));
    Hello hello;
    hello.role = Role::kNode;
    hello.version = "9.9.9";
    hello.node = NodeId::random();
    hello.protocol_min = hello.protocol_max = kProtocolMax + 1;
    ASSERT_TRUE(say(socket, caller.hello(hello.encode().text())));
    auto answer = caller.take_hello(hear(socket, 4096));
    ASSERT_TRUE(answer.ok()) << answer.status().to_string();
    const std::string& why = answer->refusal.message();
    EXPECT_EQ(answer->refusal.code(), ErrorCode::kUnimplemented);
    EXPECT_NE(why.find("release 9.9.9 speaks protocols 3 to 3"), std::string::npos) << why;
    EXPECT_NE(why.find("1 to " + std::to_string(kProtocolMax)), std::string::npos) << why;
    EXPECT_TRUE(is_closed(socket));
  }
  EXPECT_EQ(cluster_->members(0), 1);
}

}  // namespace
}  // namespace runtime::test
