#include "rl/hub/hub.h"

#include <gtest/gtest.h>
#include <sodium.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

#include "rl/hub/http.h"
#include "rl/hub/hub_client.h"
#include "tests/support/file_size_limit.h"

namespace rl {
namespace {

namespace fs = std::filesystem;
using runtime::ErrorCode;
using runtime::Result;
using runtime::Status;

constexpr const char* kCommit = "0123456789abcdef0123456789abcdef01234567";  // of small_hub.py

std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

void write(const fs::path& path, const std::string& bytes) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << bytes;
}

std::string sha256(const std::string& bytes) {
  unsigned char digest[crypto_hash_sha256_BYTES];
  crypto_hash_sha256(digest, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  char text[sizeof digest * 2 + 1];
  return sodium_bin2hex(text, sizeof text, digest, sizeof digest);
}

// The small hub as a separate process, which ends when its stdin does.
class Hub : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "starling_hub_XXXXXX").string();
    root_ = ::mkdtemp(pattern.data());
    const fs::path model = root_ / "models" / "org" / "name";
    weights_.resize(3 << 20);
    for (std::size_t i = 0; i < weights_.size(); ++i)
      weights_[i] = static_cast<char>(i * 7 + i / 251);
    for (const char* file : {"config.json", "tokenizer.json", "README.md", "model.onnx"})
      write(model / file, std::string("{} ") + file);
    write(model / "additional_chat_templates" / "tool_use.jinja", "T");
    write(model / "model.safetensors", weights_);
    write(model / "pytorch_model.bin", "not wanted");
    const fs::path sharded = root_ / "models" / "org" / "sharded";
    for (const char* file :
         {"config.json", "model-1.safetensors", "model-2.safetensors", "other.safetensors"})
      write(sharded / file, file);
    write(sharded / "model.safetensors.index.json",
          R"({"weight_map":{"a":"model-1.safetensors","b":"model-2.safetensors"}})");
    write(root_ / "models" / "org" / "gguf" / "m.Q4_K.gguf", "gguf");
    for (const char* file : {"a.gguf", "b.gguf"})
      write(root_ / "models" / "org" / "ggufs" / file, "gguf");
    write(root_ / "models" / "org" / "none" / "README.md", "nothing");
    start();
    options_.cache = root_ / "cache";
    options_.pause = std::chrono::milliseconds(1);
  }

  void TearDown() override {
    ::close(to_hub_);
    ::waitpid(hub_, nullptr, 0);
    fs::remove_all(root_);
  }

  void start() {
    int in[2], out[2];
    ASSERT_EQ(::pipe(in), 0);
    ASSERT_EQ(::pipe(out), 0);
    hub_ = ::fork();
    if (hub_ == 0) {
      ::dup2(in[0], 0);
      ::dup2(out[1], 1);
      for (int fd = 3; fd < 64; ++fd) ::close(fd);
      ::execlp("python3", "python3", STARLING_SOURCE_DIR "/tests/rl/hub/small_hub.py",
               (root_ / "models").c_str(), nullptr);
      ::_exit(127);
    }
    ::close(in[0]);
    ::close(out[1]);
    to_hub_ = in[1];
    FILE* answer = ::fdopen(out[0], "r");
    ASSERT_EQ(std::fscanf(answer, "%d", &port_), 1) << "python3 small_hub.py did not start";
    std::fclose(answer);
  }

  HubOptions with(const std::string& behaviour) const {
    HubOptions options = options_;
    options.endpoint = "http://127.0.0.1:" + std::to_string(port_) + "/" + behaviour;
    return options;
  }

  Result<fs::path> fetch(const std::string& name, const HubOptions& options,
                         HubNeed need = HubNeed::kModel) const {
    return fetch_model(*HubName::parse(name), need, options);
  }

  // Lines of the hub's log that begin so.
  std::vector<std::string> asked(const std::string& begin) const {
    HttpClient client;
    auto answer = client.perform({.url = "http://127.0.0.1:" + std::to_string(port_) + "/log"});
    std::vector<std::string> lines;
    for (const auto& line : nlohmann::json::parse(answer->body)) {
      if (line.get<std::string>().starts_with(begin)) lines.push_back(line);
    }
    return lines;
  }

  fs::path folder() const { return options_.cache / "models--org--name"; }

  // Everything is there, each once, and nothing is left over.
  void expect_whole() const {
    const fs::path snapshot = folder() / "snapshots" / kCommit;
    EXPECT_EQ(read(snapshot / "model.safetensors"), weights_);
    EXPECT_EQ(fs::read_symlink(snapshot / "model.safetensors"), "../../blobs/" + sha256(weights_));
    for (const auto& entry : fs::directory_iterator(folder() / "blobs"))
      EXPECT_NE(entry.path().extension(), ".incomplete") << entry.path();
  }

  fs::path root_;
  std::string weights_;
  HubOptions options_;
  pid_t hub_ = -1;
  int to_hub_ = -1;
  int port_ = 0;
};

