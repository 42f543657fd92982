#include "rl/reward/process_scorer.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>

#include "tests/rl/python_waits.h"
#include "tests/support/eventually.h"

namespace rl {
namespace {

namespace fs = std::filesystem;
using runtime::ErrorCode;

bool alive(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string number, name, state;
  return (file >> number >> name >> state) && state != "Z";
}

class PythonScorer : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "starling_reward_XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    limits_.workers = 2;
    limits_.timeout = std::chrono::seconds(20);
    limits_.retries = 1;
    limits_.overtake = false;
  }
  void TearDown() override { fs::remove_all(folder_); }

  fs::path write(const std::string& text) {
    const fs::path file = folder_ / "reward.py";
    std::ofstream(file) << text;
    return file;
  }

  std::unique_ptr<ProcessScorer> make(const std::string& text,
                                      const nlohmann::ordered_json& kwargs = nullptr) {
    auto scorer = ProcessScorer::python(write(text), "compute_score", kwargs, limits_);
    EXPECT_TRUE(scorer.ok()) << scorer.status().to_string();
    return scorer.ok() ? std::move(*scorer) : nullptr;
  }

  static ScoreRequest request(const std::string& response, const std::string& truth = "",
                              const std::string& extra = "") {
    return {.data_source = "x",
            .response = response,
            .ground_truth = truth,
            .extra_info = extra,
            .where = "t.jsonl:1"};
  }

  static Score one(ProcessScorer& scorer, const ScoreRequest& request) {
    const auto batch = scorer.score(std::span(&request, 1));
    EXPECT_TRUE(batch.ok()) << batch.status().to_string();
    return batch.ok() ? batch->scores.at(0) : Score{};
  }

  fs::path folder_;
  ScoringLimits limits_;
};

TEST_F(PythonScorer, CallsAsVerlDoes) {
  const auto scorer = make(R"(
def compute_score(data_source, solution_str, ground_truth, extra_info, bonus=0):
    print("user code prints", solution_str)
    if solution_str == "dict":
        return {"score": 0.5, "acc": True, "pred": "text", "length": 3}
    if solution_str == "extra":
        return extra_info["index"] + len(extra_info)
    if solution_str == "truth":
        return ground_truth["target"][1]
    return float(solution_str == ground_truth and data_source == "x") + bonus
)",
                           {{"bonus", 0.25}});
  ASSERT_TRUE(scorer);
  EXPECT_EQ(one(*scorer, request("Ünicode \"q\"\n", "Ünicode \"q\"\n")).value, 1.25);
  EXPECT_EQ(one(*scorer, request("a", "b")).value, 0.25);
  const Score dict = one(*scorer, request("dict"));
  EXPECT_EQ(dict.value, 0.5);
  EXPECT_EQ(dict.extra, (std::map<std::string, double>{{"acc", 1.0}, {"length", 3.0}}));
  EXPECT_EQ(one(*scorer, request("extra", "", R"({"index": 7})")).value, 8);
  EXPECT_EQ(one(*scorer, request("truth", R"({"target": [1, 2]})")).value, 2);
  EXPECT_EQ(one(*scorer, request("\xff invalid \xc3", "")).value,
            0.25);  // half a character, as cut responses end
}

TEST_F(PythonScorer, GroundTruthsArriveAsTheDataHasThem) {
  const auto scorer = make(R"(
def compute_score(data_source, solution_str, ground_truth, extra_info):
    return float(repr(ground_truth) == solution_str)
)");
  ASSERT_TRUE(scorer);
  const auto given = [&](const std::string& repr, const std::string& truth, bool is_json) {
    ScoreRequest one_request = request(repr, truth);
    one_request.ground_truth_is_json = is_json;
    return one(*scorer, one_request).value;
  };
  EXPECT_EQ(given("['5', 6]", R"(["5",6])", true), 1.0);
  EXPECT_EQ(given("True", "true", true), 1.0);
  EXPECT_EQ(given("'[5]'", "[5]", false), 1.0);  // a text, which may be an interval
  EXPECT_EQ(given("'true'", "true", false), 1.0);
}

