// One pattern of gitignore(5); ignore_rules_test.cpp has the lines of a file, and git's opinion.
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "runtime/job/ignore_rules.h"

namespace runtime {
namespace {

bool fits_path(std::string_view pattern, std::string_view path) {
  return IgnorePattern(pattern, true).matches(path);
}
bool fits_name(std::string_view pattern, std::string_view name) {
  return IgnorePattern(pattern, false).matches(name);
}

TEST(IgnorePattern, WithoutSpecialBytesItIsItself) {
  EXPECT_TRUE(fits_name("a.b", "a.b"));
  for (const char* other : {"", "a", "a.bc", "xa.b", "a_b", "A.b"})
    EXPECT_FALSE(fits_name("a.b", other)) << other;
  EXPECT_TRUE(fits_name("", ""));
  EXPECT_FALSE(fits_name("", "a"));
}

TEST(IgnorePattern, AStarIsAnyBytesOfAName) {
  for (const char* name : {"ab", "a.b", "aab", "abb", "a*b"})
    EXPECT_TRUE(fits_name("a*b", name)) << name;
  for (const char* name : {"a", "b", "abc", "ba"}) EXPECT_FALSE(fits_name("a*b", name)) << name;
  EXPECT_FALSE(fits_path("a*b", "a/b"));
  EXPECT_TRUE(fits_path("*/b", "a/b"));
  EXPECT_TRUE(fits_path("a/*", "a/")) << "none is any number";
  EXPECT_TRUE(fits_name("*", ""));
}

TEST(IgnorePattern, AQuestionMarkIsOneByte) {
  EXPECT_TRUE(fits_name("a?c", "abc"));
  EXPECT_FALSE(fits_name("a?c", "ac"));
  EXPECT_FALSE(fits_name("a?c", "abbc"));
  EXPECT_FALSE(fits_path("a?c", "a/c"));
  EXPECT_FALSE(fits_name("?", "\xc3\xa9")) << "a letter of two bytes";
  EXPECT_TRUE(fits_name("??", "\xc3\xa9"));
}

TEST(IgnorePattern, TwoStarsAreWholeFoldersAtTheBeginningTheEndAndBetween) {
  for (const char* path : {"a", "x/a", "x/y/a"}) EXPECT_TRUE(fits_path("**/a", path)) << path;
  EXPECT_FALSE(fits_path("**/a", "xa"));
  EXPECT_FALSE(fits_path("**/a", "a/x"));
  for (const char* path : {"a/x", "a/x/y"}) EXPECT_TRUE(fits_path("a/**", path)) << path;
  EXPECT_FALSE(fits_path("a/**", "a"));
  for (const char* path : {"a/b", "a/x/b", "a/x/y/b"})
    EXPECT_TRUE(fits_path("a/**/b", path)) << path;
  EXPECT_FALSE(fits_path("a/**/b", "a/xb"));
  EXPECT_TRUE(fits_path("**", "a/b"));
  EXPECT_TRUE(fits_path("**/**/a", "a"));
}

TEST(IgnorePattern, ElsewhereTwoStarsAreLikeOne) {
  EXPECT_TRUE(fits_path("a/x**b", "a/xyb"));
  EXPECT_FALSE(fits_path("a/x**b", "a/x/b"));
  EXPECT_TRUE(fits_path("?x**/b", "axy/b"));
  EXPECT_FALSE(fits_path("?x**/b", "ax/y/b"));
  EXPECT_TRUE(fits_name("**a", "xxa"));
  EXPECT_TRUE(fits_name("a***b", "axb"));
}

TEST(IgnorePattern, ASetIsOneOfItsBytes) {
  for (const char* name : {"a", "c", "]", "-"}) EXPECT_TRUE(fits_name("[]ac-]", name)) << name;
  EXPECT_FALSE(fits_name("[]ac-]", "b")) << "a '-' at the end is itself";
  EXPECT_TRUE(fits_name("[a-c]", "b"));
  EXPECT_FALSE(fits_name("[c-a]", "b")) << "a range backwards is empty";
  EXPECT_FALSE(fits_name("[c-a]", "a"));
  EXPECT_TRUE(fits_name("[a-c-e]", "-")) << "an end of a range begins none";
  EXPECT_FALSE(fits_name("[a-c-e]", "d"));
  EXPECT_TRUE(fits_name("[\\]]", "]"));
  EXPECT_TRUE(fits_name("[a\\-c]", "-"));
  EXPECT_FALSE(fits_name("[a\\-c]", "b"));
  EXPECT_TRUE(fits_name("[\xc3-\xff]", "\xe0")) << "bytes are not signed";
}

TEST(IgnorePattern, ANegatedSetIsAnyOtherByteButTheSlash) {
  for (const char* pattern : {"[!a]", "[^a]"}) {
    EXPECT_TRUE(fits_path(pattern, "b"));
    EXPECT_FALSE(fits_path(pattern, "a"));
    EXPECT_FALSE(fits_path(pattern, "/"));
    EXPECT_FALSE(fits_path(pattern, ""));
  }
  EXPECT_TRUE(fits_name("[!]a]", "b"));
  EXPECT_FALSE(fits_name("[!]a]", "]"));
  EXPECT_TRUE(fits_name("[a!]", "!"));
}

TEST(IgnorePattern, KnowsClassesOfAscii) {
  EXPECT_TRUE(fits_name("[[:alpha:][:digit:]]", "Z"));
  EXPECT_TRUE(fits_name("[[:alpha:][:digit:]]", "0"));
  EXPECT_FALSE(fits_name("[[:alpha:][:digit:]]", "_"));
  EXPECT_FALSE(fits_name("[[:alpha:]]", "\xe9")) << "whatever the locale";
  EXPECT_TRUE(fits_name("[![:space:]]", "a"));
  EXPECT_FALSE(fits_name("[![:space:]]", "\t"));
  EXPECT_TRUE(fits_name("[[:punct:]]", "~"));
  EXPECT_TRUE(fits_name("[[:xdigit:]]", "f"));
  EXPECT_FALSE(fits_name("[[:xdigit:]]", "g"));
  EXPECT_TRUE(fits_name("[[:]", ":")) << "no class without its end";
  EXPECT_TRUE(fits_name("[[:alpha:]-z]", "-")) << "a class begins no range";
}

TEST(IgnorePattern, ABackslashTakesAByteAsItStands) {
  EXPECT_TRUE(fits_name("\\*", "*"));
  EXPECT_FALSE(fits_name("\\*", "a"));
  EXPECT_TRUE(fits_name("\\[a]", "[a]"));
  EXPECT_TRUE(fits_name("\\a", "a"));
  EXPECT_TRUE(fits_name("\\\\", "\\"));
}

TEST(IgnorePattern, AMalformedOneFitsNothing) {
  for (const char* pattern :
       {"[", "[a", "[a-", "[]", "[!]", "[[:nothing:]]", "[[:alpha:", "a\\", "[\\", "*[", "[a-\\"}) {
    for (const char* text : {"", "a", "[", "[a", "a\\", "]", "-"})
      EXPECT_FALSE(fits_name(pattern, text)) << pattern << " and " << text;
  }
}

TEST(IgnorePattern, IsAValue) {
  const IgnorePattern pattern("[ab]*", false);
  IgnorePattern copy("x", false);
  copy = pattern;
  EXPECT_TRUE(copy.matches("bc"));
  EXPECT_FALSE(copy.matches("x"));
  EXPECT_TRUE(pattern.matches("a"));
}

// What a backtracking match does with these takes longer than any test has time.
TEST(IgnorePattern, TakesNoLongerForABadPattern) {
  const std::string name(5000, 'a');
  std::string stars, folders = "**/";
  for (int i = 0; i < 100; ++i) stars += "*a", folders += "a/**/";
  EXPECT_FALSE(fits_name(stars + "b", name));
  EXPECT_TRUE(fits_name(stars, name));
  std::string path;
  for (int i = 0; i < 1000; ++i) path += "a/";
  EXPECT_FALSE(fits_path(folders + "b", path + "c"));
  EXPECT_TRUE(fits_path(folders + "b", path + "b"));
}

}  // namespace
}  // namespace runtime
