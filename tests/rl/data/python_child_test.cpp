#include "rl/data/python_child.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>

#include "tests/support/eventually.h"
#include "tests/support/expect_failure.h"
#include "tests/support/temporary_folder.h"

namespace rl {
namespace {

using runtime::ErrorCode;
using runtime::Result;

PythonChild started(const std::string& program, const nlohmann::ordered_json& setup = nullptr) {
  Result<PythonChild> child = PythonChild::start(program, setup, "data.custom_cls");
  EXPECT_TRUE(child.ok()) << child.status().to_string();
  return std::move(*child);
}

constexpr const char* kEcho =
    "for line in sys.stdin:\n"
    "    told.write('said ' + line)\n"
    "    told.flush()\n";

TEST(PythonChild, LinesGoBothWays) {
  PythonChild first = started(kEcho);
  PythonChild child = std::move(first);
  EXPECT_TRUE(child.send("one"));
  EXPECT_EQ(child.line(), "said one\n");
  const std::string long_line(1 << 20, 'x');
  EXPECT_TRUE(child.send("two"));
  EXPECT_TRUE(child.send(long_line));
  EXPECT_EQ(child.line(), "said two\n");
  EXPECT_EQ(child.line(), "said " + long_line + "\n");
}

TEST(PythonChild, KnowsItsSetupAndWhatItPrintsIsNoAnswer) {
  PythonChild child = started(
      "import json\n"
      "print('to no one')\n"
      "told.write(json.dumps(json.loads(sys.argv[1])) + '\\n')\n",
      {{"rows", 3}, {"text", "a\xff"}});
  const std::optional<std::string_view> line = child.line();
  ASSERT_TRUE(line);
  const auto told = nlohmann::ordered_json::parse(*line);
  EXPECT_EQ(told["rows"], 3);
  EXPECT_EQ(told["text"], "a\ufffd") << "what is no UTF-8 has a sign for it";
  EXPECT_EQ(child.line(), std::nullopt);
}

TEST(PythonChild, AChildThatIsGoneTakesNothingAndSaysNothing) {
  PythonChild child = started("pass\n");
  EXPECT_EQ(child.line(), std::nullopt);
  EXPECT_TRUE(support::eventually([&] { return !child.send("anyone?"); }));
  EXPECT_EQ(child.line(), std::nullopt);
}

TEST(PythonChild, EndsWithItsInputAndIsWaitedFor) {
  const support::TemporaryFolder folder;
  {
    PythonChild child = started(
        "sys.stdin.read()\n"
        "open('" +
        folder.file("ended") + "', 'w').close()\n");
  }
  EXPECT_TRUE(std::filesystem::exists(folder.file("ended")));
}

TEST(PythonChild, WithoutAnInterpreterTheKeySaysWhatNeedsIt) {
  const support::ScopedVariable none("STARLING_PYTHON", "/none/python");
  support::expect_failure(PythonChild::start("", nullptr, "data.custom_cls").status(),
                          ErrorCode::kUnavailable, {"data.custom_cls needs", "STARLING_PYTHON"});
}

}  // namespace
}  // namespace rl