TEST_F(PythonScorer, KeepsOrderOverManyProcesses) {
  limits_.workers = 3;
  const auto scorer = make(
      "def compute_score(data_source, solution_str, ground_truth, extra_info):\n  return "
      "int(solution_str)\n");
  ASSERT_TRUE(scorer);
  std::vector<ScoreRequest> requests;
  for (int i = 0; i < 300; ++i) requests.push_back(request(std::to_string(i)));
  const auto batch = scorer->score(requests);
  ASSERT_TRUE(batch.ok());
  for (int i = 0; i < 300; ++i) EXPECT_EQ(batch->scores[static_cast<std::size_t>(i)].value, i);
}

// A replacement is a copy of a process that has loaded the file: what it imports costs its time
// once.
TEST_F(PythonScorer, AFileIsLoadedOnceHoweverManyProcessesDie) {
  limits_.workers = 3;
  limits_.retries = 0;
  const std::string text = "import os, random\nopen(" +
                           nlohmann::json((folder_ / "loaded").string()).dump() +
                           ", \"a\").write(\"x\")\n" + R"(
def compute_score(data_source, solution_str, ground_truth, extra_info):
    if solution_str == "crash": os.abort()
    if solution_str == "child": return float(os.spawnlp(os.P_WAIT, "true", "true"))
    return random.random()
)";
  const auto loads = [this] { return fs::file_size(folder_ / "loaded"); };
  const std::vector<ScoreRequest> requests{request("crash"), request("a"),     request("crash"),
                                           request("b"),     request("crash"), request("child")};
  {
    const auto scorer = make(text);
    ASSERT_TRUE(scorer);
    std::set<double> drawn;
    for (int round = 0; round < 4; ++round) {
      const auto batch = scorer->score(requests);
      ASSERT_TRUE(batch.ok()) << batch.status().to_string();
      for (const std::size_t crashed : {0, 2, 4}) {
        EXPECT_EQ(batch->scores[crashed].failure, ScoreFailure::kCrash);
        EXPECT_NE(batch->scores[crashed].message.find("signal 6"), std::string::npos)
            << batch->scores[crashed].message;
      }
      drawn.insert(batch->scores[1].value);
      drawn.insert(batch->scores[3].value);
      EXPECT_EQ(batch->scores[5].value, 0);
    }
    EXPECT_EQ(drawn.size(), 8u) << "copies draw the same random numbers";
    EXPECT_EQ(loads(), 1u);
  }
  // Threads are not copied, so that each process loads by itself.
  const auto scorer = make(
      "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()\n" +
      text);
  ASSERT_TRUE(scorer);
  const auto batch = scorer->score(requests);
  ASSERT_TRUE(batch.ok()) << batch.status().to_string();
  EXPECT_TRUE(batch->scores[1].ok() && batch->scores[3].ok());
  EXPECT_GE(loads(), 4u);
}

