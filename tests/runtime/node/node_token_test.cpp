#include "runtime/node/node_token.h"

#include <gtest/gtest.h>

namespace runtime {
namespace {

control::TokenChanged changed_to(std::string token) {
  control::TokenChanged changed;
  changed.state.token = std::move(token);
  changed.state.version = 1;
  return changed;
}

TEST(NodeToken, KeepsATokenBeforeItCounts) {
  std::vector<std::pair<std::string, bool>> kept;
  NodeToken token("old", "", [&](const std::string& text, bool is_present) {
    kept.emplace_back(text, is_present);
    return Status();
  });
  EXPECT_TRUE(token.expect("new").ok());
  EXPECT_EQ(token.keyring().present(), "old");
  EXPECT_EQ(token.keyring().accepted().size(), 2u);
  token.change(changed_to("new"));
  EXPECT_EQ(token.keyring().present(), "new");
  EXPECT_EQ(kept, (std::vector<std::pair<std::string, bool>>{{"new", false}, {"new", true}}));
}

TEST(NodeToken, DoesNotExpectWhatCannotBeKept) {
  NodeToken token("old", "", [](const std::string&, bool) { return resource_exhausted("full"); });
  EXPECT_EQ(token.expect("new").code(), ErrorCode::kResourceExhausted);
  EXPECT_EQ(token.keyring().accepted().size(), 1u);
  token.change(changed_to("new"));
  EXPECT_EQ(token.keyring().present(), "new") << "the head has decided";
}

TEST(NodeToken, AcceptsTheTokenOfAChangeThatWasBegun) {
  NodeToken token("old", "next", {});
  EXPECT_EQ(token.keyring().accepted(), (std::vector<std::string>{"old", "next"}));
}

}  // namespace
}  // namespace runtime
