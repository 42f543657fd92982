// The command line of `starling start`.
#include <fstream>

#include "tests/placement/app/clean_environment.h"
#include "tests/placement/app/command_line.h"

namespace placement {
namespace {

class StartCommandTest : public ::testing::Test {
 protected:
  using Words = std::vector<std::string>;

  /// As if that was said, and behind it what no node starts with.
  static Said start(Words words) {
    words.insert(words.begin(), "start");
    words.insert(words.end(), {"--alias", "no alias"});
    return said_to(add_start, words);
  }
  std::string write(const std::string& name, const std::string& text) const {
    const std::string file = environment_.folder().file(name);
    std::ofstream(file) << text;
    return file;
  }

  const CleanEnvironment environment_;
  const support::ScopedVariable token_{"STARLING_TOKEN", "secret"};
};

TEST_F(StartCommandTest, EachOptionIsItsOwn) {
  const Words head{"--head", "--num-gpus", "0"}, member{"--address", "127.0.0.1:1", "--gpus", "0"};
  const std::vector<std::pair<Words, Words>> of_head = {
      {{}, {"--alias no alias"}},
      {{"--address", "127.0.0.1:1"}, {"say either --head"}},
      {{"--bind", "0.0.0.0"}, {"--bind 0.0.0.0", "easy to guess"}},
      {{"--advertise", "10.0.0.1:80"}, {"--advertise 10.0.0.1:80"}},
      {{"--num-cpus", "1e300"}, {"CPU"}},
      {{"--resources", "[1]"}, {"--resources"}},
      {{"--label", "a=1", "--label", "a=2"}, {"--label a is given twice"}},
      {{"--object-store-memory", "1KiB"}, {"--object-store-memory 1024:"}},
      {{"--spill-dir", "/x", "--spill-limit", "0"}, {"--spill-limit 0"}},
      {{"--memory-threshold", "2"}, {"--memory-threshold"}},
      {{"--log-limit", "1KiB"}, {"--log-limit 1024:"}},
      {{"--job-user", "no such user"}, {"--job-user", "no such user"}},
      {{"--drain-deadline", "soon"}, {"--drain-deadline", "soon"}},
      {{"--preemption-file", "/x"}, {"--preemption-file"}},
      {{"--metrics", "all"}, {"--metrics all"}},
      {{"--tls-cert", "/x"}, {"--tls-cert and --tls-key"}},
      {{"--tls-key", "/x"}, {"--tls-cert and --tls-key"}}};
  const std::vector<std::pair<Words, Words>> of_member = {
      {{"--journal", "/x"}, {"--journal goes with --head"}},
      {{"--preemption-command", "x", "--preemption-poll", "1ms"}, {"--preemption-poll 1ms"}},
      {{"--preemption-url", "http://x"}, {"--preemption-url", "http://x"}}};
  for (const auto* cases : {&of_head, &of_member}) {
    for (const auto& [words, named] : *cases) {
      Words all = cases == &of_head ? head : member;
      all.insert(all.end(), words.begin(), words.end());
      expect_refused(start(all), 1, named);
    }
  }
  expect_refused(start({"--head", "--gpus", "0.5"}), 1, {"whole GPUs, not 0.5"});
}

TEST_F(StartCommandTest, ValuesThatNoOptionTakesAreMistakesInTheLine) {
  for (const char* option : {"--journal", "--autoscaler", "--preemption-file",
                             "--preemption-command", "--preemption-url", "--tls-cert", "--tls-key"})
    expect_refused(start({"--head", option, ""}), 2, {option, "it is empty"});
  for (const Words& words : std::vector<Words>{{"--port", "70000"},
                                               {"--port", "-1"},
                                               {"--user-jobs", "0"},
                                               {"--user-connections", "0"},
                                               {"--num-cpus", "all"}})
    expect_refused(start({"--head", words[0], words[1]}), 2, {words[0]});
  for (const char* option :
       {"--object-store-memory", "--spill-limit", "--log-limit", "--job-size-limit"})
    expect_refused(start({"--head", option, "-5"}), 2, {option, "-5 is below 0"});
}

TEST_F(StartCommandTest, TheAutoscalersFileIsReadBeforeTheNodeStarts) {
  expect_refused(start({"--head", "--autoscaler", "/none.yaml"}), 1, {"/none.yaml"});
  const std::string types = "node_types: {w: {resources: {CPU: 1}, max_nodes: 1}}\n";
  const std::string unrunnable =
      write("bad.yaml", "max_nodes: 4\nprovider: {type: command, command: [./none.sh]}\n" + types);
  expect_refused(start({"--head", "--autoscaler", unrunnable}), 1,
                 {"bad.yaml: provider.command: '", "none.sh"});
  const std::string good = write("good.yaml", "max_nodes: 4\n" + types);
  expect_refused(start({"--head", "--num-gpus", "0", "--autoscaler", good}), 1,
                 {"--alias no alias"});
}

}  // namespace
}  // namespace placement