TEST_F(Hub, FetchesWhatIsNeededInTheirLayout) {
  std::uint64_t done = 0, total = 0;
  HubOptions options = with("ok");
  options.progress = [&](const HubProgress& progress) {
    done = progress.bytes_done;
    total = progress.bytes_total;
  };
  const auto path = fetch("org/name", options);
  ASSERT_TRUE(path.ok()) << path.status().to_string();
  EXPECT_EQ(*path, folder() / "snapshots" / kCommit);
  expect_whole();
  EXPECT_EQ(read(*path / "config.json"), "{} config.json");
  EXPECT_EQ(read(*path / "additional_chat_templates" / "tool_use.jinja"), "T");
  EXPECT_EQ(read(folder() / "refs" / "main"), kCommit);
  EXPECT_TRUE(fs::exists(options_.cache / "CACHEDIR.TAG"));
  for (const char* file : {"README.md", "model.onnx", "pytorch_model.bin"})
    EXPECT_FALSE(fs::exists(*path / file)) << file;
  EXPECT_GT(done, weights_.size());
  EXPECT_EQ(done, total);

  const std::size_t requests = asked("").size();
  ASSERT_TRUE(fetch("org/name", options).ok());
  EXPECT_EQ(asked("").size(), requests + 1);  // only whether main has moved
  ASSERT_TRUE(fetch(std::string("org/name@") + kCommit, options).ok());
  EXPECT_EQ(asked("").size(), requests + 1);  // a commit never does
}

TEST_F(Hub, TokenizerAloneLeavesWeightsAlone) {
  const auto path = fetch("org/name", with("ok"), HubNeed::kTokenizer);
  ASSERT_TRUE(path.ok()) << path.status().to_string();
  EXPECT_TRUE(fs::exists(*path / "tokenizer.json"));
  EXPECT_TRUE(asked("GET /ok/cdn").empty());
  EXPECT_EQ(fetch("org/sharded", with("ok"), HubNeed::kTokenizer).status().code(),
            ErrorCode::kNotFound);
}

TEST_F(Hub, ShardsAreThoseOfTheIndex) {
  const auto path = fetch("org/sharded", with("ok"));
  ASSERT_TRUE(path.ok()) << path.status().to_string();
  EXPECT_EQ(read(*path / "model-2.safetensors"), "model-2.safetensors");
  EXPECT_FALSE(fs::exists(*path / "other.safetensors"));
  // A cache that lacks one of them is not whole.
  fs::remove(*path / "model-1.safetensors");
  HubOptions offline = with("ok");
  offline.offline = true;
  const Status status = fetch("org/sharded", offline).status();
  EXPECT_EQ(status.code(), ErrorCode::kNotFound);
  EXPECT_NE(status.message().find("model-1.safetensors"), std::string::npos) << status.message();
}

TEST_F(Hub, RevisionsHaveTheirRefs) {
  ASSERT_TRUE(fetch("org/name@v1", with("ok")).ok());
  ASSERT_TRUE(fetch("org/name@refs/pr/3", with("ok")).ok());
  EXPECT_EQ(read(folder() / "refs" / "v1"), kCommit);
  EXPECT_EQ(read(folder() / "refs" / "refs/pr/3"), kCommit);
  const Status status = fetch("org/name@v2", with("ok")).status();
  EXPECT_EQ(status.code(), ErrorCode::kNotFound);
  EXPECT_NE(status.message().find("no revision v2"), std::string::npos) << status.message();
}

