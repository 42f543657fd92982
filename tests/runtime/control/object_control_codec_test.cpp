// Decoding of messages about objects, as some program may have written them. That values come back
// equal: control_codec_test.cpp.
#include "runtime/control/object_control_codec.h"

#include <capnp/message.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace runtime {
namespace {

class ObjectControlCodecTest : public ::testing::Test {
 protected:
  ObjectInfo listed(const ObjectInfo& object, std::uint16_t place) {
    auto to = builder_->initRoot<schema::ObjectControlReply>();
    schema_values::store(ObjectControlAnswer(ObjectList{{object}, {}, false, {}}), to);
    to.getList().getObjects()[0].setPlace(place);
    return std::get<ObjectList>(schema_values::load(to.asReader())).objects.at(0);
  }

  // Its destructor may throw, which that of a test may not.
  const std::unique_ptr<capnp::MallocMessageBuilder> builder_ =
      std::make_unique<capnp::MallocMessageBuilder>();
};

TEST_F(ObjectControlCodecTest, ALocationThatIsNotAlignedIsRefused) {
  auto to = builder_->initRoot<schema::ObjectControl>();
  schema_values::store(ObjectControl(control::AdoptObject{}), to);
  EXPECT_NO_THROW(schema_values::load(to.asReader()));
  to.getAdopt().setOffset(1);
  EXPECT_THROW(schema_values::load(to.asReader()), kj::Exception);
}

TEST_F(ObjectControlCodecTest, AMalformedCopyMakesTheWholeValueSo) {
  auto to = builder_->initRoot<schema::PublishedValue>();
  schema_values::store_value(std::vector<ObjectLocation>(2), to);
  EXPECT_EQ(schema_values::load_value(to.asReader()),
            PublishedValue(std::vector<ObjectLocation>(2)));
  to.getCopies()[1].setOffset(7);
  EXPECT_THROW(schema_values::load_value(to.asReader()), kj::Exception);
}

TEST_F(ObjectControlCodecTest, NoCopyIsNotAnEmptyValue) {
  auto to = builder_->initRoot<schema::PublishedValue>();
  schema_values::store_value(std::vector<ObjectLocation>(), to);
  EXPECT_EQ(schema_values::load_value(to.asReader()),
            PublishedValue(std::vector<ObjectLocation>()));
  schema_values::store_value(std::string(), to);
  EXPECT_EQ(schema_values::load_value(to.asReader()), PublishedValue(std::string()));
}

TEST_F(ObjectControlCodecTest, APlaceOfANewerReleaseIsShownAsUnknown) {
  const auto last = static_cast<std::uint16_t>(ObjectPlace::kHead);
  EXPECT_EQ(listed({}, last).place, ObjectPlace::kHead);
  EXPECT_EQ(listed({}, last + 1).place, ObjectPlace::kUnknown);
}

}  // namespace
}  // namespace runtime
