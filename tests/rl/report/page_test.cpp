#include "rl/report/page.h"

#include <gtest/gtest.h>

namespace rl {
namespace {

bool has_part(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Page, TitlesNamesAndNumbersAreTextAndWhatIsInsideIsHtml) {
  const std::string box = card("a < b & c", "<p>x</p>");
  EXPECT_TRUE(has_part(box, "a &lt; b &amp; c")) << box;
  EXPECT_TRUE(has_part(box, "<p>x</p>")) << box;
  const std::string number = fact("<name>", "<1");
  EXPECT_TRUE(has_part(number, "&lt;name&gt;")) << number;
  EXPECT_TRUE(has_part(number, "&lt;1")) << number;
}

TEST(Page, IsADocumentWithItsStyleInIt) {
  const std::string whole = page({.title = "run <1>",
                                  .body = "<p>body</p>",
                                  .script = "if (1 < 2) draw();",
                                  .body_class = "wide"});
  EXPECT_TRUE(whole.starts_with("<!doctype html>")) << whole;
  EXPECT_TRUE(has_part(whole, "<meta charset='utf-8'>")) << whole;
  EXPECT_TRUE(has_part(whole, "<title>run &lt;1&gt;</title>")) << whole;
  EXPECT_TRUE(has_part(whole, "<body class='wide'><main><p>body</p></main>")) << whole;
  EXPECT_TRUE(has_part(whole, "<script>if (1 < 2) draw();</script>")) << whole;
  EXPECT_FALSE(has_part(whole, "<link")) << "it needs no other file";
}

}  // namespace
}  // namespace rl