TEST_F(PythonScorer, FilesThatCannotBeUsedAreFoundAtOnce) {
  const auto status = [&](const std::string& text, const char* name = "compute_score") {
    return ProcessScorer::python(write(text), name, nullptr, limits_).status();
  };
  const auto syntax = status("def compute_score(:\n");
  EXPECT_EQ(syntax.code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(syntax.message().find("SyntaxError"), std::string::npos) << syntax.message();
  EXPECT_NE(syntax.message().find("line 1"), std::string::npos) << syntax.message();
  const auto absent = status("def score_it(): pass\n");
  EXPECT_NE(absent.message().find("no function 'compute_score'; it has score_it"),
            std::string::npos)
      << absent.message();
  EXPECT_NE(status("import nothing_of_this_name\n").message().find("ModuleNotFoundError"),
            std::string::npos);
  EXPECT_NE(status("import os\nos._exit(3)\n").message().find("ended with status 3 while loading"),
            std::string::npos);
  const auto missing = ProcessScorer::python(folder_ / "none.py", "f", nullptr, limits_).status();
  EXPECT_EQ(missing.code(), ErrorCode::kNotFound);
  EXPECT_NE(missing.message().find("none.py"), std::string::npos);
}

TEST_F(PythonScorer, AnswersThatAreNoScoresFailTheSample) {
  const auto scorer = make(R"(
def compute_score(data_source, solution_str, ground_truth, extra_info):
    return {"nan": float("nan"), "inf": float("-inf"), "text": "1", "none": None, "dict": {"reward": 1}, "list": [], "huge": 1e300}.get(solution_str, 1)
)");
  ASSERT_TRUE(scorer);
  for (const auto& [response, why] : {std::pair{"nan", "nan, which is not a finite number"},
                                      {"inf", "not a finite"},
                                      {"text", "'1' of type str"},
                                      {"none", "None of type NoneType"},
                                      {"dict", "without 'score'; it has 'reward'"},
                                      {"list", "[] of type list"},
                                      {"huge", "no finite number"}}) {
    const Score score = one(*scorer, request(response));
    EXPECT_EQ(score.failure, ScoreFailure::kInvalid) << response;
    EXPECT_NE(score.message.find(why), std::string::npos) << score.message;
  }
  EXPECT_EQ(one(*scorer, request("else")).value, 1);
}

TEST_F(PythonScorer, ExceptionsFailTheSampleAfterTheRetries) {
  const auto scorer = make(
      "def compute_score(data_source, solution_str, ground_truth, extra_info):\n  return 1 / "
      "int(solution_str)\n");
  ASSERT_TRUE(scorer);
  const std::vector<ScoreRequest> requests{request("0"), request("2")};
  const auto batch = scorer->score(requests);
  ASSERT_TRUE(batch.ok());
  EXPECT_EQ(batch->scores[0].failure, ScoreFailure::kError);
  EXPECT_NE(batch->scores[0].message.find("ZeroDivisionError"), std::string::npos);
  EXPECT_EQ(batch->scores[1].value, 0.5);
  EXPECT_EQ(batch->counts.errors, 2);
  EXPECT_EQ(batch->counts.retries, 1);
}

// Hangs and crashes at the first try only, which a file remembers.
TEST_F(PythonScorer, CallsThatHangOrCrashAreTriedAgain) {
  limits_.timeout = std::chrono::milliseconds(1500);
  const auto scorer = make(R"(
import os, signal, sys, time
def compute_score(data_source, solution_str, ground_truth, extra_info):
    mark = os.path.join(os.path.dirname(os.path.abspath(__file__)), "tried-" + solution_str)
    if solution_str.isalpha() and not os.path.exists(mark):
        open(mark, "w").close()
        if solution_str == "hang":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            while True: pass
        if solution_str == "exit": sys.exit(4)
        os.kill(os.getpid(), signal.SIGSEGV)
    return 1
)");
  ASSERT_TRUE(scorer);
  const std::vector<ScoreRequest> requests{request("hang"), request("1"),    request("crash"),
                                           request("2"),    request("exit"), request("3")};
  const auto batch = scorer->score(requests);
  ASSERT_TRUE(batch.ok()) << batch.status().to_string();
  for (const Score& score : batch->scores)
    EXPECT_TRUE(score.ok() && score.value == 1) << score.message;
  EXPECT_EQ(batch->counts.timeouts, 1);
  EXPECT_EQ(batch->counts.crashes, 2);
  EXPECT_EQ(batch->counts.retries, 3);
}

TEST_F(PythonScorer, WhatAlwaysHangsOrCrashesHasNoScore) {
  limits_.timeout = std::chrono::milliseconds(1000);
  const auto scorer = make(kPythonWaits + R"(
def compute_score(data_source, solution_str, ground_truth, extra_info):
    if solution_str == "hang": hang()
    if solution_str == "crash": os.abort()
    return 1
)");
  ASSERT_TRUE(scorer);
  const std::vector<ScoreRequest> requests{request("hang"), request("crash"), request("1")};
  const auto batch = scorer->score(requests);
  ASSERT_TRUE(batch.ok()) << batch.status().to_string();
  EXPECT_EQ(batch->scores[0].failure, ScoreFailure::kTimeout);
  EXPECT_NE(batch->scores[0].message.find("no answer within 1000 ms"), std::string::npos)
      << batch->scores[0].message;
  EXPECT_EQ(batch->scores[1].failure, ScoreFailure::kCrash);
  EXPECT_NE(batch->scores[1].message.find("signal 6"), std::string::npos)
      << batch->scores[1].message;
  EXPECT_TRUE(batch->scores[2].ok());
  EXPECT_EQ(batch->counts.timeouts, 2);
  EXPECT_EQ(batch->counts.crashes, 2);
}

// Calls a function that hangs once it has started a process in its own session and told its number
// in the file `told`. Gives whether that process still runs afterwards.
class EndsWithItsCall : public PythonScorer {
 protected:
  bool outlives_its_call(const std::string& starts_it, const std::string& imports = "") {
    limits_.timeout = std::chrono::milliseconds(1500);
    limits_.retries = 0;
    const auto scorer = make(
        kPythonWaits + "import subprocess\n" + imports + "told = '" + (folder_ / "pid").string() +
        "'\ndef compute_score(*args, **kwargs):\n" + starts_it + "    hang()\n");
    if (scorer == nullptr) return true;
    EXPECT_EQ(one(*scorer, request("a")).failure, ScoreFailure::kTimeout);
    pid_t child = 0;
    std::ifstream(folder_ / "pid") >> child;
    EXPECT_GT(child, 1);
    // A dead orphan may take a moment to be buried.
    return !support::eventually([child] { return !alive(child); });
  }
};

TEST_F(EndsWithItsCall, WhatHasASessionOfItsOwn) {
  EXPECT_FALSE(
      outlives_its_call("    child = subprocess.Popen(['sleep', '1000'], start_new_session=True)\n"
                        "    open(told, 'w').write(str(child.pid))\n"));
}

// The shell has ended, and its child has no parent left but the one that takes orphans.
TEST_F(EndsWithItsCall, WhatItDisowned) {
  EXPECT_FALSE(outlives_its_call(
      "    subprocess.run(['sh', '-c', 'setsid sleep 1000 & echo $! > ' + told])\n"));
}

// Without a session, parent or environment by which it could be found.
constexpr const char* kStartsAForgetful = R"python(
    subprocess.run(["setsid", "env", "-i", "/bin/sh", "-c", "(sleep 1000 & echo $! > " + told + ")"])
)python";

