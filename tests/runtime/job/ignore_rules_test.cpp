// The rules of gitignore(5), by hand and against git itself on random patterns and folders.
#include "runtime/job/ignore_rules.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>
#include <sstream>

#include "tests/support/temporary_folder.h"

namespace runtime {
namespace {

namespace fs = std::filesystem;

/// As a scan asks: from the top, and not within what is left out.
bool is_left_out(const IgnoreRules& rules, const std::string& path, bool is_folder) {
  for (std::size_t slash = path.find('/'); slash != std::string::npos;
       slash = path.find('/', slash + 1)) {
    if (rules.ignores(path.substr(0, slash), true).value_or(false)) return true;
  }
  return rules.ignores(path, is_folder).value_or(false);
}

bool leaves_out(const std::string& lines, const std::string& path) {
  const bool is_folder = path.ends_with('/');
  return is_left_out(IgnoreRules(lines), path.substr(0, path.size() - (is_folder ? 1 : 0)),
                     is_folder);
}

TEST(IgnoreRules, AreLikeGitsOnes) {
  const char* const lines = "# comment\n*.o\n!keep.o\nbuild/\n/top\ndocs/*.pdf\n";
  EXPECT_TRUE(leaves_out(lines, "a.o"));
  EXPECT_TRUE(leaves_out(lines, "deep/down/a.o"));
  EXPECT_FALSE(leaves_out(lines, "deep/keep.o"));
  EXPECT_TRUE(leaves_out(lines, "x/build/"));
  EXPECT_FALSE(leaves_out(lines, "x/build"));
  EXPECT_TRUE(leaves_out(lines, "top"));
  EXPECT_FALSE(leaves_out(lines, "x/top"));
  EXPECT_TRUE(leaves_out(lines, "docs/a.pdf"));
  EXPECT_FALSE(leaves_out(lines, "docs/more/a.pdf"));
}

TEST(IgnoreRules, TwoStarsAreAnyDepthZeroIncluded) {
  for (const char* path : {"x.key", "a/x.key", "a/b/c/x.key"})
    EXPECT_TRUE(leaves_out("**/*.key", path)) << path;
  for (const char* path : {"__pycache__/", "a/b/__pycache__/", "a/__pycache__/m.pyc"})
    EXPECT_TRUE(leaves_out("**/__pycache__", path)) << path;
  for (const char* path : {"a/b", "a/x/b", "a/x/y/b"})
    EXPECT_TRUE(leaves_out("a/**/b", path)) << path;
  for (const char* path : {"ab", "x/a/b", "a/xb", "a/"})
    EXPECT_FALSE(leaves_out("a/**/b", path)) << path;
  EXPECT_TRUE(leaves_out("a/**", "a/x/y"));
  EXPECT_FALSE(leaves_out("a/**", "a/"));
  EXPECT_TRUE(leaves_out("**/a/**/b/**", "x/a/y/b/z"));
  EXPECT_FALSE(leaves_out("x/a**b", "x/a/b")) << "other stars are within a name";
}

TEST(IgnoreRules, ALineDecidesOverThoseBeforeIt) {
  EXPECT_FALSE(leaves_out("*\n!*.py\n", "main.py"));
  EXPECT_TRUE(leaves_out("!*.py\n*\n", "main.py"));
  EXPECT_TRUE(leaves_out("data/\n!data/keep\n", "data/keep")) << "its folder is left out";
  EXPECT_FALSE(leaves_out("data/*\n!data/keep\n", "data/keep"));
}

TEST(IgnoreRules, TakeBytesAsTheyStandBehindABackslash) {
  EXPECT_TRUE(leaves_out("\\#a", "#a"));
  EXPECT_TRUE(leaves_out("\\!a", "!a"));
  EXPECT_TRUE(leaves_out("a\\*", "a*"));
  EXPECT_FALSE(leaves_out("a\\*", "ab"));
  EXPECT_TRUE(leaves_out("a\\ \n", "a "));
  EXPECT_TRUE(leaves_out("a  \n", "a"));
  EXPECT_TRUE(leaves_out("a\t\n", "a\t")) << "a tab is not a blank";
  EXPECT_TRUE(
      leaves_out("\xef\xbb\xbf"
                 "a\r\nb\r\n",
                 "a"));
  EXPECT_TRUE(leaves_out("a\r\nb", "b"));
  EXPECT_FALSE(leaves_out("a\\", "a"));
}

TEST(IgnoreRules, KnowSets) {
  EXPECT_TRUE(leaves_out("[a-c]x", "bx"));
  EXPECT_FALSE(leaves_out("[!a-c]x", "bx"));
  EXPECT_TRUE(leaves_out("[^a-c]x", "dx"));
  EXPECT_TRUE(leaves_out("[]-]x", "]x"));
  EXPECT_TRUE(leaves_out("[[:digit:]_]x", "7x"));
  EXPECT_TRUE(leaves_out("[[:upper:]]x", "Ax"));
  EXPECT_FALSE(leaves_out("[[:upper:]]x", "ax"));
  EXPECT_FALSE(leaves_out("[[:nothing:]]x", "ax"));
  EXPECT_FALSE(leaves_out("[ab", "a"));
  EXPECT_FALSE(leaves_out("a[/]b", "a/b"));
  EXPECT_FALSE(leaves_out("a?b/c", "a/b/c"));
}

TEST(IgnoreRules, TakeTheirTimeForNoPattern) {
  std::string pattern, name(2000, 'a');
  for (int i = 0; i < 60; ++i) pattern += "*a";
  EXPECT_FALSE(leaves_out(pattern + "b", name));
  EXPECT_FALSE(leaves_out("/" + pattern + "/**/**/**/b", name));
}

// -- Against git

class GitIgnore : public ::testing::Test {
 protected:
  void SetUp() override {
    if (run("git init -q") != 0) GTEST_SKIP() << "there is no git";
  }
  int run(const std::string& command) const {
    const std::string all = "cd '" + folder_.path().string() +
                            "' && GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null " + command +
                            " >.git-out 2>.git-err";
    const int status = std::system(all.c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  /// Of these paths, those that git leaves out with this file.
  std::set<std::string> left_out_by_git(const std::string& lines,
                                        const std::vector<std::string>& paths) const {
    std::ofstream(folder_.path() / ".gitignore") << lines;
    std::ofstream asked(folder_.path() / ".git-in");
    for (const std::string& path : paths) asked << path << '\0';
    asked.close();
    EXPECT_LE(run("git check-ignore --no-index -z --stdin <.git-in"), 1);
    std::ifstream told(folder_.path() / ".git-out");
    std::set<std::string> found;
    for (std::string path; std::getline(told, path, '\0');) found.insert(path);
    return found;
  }
  support::TemporaryFolder folder_;
};

/// Folders and files with few names, so that patterns of the same letters meet them.
std::vector<std::string> random_tree(std::mt19937& random, const fs::path& root) {
  static const std::vector<std::string> kNames{
      "a",  "b",  "ab", "ba",  "a.b", "b.key", "c d",  "e ",       "[a]", "a*b",
      "#a", "!b", "A",  "a-b", "7",   "_",     "a\\b", "\xc3\xa9", "a\tb"};
  std::vector<std::string> paths;
  const auto fill = [&](const auto& self, const std::string& inside, int depth) -> void {
    std::set<std::string> names;
    for (unsigned i = 0; i < 3 + random() % 4; ++i) names.insert(kNames[random() % kNames.size()]);
    for (const std::string& name : names) {
      const std::string path = inside.empty() ? name : inside + "/" + name;
      const bool is_folder = depth < 4 && random() % 2 == 0;
      paths.push_back(path);
      if (!is_folder) {
        std::ofstream(root / path) << "x";
        continue;
      }
      fs::create_directory(root / path);
      self(self, path, depth + 1);
    }
  };
  fill(fill, "", 0);
  return paths;
}

std::string random_line(std::mt19937& random) {
  static const std::vector<std::string> kParts{"a",
                                               "b",
                                               "a",
                                               "b",
                                               "*",
                                               "*",
                                               "**",
                                               "?",
                                               "/",
                                               "/",
                                               "/",
                                               "**/",
                                               "/**",
                                               "/**/",
                                               "[ab]",
                                               "[!a]",
                                               "[^b-z]",
                                               "[a-",
                                               "[]a]",
                                               "[a-]",
                                               "\\",
                                               "\\*",
                                               "\\a",
                                               "[[:alpha:]]",
                                               "[[:digit:]_]",
                                               "[![:space:]]",
                                               "[[:x:]]",
                                               ".",
                                               "key",
                                               " ",
                                               "\\ ",
                                               "-",
                                               "#",
                                               "!",
                                               "a.b",
                                               "[\\]a]",
                                               "***",
                                               "A",
                                               "7",
                                               "[/]",
                                               "\xc3\xa9",
                                               "\t",
                                               "[[:alnum]",
                                               "\\/",
                                               "\r"};
  std::string line = random() % 6 == 0 ? "!" : "";
  for (unsigned i = 0; i < 1 + random() % 6; ++i) line += kParts[random() % kParts.size()];
  if (random() % 5 == 0) line += "/";
  return line;
}

/// A `**` right behind bytes that are none of "*?[\" and not '/': versions of git differ in it.
bool is_disputed(const std::string& line) {
  const std::string pattern = line.substr(line.starts_with('!') ? 1 : 0);
  const std::size_t first = pattern.find_first_of("*?[\\");
  return first != std::string::npos && first > 0 && pattern[first - 1] != '/' &&
         pattern.compare(first, 2, "**") == 0;
}

TEST_F(GitIgnore, EqualsOursOnRandomPatternsAndFolders) {
  fs::create_directories(folder_.path() / "foo");
  std::ofstream(folder_.path() / "foobar") << "x";
  const bool has_dispute = left_out_by_git("foo**/bar\n", {"foobar"}).contains("foobar");
  fs::remove(folder_.path() / "foobar");
  fs::remove(folder_.path() / "foo");
  const unsigned seed = 20260719;
  std::mt19937 random(seed);
  int paths_seen = 0, left_out = 0;
  for (int tree = 0; tree < 12; ++tree) {
    for (const auto& entry : fs::directory_iterator(folder_.path())) {
      if (!entry.path().filename().string().starts_with(".git")) fs::remove_all(entry.path());
    }
    const std::vector<std::string> paths = random_tree(random, folder_.path());
    for (int round = 0; round < 40; ++round) {
      std::string lines;
      for (unsigned i = 0; i < 1 + random() % 5; ++i) {
        const std::string line = random_line(random);
        if (has_dispute || !is_disputed(line)) lines += line + "\n";
      }
      const std::set<std::string> by_git = left_out_by_git(lines, paths);
      const IgnoreRules rules(lines);
      for (const std::string& path : paths) {
        const bool ours = is_left_out(rules, path, fs::is_directory(folder_.path() / path));
        ++paths_seen;
        left_out += ours ? 1 : 0;
        ASSERT_EQ(ours, by_git.contains(path)) << "seed " << seed << ", tree " << tree << ", round "
                                               << round << ": '" << path << "' by\n"
                                               << lines;
      }
    }
  }
  // Neither all nor nothing, or the patterns would tell nothing.
  EXPECT_GT(left_out, paths_seen / 10);
  EXPECT_LT(left_out, paths_seen * 9 / 10);
}

}  // namespace
}  // namespace runtime
