// Nodes that are told that their machine is about to be taken away: by a file, a command, or a
// metadata endpoint, honest or not.
#include <atomic>

#include "drain_fixture.h"
#include "runtime/node/http_get.h"
#include "runtime/transport/blocking.h"
#include "tests/support/metadata_server.h"

namespace runtime::test {
namespace {

using support::aws_metadata;
using support::gcp_metadata;
using support::http_answer;
using support::MetadataServer;

int bytes_of(const std::string& file) {
  std::error_code none_yet;
  const auto size = std::filesystem::file_size(file, none_yet);
  return none_yet ? 0 : static_cast<int>(size);
}

std::string in_seconds(int seconds) {
  const std::time_t at = std::time(nullptr) + seconds;
  char text[32];
  std::tm utc{};
  ::gmtime_r(&at, &utc);
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

class PreemptionTest : public DrainTest {
 protected:
  TestNode watched(const std::string& option, const std::string& value) {
    return watched({option, value});
  }
  /// Looks at a file leave no trace, so the node runs a command as often. Its loop keeps the order
  /// of timers: between two runs of the command it looks at the file.
  TestNode watched_file(const std::string& path) {
    return watched({"--preemption-file", path, "--preemption-command", "echo >> " + looked_});
  }
  /// It is not drained though it looks, as often as `looks` tells.
  template <class Looks>
  void expect_undisturbed(const TestNode& which, Looks&& looks, int more = 3) {
    const int before = looks();
    EXPECT_TRUE(eventually([&] { return looks() >= before + more; })) << log(which);
    expect_not_drained(which);
  }
  void expect_undisturbed_by_files(const TestNode& which) {
    expect_undisturbed(which, [&] { return bytes_of(looked_); });
  }
  void expect_not_drained(const TestNode& which) {
    const auto info = node(which.id);
    ASSERT_TRUE(info) << which.process->output();
    EXPECT_FALSE(info->drain);
  }
  std::string log(const TestNode& which) const { return which.process->output(); }
  /// How often it has complained.
  static std::size_t warnings(const std::string& log) {
    std::size_t count = 0;
    for (std::size_t at = log.find("cannot tell"); at != std::string::npos;
         at = log.find("cannot tell", at + 1))
      ++count;
    return count;
  }

 private:
  TestNode watched(std::vector<std::string> options) {
    options.insert(options.end(), {"--preemption-poll", "100ms", "--drain-deadline", "100s"});
    return add_node(4, options);
  }
  const std::string looked_ = folder_.file("looked_at_the_file");
};

TEST_F(PreemptionTest, AFileThatAppearsDrainsTheNode) {
  const std::string path = folder_.file("preempted");
  TestNode spot = watched_file(path);
  auto keeper = make<Keeper>(far(1));
  get(keeper.call(&Keeper::add, 4));
  const TestNode other = add_node();
  expect_undisturbed_by_files(spot);
  std::ofstream(path).flush();
  EXPECT_TRUE(has_left(spot)) << log(spot);
  EXPECT_EQ(get(keeper.call(&Keeper::total)), 4);
  EXPECT_EQ(spot.process->wait().exit_code, 0);
}

TEST_F(PreemptionTest, AFileOfTheWrongKindOrContentDoesNot) {
  const std::string path = folder_.file("preempted");
  ASSERT_EQ(::mkdir(path.c_str(), 0700), 0);
  TestNode spot = watched_file(path);
  expect_undisturbed_by_files(spot);
  ::rmdir(path.c_str());
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  expect_undisturbed_by_files(spot);
  ::unlink(path.c_str());
  std::ofstream(path) << "<html>please log in</html>";
  expect_undisturbed_by_files(spot);
  EXPECT_TRUE(eventually([&] { return warnings(log(spot)) > 0; })) << log(spot);
  std::ofstream(path, std::ios::trunc) << "preempted 5s\n";
  EXPECT_TRUE(has_left(spot)) << log(spot);
}

TEST_F(PreemptionTest, ACommandSaysSo) {
  const std::string path = folder_.file("says"), looked = folder_.file("looked");
  std::ofstream(path) << "none\n";
  TestNode spot = watched("--preemption-command", "echo >> " + looked + "; cat " + path);
  auto mortal = make<Mortal>(far());
  const auto looks = [&] { return bytes_of(looked); };
  expect_undisturbed(spot, looks);
  std::ofstream(path, std::ios::trunc) << "no such page\n";
  expect_undisturbed(spot, looks);
  std::ofstream(path, std::ios::trunc) << "preempted 3s\n";
  EXPECT_TRUE(eventually([&] { return !node(spot.id) || node(spot.id)->drain; }));
  EXPECT_TRUE(has_left(spot)) << "the notice's deadline is earlier than its own: " << log(spot);
}

TEST_F(PreemptionTest, ACommandThatHangsFloodsOrFailsIsOnlyWarnedOf) {
  for (const char* command :
       {"sleep 1000", "yes preempted", "exit 3", "kill -9 $$", "/no/such/program"}) {
    const std::string looked = folder_.file("looked");
    TestNode spot = watched("--preemption-command", "echo >> " + looked + "; " + command);
    EXPECT_TRUE(eventually([&] { return warnings(log(spot)) > 0; }))
        << command << ": " << log(spot);
    expect_undisturbed(
        spot, [&] { return bytes_of(looked); }, 2);
    EXPECT_LE(warnings(log(spot)), 2u) << log(spot);
    spot.process->signal(SIGINT);
    spot.process->wait();
  }
}

TEST_F(PreemptionTest, AwsTellsTheTime) {
  MetadataServer server(aws_metadata(""));
  TestNode spot = watched("--preemption-url", server.url("aws"));
  auto keeper = make<Keeper>(far(1));
  expect_undisturbed(spot, [&] { return server.requests(); });
  EXPECT_EQ(warnings(log(spot)), 0u) << log(spot);
  server.set(aws_metadata(R"({"action": "terminate", "time": ")" + in_seconds(900) + R"("})"));
  ASSERT_TRUE(eventually([&] { return node(spot.id) && node(spot.id)->drain; })) << log(spot);
  const NodeDrain drain = *node(spot.id)->drain;
  EXPECT_GT(drain.left, 600s) << "the actor fits nowhere else: the node waits with it";
  EXPECT_LE(drain.left, 900s);
  EXPECT_NE(drain.reason.find("terminate"), std::string::npos) << drain.reason;
}

TEST_F(PreemptionTest, AwsRenewsATokenThatHasRunOut) {
  std::atomic<int> tokens{0};
  MetadataServer server([&](const std::string& request) {
    if (request.starts_with("PUT")) return http_answer(200, "TOKEN" + std::to_string(++tokens));
    if (request.find("X-aws-ec2-metadata-token: TOKEN1") != std::string::npos)
      return http_answer(401, "");
    return http_answer(200, R"({"action": "stop", "time": ")" + in_seconds(20) + R"("})");
  });
  TestNode spot = watched("--preemption-url", server.url("aws"));
  EXPECT_TRUE(has_left(spot)) << log(spot);
  EXPECT_EQ(tokens, 2);
}

TEST_F(PreemptionTest, GcpSaysTrueOrFalse) {
  MetadataServer server(gcp_metadata("FALSE"));
  TestNode spot = watched("--preemption-url", server.url("gcp"));
  expect_undisturbed(spot, [&] { return server.requests(); });
  EXPECT_EQ(warnings(log(spot)), 0u) << log(spot);
  server.set(gcp_metadata("TRUE"));
  EXPECT_TRUE(has_left(spot)) << log(spot);
}

TEST_F(PreemptionTest, EndpointsThatLieAreNotBelieved) {
  const std::string page = "<!DOCTYPE html><html><body>TRUE: terminate your session</body></html>";
  const std::string huge(1 << 20, 'x');
  const std::vector<MetadataServer::Answer> lies{
      [&](const std::string&) { return http_answer(200, page, "Content-Type: text/html\r\n"); },
      [&](const std::string&) { return http_answer(200, page, "Metadata-Flavor: Google\r\n"); },
      // Without the header that GCP's has.
      [&](const std::string&) { return http_answer(200, "TRUE"); },
      [&](const std::string&) { return http_answer(200, huge, "Metadata-Flavor: Google\r\n"); },
      [&](const std::string&) { return "HTTP/1.1 200 OK\r\nX: " + huge + "\r\n\r\nTRUE"; },
      [&](const std::string&) { return std::string("\x00\xff\x13 no HTTP at all", 18); },
      [&](const std::string&) { return std::string(); },
      [&](const std::string&) {
        return http_answer(302, "", "Location: http://127.0.0.1:1/TRUE\r\n");
      },
      aws_metadata(R"({"action": "terminate"})"),
      aws_metadata(R"({"action": "noop", "time": "2030-01-01T00:00:00Z"})"),
      aws_metadata(R"({"action": "terminate", "time": "tomorrow"})"),
      aws_metadata("[1, 2"),
      aws_metadata("TRUE"),
  };
  MetadataServer server(lies[0]);
  TestNode of_aws = watched("--preemption-url", server.url("aws"));
  TestNode of_gcp = watched("--preemption-url", server.url("gcp"));
  for (const auto& lie : lies) {
    server.set(lie);
    const int before = server.requests();
    EXPECT_TRUE(eventually([&] { return server.requests() >= before + 4; }));
  }
  expect_undisturbed(
      of_aws, [&] { return server.requests(); }, 4);
  expect_not_drained(of_gcp);
  // Some thirty failures of several kinds are a line or two.
  EXPECT_GE(warnings(log(of_aws)), 1u);
  EXPECT_LE(warnings(log(of_aws)), 3u) << log(of_aws);
  // Once it tells the truth, that counts.
  server.set(gcp_metadata("TRUE"));
  EXPECT_TRUE(has_left(of_gcp)) << log(of_gcp);
}

TEST(HttpRequest, AnswersThatDoNotEndAreGivenUpAtTheirLimit) {
  const std::string huge(1 << 20, 'x');
  const std::string begin = "HTTP/1.1 200 OK\r\n";
  EventLoop loop;
  for (const std::string& answer :
       std::vector<std::string>{begin + "Content-Length: 9000000\r\n\r\n" + huge,
                                begin + "\r\n" + huge, begin + "X: " + huge, huge,
                                begin + "Transfer-Encoding: chunked\r\n\r\nfffffff\r\n" + huge,
                                begin + "Transfer-Encoding: chunked\r\n\r\n1;" + huge}) {
    MetadataServer server([&](const std::string&) { return answer; });
    const Deadline deadline = deadline_after(10s);
    auto heard = wait_for<HttpAnswer>(loop, deadline, [&](auto done) {
      http_request(loop, HttpRequest{false, "127.0.0.1", server.port(), "/"}, 4096, deadline,
                   std::move(done));
    });
    EXPECT_EQ(heard.status().code(), ErrorCode::kInvalidArgument)
        << heard.status().message() << ", for " << answer.substr(0, 60);
  }
}

TEST_F(PreemptionTest, EndpointsThatHangOrDripAreGivenUp) {
  MetadataServer server(gcp_metadata("TRUE"));
  server.pause_ms = -1;
  TestNode spot = watched("--preemption-url", server.url("gcp"));
  const auto looks = [&] { return server.requests(); };
  expect_undisturbed(spot, looks, 2);  // one of them was given up
  EXPECT_TRUE(eventually([&] { return warnings(log(spot)) == 1; })) << log(spot);
  server.pause_ms = 150;  // ten seconds for all of it
  expect_undisturbed(spot, looks, 2);
  EXPECT_TRUE(run({kStarling, "status", "--address", spot.address}).exit_code == 0)
      << "the node answers meanwhile";
  server.pause_ms = 0;
  EXPECT_TRUE(has_left(spot)) << log(spot);
}

TEST_F(PreemptionTest, BadOptionsAreRefused) {
  const std::vector<std::vector<std::string>> bad{
      {"--address", address_, "--preemption-url", "http://127.0.0.1:80"},
      {"--address", address_, "--preemption-url", "aws+https://127.0.0.1"},
      {"--address", address_, "--preemption-url", "aws+http://:80"},
      {"--address", address_, "--preemption-url", "gcp+http://h:99999"},
      {"--address", address_, "--preemption-url", "aws+http://h/x y"},
      {"--address", address_, "--preemption-file", "/x", "--preemption-poll", "1ms"},
      {"--address", address_, "--drain-deadline", "-1s"},
      {"--head", "--port", "0", "--preemption-file", "/x"},
  };
  for (auto arguments : bad) {
    arguments.insert(arguments.begin(), {kStarling, "start", "--block"});
    const CommandResult refused = run(arguments);
    EXPECT_EQ(refused.exit_code, 1) << arguments.back();
    EXPECT_NE(refused.output.find("error: "), std::string::npos) << refused.output;
  }
}

}  // namespace
}  // namespace runtime::test