TEST_F(EndsWithItsCall, WhatForgotWhereItComesFrom) {
  EXPECT_FALSE(outlives_its_call(kStartsAForgetful));
}

TEST_F(EndsWithItsCall, WhatForgotInAProcessThatIsNoCopy) {
  EXPECT_FALSE(outlives_its_call(
      kStartsAForgetful,
      "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()\n"));
}

// Each starts the next in another session and ends.
TEST_F(EndsWithItsCall, WhatIsOrphanedManyTimes) {
  EXPECT_FALSE(outlives_its_call(R"python(
    open(told + ".sh", "w").write('''#!/bin/sh
        if [ $1 -gt 0 ]; then setsid env -i /bin/sh $0 $(($1 - 1)) & exit; fi
        sleep 1000 &
        echo $! > ''' + told + "\n")
    subprocess.run(["env", "-i", "/bin/sh", told + ".sh", "8"])
    wait_until(lambda: os.path.exists(told) and open(told).read().strip())
)python"));
}

// What the owner itself has started is none of a scorer's, and its end is the owner's to see.
TEST_F(PythonScorer, OtherChildrenOfTheOwnerAreLeftAlone) {
  const pid_t other = ::fork();
  if (other == 0) {
    ::pause();
    ::_exit(0);
  }
  const pid_t ended = ::fork();
  if (ended == 0) ::_exit(7);
  limits_.timeout = std::chrono::milliseconds(500);
  limits_.retries = 0;
  {
    const auto scorer = make(kPythonWaits + R"python(
import subprocess
def compute_score(*args, **kwargs):
    subprocess.run(["setsid", "env", "-i", "/bin/sh", "-c", "(sleep 1000 &)"])
    hang()
)python");
    ASSERT_TRUE(scorer);
    EXPECT_EQ(one(*scorer, request("a")).failure, ScoreFailure::kTimeout);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(other, &status, WNOHANG), 0) << "it runs";
  EXPECT_EQ(::waitpid(ended, &status, 0), ended);
  EXPECT_EQ(WEXITSTATUS(status), 7);
  ::kill(other, SIGKILL);
  EXPECT_EQ(::waitpid(other, &status, 0), other);
  EXPECT_EQ(::waitpid(-1, &status, WNOHANG), -1) << "no orphan has become the owner's child";
}

// An orphan is not made the scorer's: it would have to be buried by code that knows nothing of
// it.
TEST_F(PythonScorer, WhatItDisownedIsNotItsChild) {
  const auto scorer = make(R"python(
import os, subprocess
def compute_score(*args, **kwargs):
    pid = int(subprocess.run(["sh", "-c", "sleep 1000 > /dev/null 2>&1 & echo $!"], capture_output=True, text=True).stdout)
    return int(open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[1]) != os.getpid()
)python");
  ASSERT_TRUE(scorer);
  EXPECT_EQ(one(*scorer, request("a")).value, 1);
}

// The time limit is far away: only the second try next to the first can answer.
TEST_F(PythonScorer, ASecondTryOvertakesACallThatHangs) {
  limits_.timeout = std::chrono::seconds(200);
  limits_.overtake = true;
  const auto scorer = make(kPythonWaits + R"(
def compute_score(data_source, solution_str, ground_truth, extra_info):
    mark = os.path.join(os.path.dirname(os.path.abspath(__file__)), "tried")
    if solution_str == "hang" and not os.path.exists(mark):
        open(mark, "w").close()
        hang()
    return 1
)");
  ASSERT_TRUE(scorer);
  std::vector<ScoreRequest> requests(50, request("1"));
  requests[10] = request("hang");
  const auto batch = scorer->score(requests);
  ASSERT_TRUE(batch.ok()) << batch.status().to_string();
  EXPECT_TRUE(batch->scores[10].ok());
  EXPECT_EQ(batch->counts.overtaken, 1);
  EXPECT_EQ(batch->counts.timeouts, 0);
}

TEST_F(PythonScorer, MemoryIsLimited) {
  limits_.memory_bytes = 512 << 20;
  const auto scorer = make(
      "def compute_score(data_source, solution_str, ground_truth, extra_info):\n  return "
      "len(bytearray(int(solution_str) << 20))\n");
  ASSERT_TRUE(scorer);
  const Score large = one(*scorer, request("4096"));
  EXPECT_EQ(large.failure, ScoreFailure::kError);
  EXPECT_NE(large.message.find("MemoryError"), std::string::npos) << large.message;
  EXPECT_EQ(one(*scorer, request("1")).value, 1 << 20);
}

TEST_F(PythonScorer, WhatUserCodePrintsIsNoAnswer) {
  const auto scorer = make(R"(
import os, sys
def compute_score(data_source, solution_str, ground_truth, extra_info):
    print('{"score": 99}')
    print('{"score": 98}', file=sys.stderr)
    os.write(1, b'{"score": 97}\n' * 200)
    return 1
)");
  ASSERT_TRUE(scorer);
  EXPECT_EQ(one(*scorer, request("a")).value, 1);
}

// A separate process makes the scorer and is killed while the call runs: what it started must end
// without it. The copy that a fork makes would go on reading requests and answer for its parent.
TEST_F(PythonScorer, AForkThatComesBackAnswersNothing) {
  const auto scorer = make(R"(
import os
def compute_score(data_source, solution_str, ground_truth, extra_info):
    child = os.fork()
    if child == 0 and solution_str == "3":
        raise RuntimeError("in the child")
    return float(solution_str)
)");
  ASSERT_TRUE(scorer);
  std::vector<ScoreRequest> requests;
  for (int i = 0; i < 64; ++i) requests.push_back(request(std::to_string(i)));
  const auto batch = scorer->score(requests);
  ASSERT_TRUE(batch.ok()) << batch.status().to_string();
  for (std::size_t i = 0; i < requests.size(); ++i)
    EXPECT_EQ(batch->scores[i].value, static_cast<double>(i));
}

TEST_F(PythonScorer, ALowerLimitOfTheSystemHolds) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizer's shadow takes more address space than any limit";
#endif
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_AS, &before), 0);
  limits_.memory_bytes = std::int64_t{1} << 40;
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit low{std::uint64_t{4} << 30, std::uint64_t{4} << 30};
    const bool set = ::setrlimit(RLIMIT_AS, &low) == 0;
    const auto scorer = set ? make(
                                  "def compute_score(data_source, solution_str, ground_truth, "
                                  "extra_info):\n    return 2.0\n")
                            : nullptr;
    ::_exit(scorer && one(*scorer, request("a")).value == 2.0 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(PythonScorer, ProcessesEndWithTheirOwner) {
  const fs::path mark = folder_ / "pid";
  const fs::path file = write(R"python(
import os, subprocess
def compute_score(data_source, solution_str, ground_truth, extra_info):
    child = subprocess.Popen(["sleep", "1000"])
    orphan = solution_str + ".orphan"
    subprocess.run(["setsid", "env", "-i", "/bin/sh", "-c", f"(sleep 1000 & echo $! > {orphan})"])
    with open(solution_str + ".new", "w") as file: file.write(f"{os.getpid()} {child.pid} {int(open(orphan).read())}")
    os.rename(solution_str + ".new", solution_str)
    while True: pass
)python");
  const pid_t owner = ::fork();
  if (owner == 0) {
    limits_.timeout = std::chrono::seconds(1000);
    auto scorer = ProcessScorer::python(file, "compute_score", nullptr, limits_);
    const ScoreRequest asked = request(mark.string());
    if (scorer.ok()) (void)(*scorer)->score(std::span(&asked, 1));
    ::_exit(1);
  }
  EXPECT_TRUE(support::eventually([&] { return fs::exists(mark); }, std::chrono::seconds(60)));
  pid_t scorer = 0, grandchild = 0, orphan = 0;
  std::ifstream(mark) >> scorer >> grandchild >> orphan;
  ASSERT_GT(scorer, 0);
  EXPECT_TRUE(alive(scorer) && alive(grandchild) && alive(orphan));
  ::kill(owner, SIGKILL);
  ::waitpid(owner, nullptr, 0);
  support::eventually([&] { return !alive(scorer) && !alive(grandchild) && !alive(orphan); });
  EXPECT_FALSE(alive(scorer));
  EXPECT_FALSE(alive(grandchild));
  EXPECT_FALSE(alive(orphan)) << "in its own session, with no environment";
}

// A program that the function runs has none of its descriptors but the standard ones.
TEST_F(PythonScorer, ProgramsThatItStartsCannotAnswerForIt) {
  const auto scorer = make(R"python(
import os, subprocess, sys
CODE = """
import os
for descriptor in range(3, 1024):
    try: os.write(descriptor, b'{"score": 1e9}\\n')
    except OSError: continue
names = [int(name) for name in os.listdir("/proc/self/fd")]
print([name for name in names if name > 2 and os.path.exists(f"/proc/self/fd/{name}")])
"""
def compute_score(data_source, solution_str, ground_truth, extra_info):
    inherited = subprocess.run([sys.executable, "-c", CODE], close_fds=False, capture_output=True, text=True).stdout
    os.system("for i in 3 4 5 6 7 8 9; do eval \"echo '{}' >&$i\"; done 2>/dev/null")
    return 1.0 if inherited.strip() == "[]" else -1.0
)python");
  ASSERT_TRUE(scorer);
  const std::vector<ScoreRequest> requests(6, request("a"));
  const auto batch = scorer->score(requests);
  ASSERT_TRUE(batch.ok()) << batch.status().to_string();
  for (const Score& score : batch->scores)
    EXPECT_TRUE(score.ok() && score.value == 1) << score.value << score.message;
  EXPECT_EQ(batch->counts.crashes, 0);
}

// Code in the same interpreter finds the descriptor, but has no id: its line ends the process.
TEST_F(PythonScorer, ALineThatIsNoAnswerIsAFailureThatIsNamed) {
  limits_.workers = 1;
  const auto scorer = make(R"python(
import os
FORGE = """
for descriptor in range(3, 1024):
    try: os.write(descriptor, b'{"score": 1e9}\\n' * 3)
    except OSError: continue
"""
def compute_score(data_source, solution_str, ground_truth, extra_info):
    if solution_str == "forge": exec(FORGE)
    return 1.0
)python");
  ASSERT_TRUE(scorer);
  const std::vector<ScoreRequest> requests{request("a"), request("forge"), request("b"),
                                           request("c")};
  const auto batch = scorer->score(requests);
  ASSERT_TRUE(batch.ok()) << batch.status().to_string();
  for (const std::size_t i : {0, 2, 3})
    EXPECT_TRUE(batch->scores[i].ok() && batch->scores[i].value == 1)
        << batch->scores[i].value << batch->scores[i].message;
  EXPECT_EQ(batch->scores[1].failure, ScoreFailure::kCrash);
  EXPECT_NE(batch->scores[1].message.find("id of no call"), std::string::npos)
      << batch->scores[1].message;
}

// A function that writes down what it is called with, and which process hangs.
const std::string kWritesDown = kPythonWaits + R"(
def compute_score(data_source, solution_str, ground_truth, extra_info, log):
    if solution_str == "hang":
        with open(log + ".hangs", "w") as file: file.write(str(os.getpid()))
    with open(log, "a") as file: file.write(solution_str + "\n")
    if solution_str == "crash": os.abort()
    if solution_str == "hang": hang()
    return len(solution_str)
)";