TEST_F(Hub, OneGgufFileIsTheModelAndSeveralAreListed) {
  const auto path = fetch("org/gguf", with("ok"));
  ASSERT_TRUE(path.ok()) << path.status().to_string();
  EXPECT_EQ(read(*path), "gguf");
  EXPECT_EQ(path->filename(), "m.Q4_K.gguf");
  const Status several = fetch("org/ggufs", with("ok")).status();
  EXPECT_NE(several.message().find("a.gguf, b.gguf"), std::string::npos) << several.message();
  EXPECT_NE(fetch("org/none", with("ok")).status().message().find("no weights"), std::string::npos);
}

TEST_F(Hub, HubsThatListPageByPageWork) {
  ASSERT_TRUE(fetch("org/name", with("tree")).ok());
  expect_whole();
  EXPECT_GT(asked("GET /tree/api/models/org/name/tree").size(), 3U);
}

TEST_F(Hub, RenamedModelsAreFollowed) {
  const auto path = fetch("org/old", with("moved"));
  ASSERT_TRUE(path.ok()) << path.status().to_string();
  EXPECT_EQ(read(*path / "model.safetensors"), weights_);
}

TEST_F(Hub, CutConnectionsGoOnWhereTheyStopped) {
  ASSERT_TRUE(fetch("org/name", with("cut")).ok());
  expect_whole();
  const auto requests = asked("GET /cut/cdn/org/name/model.safetensors");
  ASSERT_EQ(requests.size(), 3U);
  const std::size_t half = weights_.size() / 2;
  EXPECT_NE(requests[1].find("range=bytes=" + std::to_string(half) + "-"), std::string::npos)
      << requests[1];
  EXPECT_NE(
      requests[2].find("range=bytes=" + std::to_string(half + (weights_.size() - half) / 2) + "-"),
      std::string::npos)
      << requests[2];
}

TEST_F(Hub, ServersWithoutRangesSendItAllAgain) {
  ASSERT_TRUE(fetch("org/name", with("no_range")).ok());
  expect_whole();
}

TEST_F(Hub, WhatAnEarlierAttemptLeftIsGoneOnFrom) {
  const std::size_t have = 1 << 20;
  const fs::path partial = folder() / "blobs" / (sha256(weights_) + ".incomplete");
  write(partial, weights_.substr(0, have));
  ASSERT_TRUE(fetch("org/name", with("ok")).ok());
  expect_whole();
  EXPECT_NE(asked("GET /ok/cdn/org/name/model.safetensors").at(0).find("range=bytes=1048576-"),
            std::string::npos);
}

TEST_F(Hub, APartialFileWithOtherBytesCostsOneMoreAttempt) {
  for (const std::string& bytes : {std::string(1 << 20, 'x'), std::string(weights_.size(), 'x'),
                                   std::string(weights_.size() + 5, 'x')}) {
    fs::remove_all(options_.cache);
    write(folder() / "blobs" / (sha256(weights_) + ".incomplete"), bytes);
    ASSERT_TRUE(fetch("org/name", with("ok")).ok());
    expect_whole();
  }
}

TEST_F(Hub, WrongBytesNeverReachTheCache) {
  ASSERT_TRUE(fetch("org/name", with("wrong_once")).ok());
  expect_whole();
  fs::remove_all(options_.cache);
  for (const char* behaviour : {"wrong", "longer"}) {
    const Status status = fetch("org/name", with(behaviour)).status();
    EXPECT_FALSE(status.ok()) << behaviour;
    EXPECT_NE(
        status.message().find(std::string(behaviour) == "wrong" ? "SHA-256" : "more than the"),
        std::string::npos)
        << status.message();
    EXPECT_FALSE(fs::exists(folder() / "blobs" / sha256(weights_)));
    EXPECT_FALSE(fs::exists(folder() / "refs" / "main"));  // it is not taken for whole
  }
}

