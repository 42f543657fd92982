#include "runtime/constructor_table.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <tuple>

#include "runtime/runtime.h"
#include "tests/support/expect_failure.h"

namespace runtime {
namespace {

using support::expect_failure;

struct Named {
  explicit Named(std::string given) : name(std::move(given)) { ++made; }
  Named(std::string given, int count) : name(std::move(given)), number(count) { ++made; }
  static inline int made = 0;
  std::string name;
  int number = 0;
};

struct Careful {
  Careful() = default;
  static Result<std::unique_ptr<Careful>> create(int number) {
    if (number < 0) return invalid_argument("below zero");
    if (number == 0) return std::unique_ptr<Careful>();
    auto careful = std::make_unique<Careful>();
    careful->value = number;
    return careful;
  }
  int value = 0;
};

class ConstructorTableTest : public ::testing::Test {
 protected:
  template <class T, class... P>
  Result<std::shared_ptr<T>> make(const P&... arguments) {
    return decode<T, P...>(encoded(arguments...));
  }
  /// As a caller sends them.
  template <class... P>
  static Buffer encoded(const P&... arguments) {
    return with_arguments<std::tuple<P...>>([](Encoder& encoder) { return encoder.to_buffer(); },
                                            arguments...);
  }
  /// By the entry that a worker finds, from bytes of some caller.
  template <class T, class... P>
  Result<std::shared_ptr<T>> decode(Buffer bytes) {
    const ConstructorEntry& entry = Constructor<T, P...>::entry;
    EXPECT_EQ(find_constructor(typeid(T), entry.signature), &entry);
    Decoder decoder(std::move(bytes));
    auto made = entry.construct(runtime_, decoder, Deadline::max());
    if (!made.ok()) return made.status();
    return std::static_pointer_cast<T>(*made);
  }

  Runtime runtime_{0, nullptr};  // not started
};

TEST_F(ConstructorTableTest, EachListOfArgumentsHasItsEntry) {
  const auto one = make<Named>(std::string("first"));
  ASSERT_TRUE(one.ok()) << one.status().to_string();
  EXPECT_EQ((*one)->name, "first");
  const auto two = make<Named>(std::string("second"), 7);
  ASSERT_TRUE(two.ok()) << two.status().to_string();
  EXPECT_EQ((*two)->number, 7);
  EXPECT_EQ(find_constructor(typeid(Named), typeid(std::tuple<double>).name()), nullptr);
  EXPECT_EQ(find_constructor(typeid(Careful), Constructor<Named, std::string>::entry.signature),
            nullptr)
      << "the arguments fit, the class is another";
}

TEST_F(ConstructorTableTest, CreateMayRefuse) {
  const auto made = make<Careful>(3);
  ASSERT_TRUE(made.ok()) << made.status().to_string();
  EXPECT_EQ((*made)->value, 3);
  expect_failure(make<Careful>(-1).status(), ErrorCode::kInvalidArgument, {"below zero"});
  expect_failure(make<Careful>(0).status(), ErrorCode::kTaskFailed, {"null pointer"});
}

TEST_F(ConstructorTableTest, FromMalformedArgumentsNothingIsMade) {
  const int before = Named::made;
  const Buffer much = encoded(std::string("name"), 7, 8);
  EXPECT_EQ((decode<Named, std::string, int>(much).status().code()), ErrorCode::kInvalidArgument);
  EXPECT_EQ((decode<Named, std::string, int>(Buffer()).status().code()),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(Named::made, before);
}

TEST_F(ConstructorTableTest, TextTravelsAsAString) {
  using constructor_detail::Param;
  EXPECT_TRUE((std::is_same_v<Param<char[6]>, std::string>));
  EXPECT_TRUE((std::is_same_v<Param<std::string_view>, std::string>));
  EXPECT_TRUE((std::is_same_v<Param<const int&>, int>));
}

}  // namespace
}  // namespace runtime
