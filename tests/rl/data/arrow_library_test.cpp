// The library by its one symbol, which is all that programs see of what lies in rl/data/arrow.
// Values of every type that other programs wrote are in row_source_test.cpp.
#include "rl/data/arrow_library.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include "rl/data/row_type.h"
#include "runtime/process/program_library.h"
#include "tests/support/expect_failure.h"
#include "tests/support/temporary_folder.h"

namespace rl {
namespace {

using nlohmann::ordered_json;
using runtime::ErrorCode;
using runtime::Result;
using runtime::Status;
using support::expect_failure;

class ArrowLibraryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const Result<ArrowBackend*> loaded = load_arrow();
    ASSERT_TRUE(loaded.ok()) << loaded.status().to_string();
    arrow_ = *loaded;
  }
  static RowType type_of(const ordered_json& row) {
    RowType type;
    EXPECT_TRUE(type.add(row).ok());
    return type;
  }
  Result<std::unique_ptr<RowSink>> create(RowForm form, const RowType& type) const {
    return arrow_->create("rows", folder_.path() / "rows", form, type);
  }
  // What was written, opened to be read.
  Result<std::unique_ptr<RowSource>> written(RowForm form, const RowType& type,
                                             const std::vector<ordered_json>& rows) const {
    const auto sink = create(form, type);
    if (!sink.ok()) return sink.status();
    for (const ordered_json& row : rows) {
      if (const Status status = (*sink)->write({row, "f:1"}); !status.ok()) return status;
    }
    if (const Status status = (*sink)->commit(); !status.ok()) return status;
    return arrow_->open("rows", folder_.path() / "rows",
                        form == RowForm::kParquet ? RowForm::kParquet : RowForm::kArrow);
  }

  static constexpr RowForm kForms[] = {RowForm::kParquet, RowForm::kArrow, RowForm::kSavedFolder};
  support::TemporaryFolder folder_;
  ArrowBackend* arrow_ = nullptr;
};

// Classes of C++ go across, which a library of another version has otherwise.
TEST_F(ArrowLibraryTest, AProgramOfAnotherVersionGetsNothing) {
  void* const library =
      ::dlopen(runtime::program_library("libstarling_arrow.so").c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << ::dlerror();
  const auto backend =
      reinterpret_cast<ArrowBackend* (*)(int)>(::dlsym(library, "starling_arrow_backend"));
  ASSERT_NE(backend, nullptr);
  EXPECT_EQ(backend(kArrowBackendAbi), arrow_);
  EXPECT_EQ(backend(kArrowBackendAbi - 1), nullptr);
  EXPECT_EQ(backend(kArrowBackendAbi + 1), nullptr);
  ::dlclose(library);
}

TEST_F(ArrowLibraryTest, WhatARowLacksIsNull) {
  const ordered_json whole = ordered_json::parse(
      R"({"id": 1, "chat": [{"role": "user", "more": {"x": 0.5}}], "none": null, "flag": true})");
  const std::vector<ordered_json> rows = {
      whole,
      ordered_json::parse(R"({"chat": [{"role": "user"}, null, {"more": {}}], "flag": null})"),
      ordered_json::parse(R"({"unknown": 5, "chat": []})")};
  const std::vector<ordered_json> filled = {
      whole, ordered_json::parse(R"({"id": null, "chat": [{"role": "user", "more": null}, null,
                                     {"role": null, "more": {"x": null}}],
                                     "none": null, "flag": null})"),
      ordered_json::parse(R"({"id": null, "chat": [], "none": null, "flag": null})")};
  for (const RowForm form : kForms) {
    SCOPED_TRACE(static_cast<int>(form));
    const auto source = written(form, type_of(whole), rows);
    ASSERT_TRUE(source.ok()) << source.status().to_string();
    const auto back = (*source)->next();
    ASSERT_TRUE(back.ok()) << back.status().to_string();
    ASSERT_EQ(back->size(), filled.size());
    for (std::size_t i = 0; i < filled.size(); ++i) EXPECT_EQ((*back)[i].value, filled[i]);
    EXPECT_EQ((*back)[2].where, "rows: row 3");
  }
}

TEST_F(ArrowLibraryTest, AValueThatDoesNotFitIsRefusedNotRounded) {
  const auto refusal = [&](const char* typed, const char* row) {
    const auto sink = create(RowForm::kParquet, type_of(ordered_json::parse(typed)));
    EXPECT_TRUE(sink.ok()) << sink.status().to_string();
    return (*sink)->write({ordered_json::parse(row), "f:7"});
  };
  for (const auto& [typed, row] :
       {std::pair(R"({"a": 1})", R"({"a": "1"})"), std::pair(R"({"a": 1})", R"({"a": 1.5})"),
        std::pair(R"({"a": 1})", R"({"a": 9223372036854775808})"),
        std::pair(R"({"a": 9223372036854775808})", R"({"a": -1})"),
        std::pair(R"({"a": true})", R"({"a": 1})"),
        std::pair(R"({"a": "t"})", R"({"a": {"x": 1}})"),
        std::pair(R"({"a": [1]})", R"({"a": [1, "t"]})"),
        std::pair(R"({"a": {"x": 1}})", R"({"a": {"x": []}})")})
    expect_failure(refusal(typed, row), ErrorCode::kInvalidArgument,
                   {"f:7: column 'a': a value is ", "the column's type is "});
  EXPECT_TRUE(refusal(R"({"a": 1})", R"({"a": 9223372036854775807})").ok());
  EXPECT_TRUE(refusal(R"({"a": 9223372036854775808})", R"({"a": 0})").ok());
}

// Training reads groups in shuffled order.
TEST_F(ArrowLibraryTest, ManyRowsAreSeveralBlocks) {
  std::vector<ordered_json> rows;
  for (int i = 0; i < 4100; ++i) rows.push_back({{"i", i}});
  for (const RowForm form : kForms) {
    SCOPED_TRACE(static_cast<int>(form));
    const auto source = written(form, type_of(rows[0]), rows);
    ASSERT_TRUE(source.ok()) << source.status().to_string();
    EXPECT_EQ(*(*source)->block_rows(), (std::vector<std::int64_t>{4096, 4}));
    const auto last = (*source)->read_block(1);
    ASSERT_TRUE(last.ok()) << last.status().to_string();
    EXPECT_EQ(last->back().value.at("i"), 4099);
    EXPECT_EQ(last->back().where, "rows: row 4100");
  }
}

TEST_F(ArrowLibraryTest, RowsWithoutColumnsMakeNoFile) {
  for (const RowForm form : kForms)
    expect_failure(create(form, RowType()).status(), ErrorCode::kInvalidArgument,
                   {"rows: the rows have no columns"});
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

TEST_F(ArrowLibraryTest, AFileOfTheOtherFormIsNamed) {
  const ordered_json row = {{"a", 1}};
  for (const auto& [wrote, read] : {std::pair(RowForm::kParquet, RowForm::kArrow),
                                    std::pair(RowForm::kArrow, RowForm::kParquet)}) {
    ASSERT_TRUE(written(wrote, type_of(row), {row}).ok());
    expect_failure(arrow_->open("rows.x", folder_.path() / "rows", read).status(),
                   ErrorCode::kInvalidArgument, {"data file rows.x: "});
  }
}

}  // namespace
}  // namespace rl