TEST_F(Hub, BusyHubsAreAskedAgain) {
  for (const char* behaviour : {"busy", "broken"}) {
    fs::remove_all(options_.cache);
    ASSERT_TRUE(fetch("org/name", with(behaviour)).ok()) << behaviour;
    expect_whole();
  }
  const Status later = fetch("org/gguf", with("later")).status();
  EXPECT_EQ(later.code(), ErrorCode::kUnavailable);
  EXPECT_NE(later.message().find("9999 s"), std::string::npos) << later.message();
}

TEST_F(Hub, TheTokenGoesToTheHubAlone) {
  const Status refused = fetch("org/name", with("token")).status();
  EXPECT_EQ(refused.code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(refused.message().find("HF_TOKEN"), std::string::npos) << refused.message();
  HubOptions options = with("token");
  options.token = "secret";
  ASSERT_TRUE(fetch("org/name", options).ok());  // the CDN refuses requests that carry it
  expect_whole();
}

TEST_F(Hub, RefusalsNameTheCure) {
  const Status gated = fetch("org/name", with("gated")).status();
  EXPECT_NE(gated.message().find("accept its terms at http://127.0.0.1"), std::string::npos)
      << gated.message();
  EXPECT_NE(gated.message().find("HF_TOKEN"), std::string::npos) << gated.message();
  const Status unknown = fetch("org/unknown", with("ok")).status();
  EXPECT_EQ(unknown.code(), ErrorCode::kNotFound);
  EXPECT_NE(unknown.message().find("org/unknown"), std::string::npos) << unknown.message();
  const Status down = fetch("org/name", with("down")).status();
  EXPECT_EQ(down.code(), ErrorCode::kUnavailable);
  EXPECT_NE(down.message().find("HTTP 503"), std::string::npos) << down.message();
  HubOptions unreachable = options_;
  unreachable.endpoint = "http://127.0.0.1:1";
  unreachable.attempts_max = 2;
  const Status away = fetch("org/name", unreachable).status();
  EXPECT_EQ(away.code(), ErrorCode::kUnavailable);
  EXPECT_NE(away.message().find("Check the network"), std::string::npos) << away.message();
}

TEST_F(Hub, WithoutAHubTheCacheServes) {
  ASSERT_TRUE(fetch("org/name", with("ok")).ok());
  const std::size_t requests = asked("").size();
  const auto path = fetch("org/name", with("down"));
  ASSERT_TRUE(path.ok()) << path.status().to_string();
  EXPECT_EQ(asked("").size(), requests + 1);  // and no patience with a hub that is away
  HubOptions offline = with("ok");
  offline.offline = true;
  EXPECT_TRUE(fetch("org/name", offline).ok());
  EXPECT_EQ(asked("").size(), requests + 1);
  const Status missing = fetch("org/name@v1", offline).status();
  EXPECT_EQ(missing.code(), ErrorCode::kNotFound);
  EXPECT_NE(missing.message().find("HF_HUB_OFFLINE"), std::string::npos) << missing.message();
}

TEST_F(Hub, AFullDiskIsSaidAndWhatIsThereStays) {
  const Status status = [&] {
    const support::FileSizeLimit limit(1 << 20);
    return fetch("org/name", with("ok")).status();
  }();
  EXPECT_EQ(status.code(), ErrorCode::kResourceExhausted) << status.to_string();
  EXPECT_NE(status.message().find("HF_HOME"), std::string::npos) << status.message();
  EXPECT_EQ(fs::file_size(folder() / "blobs" / (sha256(weights_) + ".incomplete")),
            std::uintmax_t{1} << 20);
  ASSERT_TRUE(fetch("org/name", with("ok")).ok());
  expect_whole();
}

TEST_F(Hub, PathsWinOverNames) {
  const fs::path here = root_ / "org" / "name";
  fs::create_directories(here);
  const fs::path before = fs::current_path();
  fs::current_path(root_);
  const auto path = locate_model("org/name", "", HubNeed::kModel, with("ok"));
  const auto with_revision = locate_model("org/name", "v1", HubNeed::kModel, with("ok"));
  fs::remove(here);
  const auto fetched = locate_model("org/name", "v1", HubNeed::kModel, with("ok"));
  fs::current_path(before);
  ASSERT_TRUE(path.ok()) << path.status().to_string();
  EXPECT_EQ(*path, here);
  EXPECT_EQ(with_revision.status().code(), ErrorCode::kInvalidArgument);
  ASSERT_TRUE(fetched.ok()) << fetched.status().to_string();
  EXPECT_EQ(*fetched, folder() / "snapshots" / kCommit);
  for (const char* no_name :
       {"./org/name", "/nowhere", "org/name/file", "name.gguf", "", "org/.."}) {
    const Status status = locate_model(no_name, "", HubNeed::kModel, with("down")).status();
    EXPECT_EQ(status.code(), ErrorCode::kNotFound) << no_name << ": " << status.to_string();
  }
}

TEST_F(Hub, NamesMayHaveNoOrganisation) {
  write(root_ / "models" / "gpt2" / "config.json", "{} old");
  write(root_ / "models" / "gpt2" / "model.safetensors", weights_);
  const auto path = locate_model("gpt2", "", HubNeed::kModel, with("ok"));
  ASSERT_TRUE(path.ok()) << path.status().to_string();
  EXPECT_EQ(*path, options_.cache / "models--gpt2" / "snapshots" / kCommit);
  EXPECT_EQ(read(*path / "config.json"), "{} old");
  EXPECT_EQ(read(*path / "model.safetensors"), weights_);
  // What the cache has needs no hub.
  HubOptions offline = with("down");
  offline.offline = true;
  EXPECT_EQ(*locate_model("gpt2", "", HubNeed::kModel, offline), *path);
  EXPECT_EQ(*locate_model("gpt2@v1", "", HubNeed::kModel, with("ok")), *path);
  fs::remove_all(options_.cache);
  const auto moved = locate_model("gpt2", "", HubNeed::kModel, with("moved"));
  ASSERT_TRUE(moved.ok()) << moved.status().to_string();
  EXPECT_EQ(read(*moved / "config.json"), "{} config.json") << "where the hub sends it on to";
}

TEST_F(Hub, AMistypedPathIsSaidToBeOneWhateverTheHubSays) {
  for (const char* behaviour : {"ok", "down", "token"}) {
    const Status status = locate_model("modle", "", HubNeed::kModel, with(behaviour)).status();
    EXPECT_NE(status.message().find("no such file or folder here: "), std::string::npos)
        << status.to_string();
  }
  EXPECT_EQ(asked("GET /down/").size(), 1U) << "once is enough";
}

// Same cache from the same hub, and each client works with what the other has fetched.
TEST(HubReference, TheCacheIsThatOfHuggingFace) {
  const std::string program = STARLING_BIN_DIR "/starling-rl";
  if (!fs::exists(program)) GTEST_SKIP() << program << " is not built";
  const char* python = std::getenv("STARLING_PYTHON");  // one with huggingface_hub
  const std::string command =
      std::string(python != nullptr ? python : "python3") +
      " " STARLING_SOURCE_DIR "/tests/rl/hub/check_with_huggingface_hub.py " + program;
  const int status = std::system(command.c_str());
  constexpr int kSkipped = 77;
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == kSkipped || WEXITSTATUS(status) == 127)
    GTEST_SKIP() << "needs huggingface_hub: set STARLING_PYTHON to a python that has it";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(HubName, TakesWhatHuggingFaceTakes) {
  EXPECT_EQ(HubName::parse("org/name")->revision, "main");
  EXPECT_EQ(HubName::parse("org/na.me_1-x@v1.0")->revision, "v1.0");
  EXPECT_EQ(HubName::parse("org/name", "v2")->revision, "v2");
  EXPECT_EQ(HubName::parse("org/name@v2", "v2")->revision, "v2");
  EXPECT_FALSE(HubName::parse("org/name@v1", "v2").ok());
  EXPECT_EQ(HubName::parse("gpt2")->repo, "gpt2");
  EXPECT_EQ(HubName::parse("bert-base-uncased@v1")->revision, "v1");
  for (const char* bad :
       {"", "/name", "name.gguf", "model.safetensors", "..", ".", "-name", "org/", "org/na--me",
        "org/..", "a/b/c", "org/name@", "org/name@../x", "org/name@/x", "org/na me", "-org/name"}) {
    EXPECT_FALSE(HubName::parse(bad).ok()) << bad;
  }
}

}  // namespace
}  // namespace rl
