#include "rl/template/html.h"

#include <gtest/gtest.h>

namespace rl {
namespace {

TEST(HtmlText, EscapesMarkupAndNothingElse) {
  EXPECT_EQ(html_text("<a b='\"'>&amp;</a> \u00e9"),
            "&lt;a b=&#39;&#34;&#39;&gt;&amp;amp;&lt;/a&gt; \u00e9");
}

}  // namespace
}  // namespace rl
