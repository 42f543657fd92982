// Names for a misspelt key. The messages are in config_test.cpp.
#include "rl/config/nearest.h"

#include <gtest/gtest.h>

#include <array>

namespace rl {
namespace {

using Names = std::vector<std::string>;

constexpr std::array kNearRows{UsedKey{"data.batch_size", "1", KeyKind::kInt, "", "w"},
                               UsedKey{"actor.optim.lr", "1", KeyKind::kFloat, "", "w"},
                               UsedKey{"critic.optim.lr", "1", KeyKind::kFloat, "", "w"},
                               UsedKey{"trainer.total_epochs", "1", KeyKind::kInt, "", "w"}};
constexpr std::array kNearNames{KeyAlias{"trainer.epochs", "trainer.total_epochs"},
                                KeyAlias{"old_section.", "data."}};

class NearestTest : public ::testing::Test {
 protected:
  Names nearest(std::string_view key, std::size_t count = 3) const {
    return nearest_keys(key, count, keys_);
  }

  const KeyTable keys_{"train", {{.used = kNearRows}}, kNearNames};
};

TEST_F(NearestTest, ALastPartIsFoundInAnySection) {
  EXPECT_EQ(nearest("trainer.batch_size"), Names{"data.batch_size"});
  EXPECT_EQ(nearest("batch_sise"), Names{"data.batch_size"});
}

TEST_F(NearestTest, OfEqualLastPartsTheNearestSectionComesFirst) {
  EXPECT_EQ(nearest("critc.optimizer.lr", 1), Names{"critic.optim.lr"});
  EXPECT_EQ(nearest("actors.optim.lr", 1), Names{"actor.optim.lr"});
}

TEST_F(NearestTest, OlderNamesAreOfferedAndOlderSectionsAreNot) {
  EXPECT_EQ(nearest("trainer.epoch"), Names{"trainer.epochs"});
  EXPECT_TRUE(nearest("old_section").empty());
}

TEST_F(NearestTest, WhatIsFarFromAllHasNoNeighbour) {
  EXPECT_TRUE(nearest("zzzzqqqq").empty());
  EXPECT_TRUE(nearest(std::string(100'000, 'a')).empty()) << "and costs no time";
  EXPECT_EQ(unknown_key_message("zzzzqqqq", keys_),
            "unknown key 'zzzzqqqq': write +zzzzqqqq=... to add a custom key");
}

TEST_F(NearestTest, OneListHasCommasAndThenAnOr) {
  EXPECT_EQ(unknown_key_message("optim.lr", keys_),
            "unknown key 'optim.lr': did you mean 'actor.optim.lr' or 'critic.optim.lr'?");
}

}  // namespace
}  // namespace rl
