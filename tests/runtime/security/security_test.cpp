// Attacks of strangers on a cluster: none of them does what matters.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <fstream>
#include <random>

#include "runtime/control/control_channel.h"
#include "tests/runtime/cluster/fixture.h"
#include "tests/support/pauses.h"
#include "wire.h"

namespace runtime::test {
namespace {

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

class SecurityTest : public NetworkTest {
 protected:
  static constexpr const char* kAt = "127.0.0.1";  // the head's node
  static constexpr const char* kRecorderAt = "127.0.0.9";

  void start_two() {
    port_ = 0;
    // The last address is the recorder's.
    start_here({.machines = 2, .arguments = {"--num-cpus", "4", "--alias", kRecorderAt}});
    port_ = std::stoi(cluster_->address(0).substr(cluster_->address(0).rfind(':') + 1));
    token_ = text_of(cluster_->token_file());
  }
  FileDescriptor stranger() const { return dial(kAt, port_); }
  /// Of a stranger that knows where it connects to.
  Preamble preamble(WorkerId target = {}) const {
    const AddressDigest here = digest_of(Endpoint::tcp(kAt, static_cast<std::uint16_t>(port_)));
    return {.target = target, .dialled = here, .reached = here};
  }
  /// A preamble, and as many bytes as a caller sends with it.
  std::string opening(WorkerId target = {}) const {
    return preamble_bytes(preamble(target)) + std::string(NoiseHandshake::kOverheadBytes, 'n');
  }
  /// The reason that an answer gives for refusing; empty if it does not.
  static std::string refusal_of(const std::string& answer) {
    return answer.size() > 16 ? answer.substr(16) : std::string();
  }
  long memory() const { return resident_kib(cluster_->node(0)) + resident_kib(cluster_->head()); }
  void expect_serving() {
    const Finished listed = cluster_->starling(1, {"list", "nodes"});
    EXPECT_EQ(listed.code, 0) << listed.output;
  }

  int port_ = 0;
  std::string token_;
};

TEST_F(SecurityTest, TheTokenIsMadeForItsOwnerAlone) {
  start_two();
  int tokens = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_.path() / "s0")) {
    struct stat info {};
    ASSERT_EQ(::lstat(entry.path().c_str(), &info), 0);
    if (S_ISSOCK(info.st_mode)) {
      EXPECT_EQ(info.st_mode & 077, 0u) << entry.path();
    }
    if (entry.is_directory()) {
      EXPECT_EQ(info.st_mode & 077, 0u) << entry.path();
    }
    if (entry.path().filename() != "token") continue;
    ++tokens;
    EXPECT_EQ(info.st_mode & 0777, 0600u);
  }
  EXPECT_EQ(tokens, 1);
  EXPECT_EQ(token_.size(), 64u) << "256 random bits, in hex";
}