class PreparedScores : public PythonScorer {
 protected:
  std::unique_ptr<ProcessScorer> make_writing() {
    return make(kWritesDown, {{"log", (folder_ / "log").string()}});
  }
  std::vector<std::string> calls() const {
    std::vector<std::string> lines;
    std::ifstream in(folder_ / "log");
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    std::sort(lines.begin(), lines.end());
    return lines;
  }
  void wait_for_calls(std::size_t count) const {
    EXPECT_TRUE(support::eventually([&] { return calls().size() >= count; }))
        << calls().size() << " calls";
  }
  static std::vector<ScoreRequest> requests(const std::vector<std::string>& responses) {
    std::vector<ScoreRequest> all;
    for (const std::string& response : responses) all.push_back(request(response));
    return all;
  }
};

TEST_F(PreparedScores, AreThereWhenTheyAreAskedFor) {
  const auto scorer = make_writing();
  ASSERT_TRUE(scorer && scorer->prepares());
  scorer->prepare(requests({"a", "bb"}));
  scorer->prepare(requests({"bb", "crash"}));
  wait_for_calls(5);  // a crash is tried again
  const auto all = requests({"bb", "ccc", "crash", "a", "bb"});
  const auto batch = scorer->score(all);
  ASSERT_TRUE(batch.ok()) << batch.status().to_string();
  for (const std::size_t i : {0U, 1U, 3U, 4U})
    EXPECT_EQ(batch->scores[i].value, static_cast<double>(all[i].response.size()));
  EXPECT_EQ(batch->scores[2].failure, ScoreFailure::kCrash);
  EXPECT_EQ(batch->counts.crashes, 2);
  EXPECT_EQ(batch->counts.retries, 1);
  EXPECT_EQ(calls(), (std::vector<std::string>{"a", "bb", "bb", "ccc", "crash", "crash"}))
      << "nothing twice";
  const auto again = scorer->score(requests({"a"}));
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->scores[0].value, 1);
  EXPECT_EQ(again->counts.crashes, 0);
  EXPECT_EQ(calls().size(), 7U) << "what was prepared is used once";
}

