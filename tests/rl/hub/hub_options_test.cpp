// The hub's options from the environment, as Hugging Face's own tools read it.
#include "rl/hub/hub_options.h"

#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <vector>

#include "tests/support/temporary_folder.h"

namespace rl {
namespace {

using support::ScopedVariable;

class HubOptionsTest : public ::testing::Test {
 protected:
  HubOptionsTest() {
    for (const char* name :
         {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_TOKEN_PATH", "HF_HUB_CACHE",
          "HUGGINGFACE_HUB_CACHE", "HF_ENDPOINT", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE",
          "HF_HUB_DISABLE_IMPLICIT_TOKEN", "HF_HOME", "XDG_CACHE_HOME"})
      set(name, nullptr);
    set("HOME", home_.path().c_str());
  }
  // Until the test ends.
  void set(const char* name, const char* value) {
    set_.push_back(std::make_unique<ScopedVariable>(name, value));
  }
  std::string write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories((home_.path() / name).parent_path());
    std::ofstream(home_.path() / name) << text;
    return home_.file(name);
  }
  static HubOptions read() { return HubOptions::from_environment(); }
  ~HubOptionsTest() override {
    while (!set_.empty()) set_.pop_back();  // the last one first
  }

  const support::TemporaryFolder home_;
  std::vector<std::unique_ptr<ScopedVariable>> set_;
};

TEST_F(HubOptionsTest, TheCacheIsTheMostSpecialOneThatIsNamed) {
  EXPECT_EQ(read().cache, home_.path() / ".cache/huggingface/hub");
  set("XDG_CACHE_HOME", "/xdg");
  EXPECT_EQ(read().cache, "/xdg/huggingface/hub");
  set("HF_HOME", "~/models");
  EXPECT_EQ(read().cache, home_.path() / "models/hub");
  set("HUGGINGFACE_HUB_CACHE", "/older");
  EXPECT_EQ(read().cache, "/older");
  set("HF_HUB_CACHE", "/elsewhere");
  EXPECT_EQ(read().cache, "/elsewhere");
}

TEST_F(HubOptionsTest, TheTokenIsAVariablesOrElseAFiles) {
  EXPECT_EQ(read().token, "");
  write(".cache/huggingface/token", "of_home\n");
  EXPECT_EQ(read().token, "of_home");
  set("HF_TOKEN_PATH", write("other", " of_path ").c_str());
  EXPECT_EQ(read().token, "of_path");
  set("HUGGING_FACE_HUB_TOKEN", "older");
  EXPECT_EQ(read().token, "older");
  set("HF_TOKEN", " newer\n");
  EXPECT_EQ(read().token, "newer");
  set("HF_TOKEN", " ");
  EXPECT_EQ(read().token, "older") << "a blank variable says nothing";
}

TEST_F(HubOptionsTest, NoTokenIsSentWhereThatIsSaid) {
  set("HF_TOKEN", "secret");
  set("HF_HUB_DISABLE_IMPLICIT_TOKEN", "1");
  EXPECT_EQ(read().token, "");
  set("HF_HUB_DISABLE_IMPLICIT_TOKEN", "0");
  EXPECT_EQ(read().token, "secret");
}

TEST_F(HubOptionsTest, EitherVariableMakesItOffline) {
  for (const char* name : {"HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"}) {
    for (const char* on : {"1", "true", "YES", "On"}) {
      set(name, on);
      EXPECT_TRUE(read().offline) << name << "=" << on;
    }
    for (const char* off : {"0", "", "false"}) {
      set(name, off);
      EXPECT_FALSE(read().offline) << name << "=" << off;
    }
  }
}

TEST_F(HubOptionsTest, PathsFollowAnEndpointWithoutADoubleSlash) {
  EXPECT_EQ(read().endpoint, "https://huggingface.co");
  set("HF_ENDPOINT", "https://mirror.example//");
  EXPECT_EQ(read().endpoint, "https://mirror.example");
}

}  // namespace
}  // namespace rl