TEST_F(SecurityTest, NothingPublicStartsWithoutAToken) {
  network_ = Network::on_loopback(1);
  const std::string empty = folder_.file("empty"), port = std::to_string(free_port());
  std::ofstream(empty) << "\n";
  const auto refused = [&](std::vector<std::string> arguments,
                           std::vector<std::string> environment) {
    arguments.insert(arguments.begin(), {starling_program(), "start", "--block"});
    Program::Spec spec{.argv = arguments,
                       .environment = {"STARLING_SESSION_ROOT=" + folder_.file("s")},
                       .output = folder_.file("refused")};
    spec.environment.insert(spec.environment.end(), environment.begin(), environment.end());
    std::filesystem::remove(spec.output);
    Program program(network_->machine(0), spec);
    EXPECT_EQ(program.wait(30s), 1) << program.output();
    return program.output();
  };
  const auto expect_named = [](const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  expect_named(
      refused({"--head", "--bind", "0.0.0.0", "--port", port}, {"STARLING_TOKEN_FILE=" + empty}),
      "is empty");
  expect_named(refused({"--head", "--bind", "0.0.0.0", "--port", port}, {"STARLING_TOKEN=guess"}),
               "is easy to guess (about");
  expect_named(refused({"--head", "--bind", "::", "--port", port},
                       {"STARLING_TOKEN=aaaaaaaaaaaaaaaaaaaaaaaa"}),
               "80 are needed");
  expect_named(refused({"--address", "10.1.2.3:6399"}, {}), "STARLING_TOKEN_FILE");
  expect_named(refused({"--head", "--port", port}, {"STARLING_TOKEN_FILE=" + folder_.file("none")}),
               "STARLING_TOKEN_FILE");
}

TEST_F(SecurityTest, TheTokenNeverTravelsAndARecordedHandshakeIsWorthNothing) {
  start_two();
  Recorder recorder(kRecorderAt, port_, kAt, port_);
  ASSERT_TRUE(recorder.listens());
  const std::string through = std::string(kRecorderAt) + ":" + std::to_string(port_);
  // A tool, a node that joins, and a driver on it all talk to the head by way of the recorder.
  auto tool = cluster_->run(1, {"env", "STARLING_SESSION_ROOT=" + folder_.file("other"),
                                starling_program(), "list", "nodes", "--address", through});
  EXPECT_EQ(tool.code, 0) << tool.output;
  auto node = cluster_->launch(
      1, {"env", "STARLING_SESSION_ROOT=" + folder_.file("other"), starling_program(), "start",
          "--block", "--address", through, "--bind", "127.0.0.3", "--port", std::to_string(port_)});
  EXPECT_TRUE(cluster_->wait_for_members(3)) << node->output();
  const LoadOptions load{.history = history_file(), .client = 7, .seconds = 2};
  std::vector<std::string> driver = load_command(load);
  driver.insert(driver.begin(), {"env", "STARLING_SESSION_ROOT=" + folder_.file("other")});
  EXPECT_EQ(cluster_->run(1, driver).code, 0);
  const auto connections = recorder.recorded();
  ASSERT_GE(connections.size(), 2u);
  std::string raw;
  for (std::size_t i = 0; i + 1 < token_.size(); i += 2)
    raw.push_back(static_cast<char>(std::stoi(token_.substr(i, 2), nullptr, 16)));
  std::size_t bytes = 0;
  for (const auto& connection : connections) {
    for (const std::string* way : {&connection.from_caller, &connection.from_callee}) {
      bytes += way->size();
      EXPECT_EQ(way->find(token_), std::string::npos);
      EXPECT_EQ(way->find(token_.substr(0, 16)), std::string::npos);
      EXPECT_EQ(way->find(raw), std::string::npos);
      // Nor is what was done to be read: classes, methods, hosts.
      for (const char* name : {"Tally", "127.0.0.3", "num-cpus", "driver"})
        EXPECT_EQ(way->find(name), std::string::npos) << name;
    }
  }
  EXPECT_GT(bytes, 10'000u) << "the recorder has seen too little to prove anything";

  for (const auto& connection : connections) {
    ASSERT_GE(connection.from_caller.size(), 128u);
    FileDescriptor replay = stranger();
    ASSERT_TRUE(say(replay, connection.from_caller));
    // The answer is of fresh keys, under which nothing recorded is a Hello.
    const std::string heard = hear(replay, 4096);
    EXPECT_EQ(heard.size(), HandCaller::kAnswerBytes);
    EXPECT_TRUE(is_closed(replay));
  }
  const std::string log = cluster_->logs(400);
  EXPECT_NE(log.find("a hello that was changed on its way"), std::string::npos) << log;
  node->signal(SIGTERM);
  node->wait(30s);
  expect_serving();
}

TEST_F(SecurityTest, WhoHasNoTokenOrAnotherOneIsRefused) {
  start_two();
  const std::string address = cluster_->address(0),
                    nowhere = "STARLING_SESSION_ROOT=" + folder_.file("nowhere");
  const auto ask = [&](std::vector<std::string> environment, std::vector<std::string> arguments) {
    Program::Spec spec{
        .argv = arguments, .environment = {nowhere}, .output = folder_.file("asked")};
    spec.argv.insert(spec.argv.begin(), starling_program());
    spec.environment.insert(spec.environment.end(), environment.begin(), environment.end());
    std::filesystem::remove(spec.output);
    Program program(network_->machine(1), spec);
    EXPECT_EQ(program.wait(30s), 1) << program.output();
    return program.output();
  };
  EXPECT_NE(ask({}, {"list", "nodes", "--address", address}).find("STARLING_TOKEN"),
            std::string::npos);
  const std::string other = "STARLING_TOKEN=" + std::string(64, '7');
  EXPECT_NE(ask({other}, {"list", "nodes", "--address", address}).find("wrong token"),
            std::string::npos);
  EXPECT_NE(ask({other}, {"stop", "--address", address}).find("wrong token"), std::string::npos);
  EXPECT_NE(ask({other}, {"submit", "--address", address, "--", "true"}).find("wrong token"),
            std::string::npos);
  EXPECT_NE(ask({other}, {"start", "--block", "--address", address, "--bind", "127.0.0.4"})
                .find("wrong token"),
            std::string::npos);
  EXPECT_EQ(cluster_->members(1), 2);
}

TEST_F(SecurityTest, WhatIsNotProvedIsNotDecoded) {
  start_two();
  const std::string garbage(64, '\xff');
  for (const WorkerId target : {WorkerId{}, head_target()}) {
    const auto answer_to = [&](const std::string& token) {
      FileDescriptor socket = stranger();
      HandCaller caller(token, preamble(target));
      EXPECT_TRUE(say(socket, caller.first_flight()));
      const std::string answer = hear(socket, HandCaller::kAnswerBytes);
      if (!caller.take_answer(answer)) return answer;
      EXPECT_TRUE(say(socket, caller.hello(garbage)));
      return answer + hear(socket, 4096);
    };
    // Of one without the token nothing but that is said; with it, that these bytes are no Hello.
    const std::string refused = answer_to("not the token"), decoded = answer_to(token_);
    EXPECT_NE(refused.find("wrong token"), std::string::npos) << refused.substr(0, 200);
    EXPECT_EQ(refused.find("hello"), std::string::npos) << refused.substr(0, 200);
    EXPECT_EQ(decoded.find("wrong token"), std::string::npos) << decoded.substr(0, 200);
  }
  const std::string log = cluster_->logs(200);
  EXPECT_NE(log.find("malformed hello"), std::string::npos) << "the proof was not taken\n" << log;
  EXPECT_NE(log.find("wrong token"), std::string::npos) << log;
  // A Hello of any size is announced, none is waited for.
  FileDescriptor socket = stranger();
  HandCaller caller(token_, preamble());
  ASSERT_TRUE(say(socket, caller.first_flight()));
  ASSERT_TRUE(caller.take_answer(hear(socket, HandCaller::kAnswerBytes)));
  const std::string hello = caller.hello(std::string(64 << 10, '\0'));
  ASSERT_TRUE(say(socket, hello.substr(0, 24)));
  EXPECT_TRUE(is_closed(socket));
  // For its size, and not since the time for a handshake was over.
  const std::string reason =
      "malformed hello: " + std::to_string(hello.size() - sizeof(std::uint32_t)) + " bytes";
  EXPECT_NE(cluster_->logs(200).find(reason), std::string::npos)
      << "a Hello of 64 KiB is waited for\n"
      << cluster_->logs(200);
  expect_serving();
}

TEST_F(SecurityTest, RandomBytesChangeNothing) {
  start_two();
  expect_serving();
  const long before = memory();
  std::mt19937 random(7);
  for (int round = 0; round < 600; ++round) {
    FileDescriptor socket = stranger();
    ASSERT_TRUE(socket);
    std::string bytes;
    if (round % 3 == 1) bytes = opening(round % 2 == 0 ? head_target() : WorkerId::random());
    if (round % 3 == 2) bytes = "GET / HTTP/1.1\r\nHost: cluster\r\n\r\n";
    const std::size_t count = random() % 5000;
    for (std::size_t i = 0; i < count; ++i) bytes.push_back(static_cast<char>(random()));
    (void)say(socket, bytes);
    if (round % 4 == 0) (void)hear(socket, 100, 5ms);
  }
  expect_serving();
  EXPECT_EQ(cluster_->members(1), 2);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // which keep what is freed
  EXPECT_LT(memory() - before, 16 << 10) << "KiB more than before";
#endif
  const std::string log = text_of(folder_.path() / "node0.0");
  EXPECT_LT(std::count(log.begin(), log.end(), '\n'), 100) << "strangers fill the log";
}

/// Opens connections and says ever less than is waited for, until told to stop.
class Flood {
 public:
  Flood(const std::string& host, int port, std::string opening, int held_max)
      : thread_([=, this] { run(host, port, opening, held_max); }) {}
  ~Flood() {
    stopping_ = true;
    thread_.join();
  }
  int opened() const { return opened_; }

 private:
  void run(const std::string& host, int port, const std::string& opening, int held_max) {
    std::vector<FileDescriptor> held(static_cast<std::size_t>(held_max));
    for (std::size_t next = 0; !stopping_; next = (next + 1) % held.size()) {
      FileDescriptor& place = held[next];
      place = dial(host, port);
      if (place) ++opened_;
      // Some say nothing, some a part, and those of before one byte more.
      if (next % 3 != 0)
        (void)say(place, std::string_view(opening).substr(0, next % opening.size()));
      if (FileDescriptor& earlier = held[(next + held.size() / 2) % held.size()]; earlier)
        (void)::send(earlier.get(), "x", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (opened_ > held_max) support::pace(1ms);  // from then on a thousand a second
    }
  }

  std::atomic<bool> stopping_{false};
  std::atomic<int> opened_{0};
  std::thread thread_;
};

class SecurityTiming : public SecurityTest {};

TEST_F(SecurityTiming, TenThousandHalfOpenConnectionsKeepNoPeerOut) {
  rlimit files{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &files), 0);
  if (files.rlim_max < 11'000)
    GTEST_SKIP() << "this user may have " << files.rlim_max << " open files only";
  const rlimit few = files;
  start_two();
  begin_load(1, {.tallies = 1, .per_second = 100, .kinds = "ae"});
  support::hold_for(3s);  // of load without a flood
  const long before = memory();
  const std::int64_t begun = now_us();
  files.rlim_cur = 11'000;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &files), 0);
  {
    Flood flood(kAt, port_, opening(), 10'000);
    Flood at_the_head(kAt, port_, opening(head_target()), 500);
    ASSERT_TRUE(eventually([&] { return flood.opened() >= 10'000; }, 40s)) << flood.opened();
    const std::int64_t full = now_us();
    for (int i = 0; i < 5; ++i) {
      const auto asked = std::chrono::steady_clock::now();
      // From elsewhere: over TCP, through the same port as the flood.
      const Finished listed = cluster_->run(
          1, {"env", "STARLING_SESSION_ROOT=" + folder_.file("other"), starling_program(), "list",
              "nodes", "--address", cluster_->address(0)});
      EXPECT_EQ(listed.code, 0) << listed.output;
      EXPECT_LT(std::chrono::steady_clock::now() - asked, 2s);
    }
    support::hold_for(3s);  // of load under the flood
    const std::int64_t end = now_us();
    const History asked = history();
    const double calm = count_ok(asked, Op::kEcho, begun - 2'000'000, begun) / 2.0,
                 loaded = count_ok(asked, Op::kEcho, full, end) / ((end - full) / 1e6);
    std::printf(
        "calls between actors a second: %.0f before, %.0f while 10,000 connections are half open; "
        "memory of node and head: +%ld KiB\n",
        calm, loaded, memory() - before);
    EXPECT_GT(loaded, 0.6 * calm) << "the flood itself takes a part of the machine";
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // which keep what is freed
    EXPECT_LT(memory() - before, 20 << 10) << "KiB more than before";
#endif
  }
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  EXPECT_EQ(cluster_->members(1), 2);
  end_loads();
  expect_promises_kept(1);
}

TEST_F(SecurityTest, ConnectionsForAHeadThatIsStoppedAreBounded) {
  start_two();
  const pid_t head = cluster_->head();
  ::kill(head, SIGSTOP);
  std::vector<FileDescriptor> held;
  for (int i = 0; i < 3000; ++i) {
    held.push_back(stranger());
    if (!held.back() || !say(held.back(), opening(head_target()))) continue;
  }
  const FileDescriptor last = stranger();  // is taken after all of those
  ASSERT_TRUE(say(last, std::string(1000, 'x')));
  EXPECT_TRUE(is_closed(last));
  const auto descriptors = [&] {
    const std::filesystem::directory_iterator open("/proc/" + std::to_string(cluster_->node(0)) +
                                                   "/fd");
    return std::distance(begin(open), end(open));
  };
  EXPECT_LT(descriptors(), 700) << "a node that hands all of them on runs out of descriptors";
  ::kill(head, SIGCONT);
  held.clear();
  expect_serving();
  EXPECT_EQ(cluster_->members(1), 2);
  EXPECT_TRUE(eventually([&] { return descriptors() < 100; })) << descriptors();
}

}  // namespace
}  // namespace runtime::test