TEST_F(PreparedScores, TimeLimitsPassBefore) {
  limits_.timeout = std::chrono::milliseconds(1000);
  limits_.retries = 0;
  const auto scorer = make_writing();
  ASSERT_TRUE(scorer);
  scorer->prepare(requests({"hang", "a"}));
  wait_for_calls(2);
  pid_t hangs = 0;
  std::ifstream(folder_ / "log.hangs") >> hangs;
  ASSERT_GT(hangs, 1);
  EXPECT_TRUE(support::eventually([&] { return !alive(hangs); }))
      << "its time limit has not passed before it is asked for";
  const auto batch = scorer->score(requests({"a", "hang"}));
  ASSERT_TRUE(batch.ok());
  EXPECT_EQ(batch->scores[1].failure, ScoreFailure::kTimeout);
  EXPECT_EQ(batch->counts.timeouts, 1);
  EXPECT_EQ(calls(), (std::vector<std::string>{"a", "hang"})) << "nothing twice";
}

TEST_F(PreparedScores, ThatNoCallAsksForAreForgotten) {
  const auto scorer = make_writing();
  ASSERT_TRUE(scorer);
  scorer->prepare(requests({"a", "bb", "ccc", "dddd"}));
  auto batch = scorer->score(requests({"bb"}));
  ASSERT_TRUE(batch.ok());
  ASSERT_EQ(batch->scores.size(), 1U);
  EXPECT_EQ(batch->scores[0].value, 2);
  scorer->prepare(requests({"e"}));
  batch = scorer->score(requests({"a", "e"}));
  ASSERT_TRUE(batch.ok());
  EXPECT_EQ(batch->scores[0].value, 1);
  EXPECT_EQ(batch->scores[1].value, 1);
  scorer->prepare(requests({"hang"}));
  wait_for_calls(6);  // it ends with the scorer
}

