#include "rl/actor/preference_actor.h"

#include "rl/config/stage_keys.h"
#include "tests/rl/actor/actor_fixture.h"
#include "tests/support/expect_failure.h"

namespace rl {
namespace {

class PreferenceActorTest : public ActorTest {
 protected:
  runtime::Status create(std::vector<std::string> overrides) {
    overrides.push_back("model.path=" + model_.path().string());
    return PreferenceActor::create(runtime_, spec(std::move(overrides), dpo_keys())).status();
  }
};

TEST_F(PreferenceActorTest, NoneIsMadeWithoutTheConfigurationOfADriver) {
  EXPECT_EQ(PreferenceActor::create(runtime_, spec_of_no_driver()).status().code(),
            runtime::ErrorCode::kInvalidArgument);
}

TEST_F(PreferenceActorTest, TheReferenceIsTheModelItselfOrTheOneThatIsNamed) {
  EXPECT_TRUE(create({}).ok()) << create({}).to_string();
  EXPECT_TRUE(create({"preference.reference_path=" + model_.path().string()}).ok());
  support::expect_failure(create({"preference.reference_path=/nowhere"}),
                          runtime::ErrorCode::kNotFound, {"preference.reference_path", "/nowhere"});
}

TEST_F(PreferenceActorTest, ALossWithoutAReferenceLoadsNone) {
  EXPECT_TRUE(create({"preference.loss=orpo"}).ok())
      << create({"preference.loss=orpo"}).to_string();
}

}  // namespace
}  // namespace rl
