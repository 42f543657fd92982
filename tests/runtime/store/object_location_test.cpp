#include "runtime/store/object_location.h"

#include <capnp/message.h>
#include <gtest/gtest.h>

#include <memory>
#include <span>
#include <string>

#include "runtime/store/segment.h"
#include "runtime/transport/capnp_codec.h"
#include "tests/support/expect_failure.h"

namespace runtime {
namespace {

using support::expect_failure;

class ObjectLocationTest : public ::testing::Test {
 protected:
  ObjectLocationTest() {
    location_.id = ObjectId::random();
    location_.node = NodeId::random();
    location_.endpoint = "10.0.0.1:7000";
    location_.segment = 3;
    location_.extent = 17;
    location_.offset = 5 * kObjectAlignment;
    location_.size = 123;
    location_.write(to_);
  }
  Result<ObjectLocation> read() { return ObjectLocation::read(to_.asReader()); }

  ObjectLocation location_;
  // A builder may throw when it is destroyed, and a fixture may not.
  const std::unique_ptr<capnp::MallocMessageBuilder> message_ =
      std::make_unique<capnp::MallocMessageBuilder>();
  schema::ObjectLocation::Builder to_ = message_->initRoot<schema::ObjectLocation>();
};

TEST_F(ObjectLocationTest, ComesBackEqual) {
  const Result<ObjectLocation> back = read();
  ASSERT_TRUE(back.ok()) << back.status().message();
  EXPECT_EQ(*back, location_);
}

TEST_F(ObjectLocationTest, AnIdOfTheWrongSizeIsRefused) {
  const std::string part(15, '\1');
  to_.setObjectId(to_data(std::as_bytes(std::span(part))));
  expect_failure(read().status(), ErrorCode::kInvalidArgument, {"object location"});
  to_.setObjectId(to_data(location_.id));
  to_.setNodeId(to_data(std::as_bytes(std::span(part))));
  expect_failure(read().status(), ErrorCode::kInvalidArgument, {"object location"});
}

TEST_F(ObjectLocationTest, AnOffsetThatIsNotAlignedIsRefused) {
  to_.setOffset(5 * kObjectAlignment + 8);
  expect_failure(read().status(), ErrorCode::kInvalidArgument, {"aligned"});
}

}  // namespace
}  // namespace runtime