// The first try of "slow" answers while the first call of the next batch is on its way. That call
// ends once the answer is sent, or the process of the try has ended.
TEST_F(PreparedScores, ATryThatWasOvertakenDoesNotAnswerForALaterCall) {
  limits_.overtake = true;
  const auto scorer = make(kPythonWaits + R"python(
folder = os.path.dirname(os.path.abspath(__file__))
tried, called, answers = (os.path.join(folder, name) for name in ("tried", "called", "answers"))

def has_answered(pid):
    try: state = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[0]
    except OSError: return True
    return state == "Z" or state == "S" and os.path.exists(answers)

def compute_score(data_source, solution_str, ground_truth, extra_info):
    if solution_str == "slow" and not os.path.exists(tried):
        with open(tried + ".new", "w") as file: file.write(str(os.getpid()))
        os.rename(tried + ".new", tried)
        wait_for_file(called)
        open(answers, "w").close()
        return 99
    if solution_str == "long":
        open(called, "w").close()
        wait_until(lambda: has_answered(open(tried).read()))
    return len(solution_str)
)python");
  ASSERT_TRUE(scorer);
  const auto score = [&](const std::vector<std::string>& responses) {
    scorer->prepare(requests(responses));
    const auto batch = scorer->score(requests(responses));
    EXPECT_TRUE(batch.ok()) << batch.status().to_string();
    std::vector<double> values;
    for (const Score& one : batch->scores) values.push_back(one.value);
    return values;
  };
  score(std::vector<std::string>(50, "a"));  // how long calls take usually
  EXPECT_EQ(score({"slow"}), std::vector<double>{4});
  EXPECT_EQ(score({"long"}), std::vector<double>{4});
}

}  // namespace
}  // namespace rl
