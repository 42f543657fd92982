// Rows of every form, from files that the reference libraries made (make_files.py), and back.
#include "rl/data/row_source.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <numeric>

#include "rl/data/dataset.h"
#include "rl/data/row_type.h"
#include "tests/rl/data/test_files.h"
#include "tests/support/temporary_folder.h"

namespace rl {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;
using runtime::ErrorCode;
using testing::TempFile;

/// All rows, read in order, which are checked to be those that the blocks have.
runtime::Result<std::vector<RawRow>> read_all(const std::string& name,
                                              const RowSourceOptions& options = {}) {
  auto source = open_rows(name, options);
  if (!source.ok()) return source.status();
  std::vector<RawRow> rows;
  while (true) {
    auto block = (*source)->next();
    if (!block.ok()) return block.status();
    if (block->empty()) break;
    for (RawRow& row : *block) rows.push_back(std::move(row));
  }
  const auto blocks = (*source)->block_rows();
  if (!blocks.ok()) return blocks.status();
  EXPECT_EQ(std::accumulate(blocks->begin(), blocks->end(), std::int64_t{0}),
            static_cast<std::int64_t>(rows.size()));
  auto end = rows.end();
  for (std::int64_t block = static_cast<std::int64_t>(blocks->size()) - 1; block >= 0;
       --block) {  // backwards: in no order that a stream has
    const auto read = (*source)->read_block(block);
    if (!read.ok()) return read.status();
    end -= static_cast<std::ptrdiff_t>(read->size());
    for (std::size_t i = 0; i < read->size(); ++i) {
      EXPECT_EQ((*read)[i].value, end[static_cast<std::ptrdiff_t>(i)].value);
      EXPECT_EQ((*read)[i].where, end[static_cast<std::ptrdiff_t>(i)].where);
    }
  }
  return rows;
}

std::vector<ordered_json> values(const std::string& name, const RowSourceOptions& options = {}) {
  const auto rows = read_all(name, options);
  EXPECT_TRUE(rows.ok()) << rows.status().to_string();
  std::vector<ordered_json> values;
  if (rows.ok()) {
    for (const RawRow& row : *rows) values.push_back(row.value);
  }
  return values;
}

std::string file_complaint(const std::string& name) { return read_all(name).status().message(); }

ordered_json verl_row(int i) {
  const std::string sum = std::to_string(i) + "+" + std::to_string(i),
                    twice = std::to_string(2 * i);
  return {{"data_source", "openai/gsm8k"},
          {"prompt", {{{"content", "What is " + sum + "? Žluťoučký kůň"}, {"role", "user"}}}},
          {"ability", "math"},
          {"reward_model", {{"ground_truth", twice}, {"style", "rule"}}},
          {"extra_info", {{"answer", sum + "\n#### " + twice}, {"index", i}, {"split", "train"}}}};
}

// The order of an object's fields is the file's.
void expect_verl_rows(const std::vector<ordered_json>& rows, int first, int count) {
  ASSERT_EQ(rows.size(), static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i)
    EXPECT_EQ(nlohmann::json(rows[static_cast<std::size_t>(i)]),
              nlohmann::json(verl_row(first + i)));
}

TEST(RowSource, ReadsVerlsParquetWithEveryCodec) {
  for (const char* codec : {"snappy", "gzip", "zstd", "brotli", "lz4"}) {
    SCOPED_TRACE(codec);
    expect_verl_rows(values(testing::data_file("verl_" + std::string(codec) + ".parquet")), 0, 10);
  }
  const auto rows = read_all(testing::data_file("verl_snappy.parquet"));
  ASSERT_TRUE(rows.ok());
  EXPECT_EQ((*rows)[9].where, testing::data_file("verl_snappy.parquet") + ": row 10");
  EXPECT_EQ(*(*open_rows(testing::data_file("verl_snappy.parquet")))->block_rows(),
            (std::vector<std::int64_t>{4, 4, 2}));
  DatasetOptions options;
  options.files = {testing::data_file("verl_snappy.parquet")};
  const auto dataset = Dataset::load(options);
  ASSERT_TRUE(dataset.ok()) << dataset.status().to_string();
  EXPECT_TRUE(dataset->row(3).is_chat());
  EXPECT_EQ(dataset->row(3).ground_truth, "6");
  EXPECT_EQ(dataset->row(3).extra.at("index"), 3);
  EXPECT_EQ(dataset->row(3).data_source, "openai/gsm8k");
}

TEST(RowSource, FilesWithoutRowsAreNamed) {
  for (const char* name : {"empty.parquet", "empty.arrow", "saved_empty"}) {
    DatasetOptions options;
    options.files = {testing::data_file(name)};
    EXPECT_TRUE(values(testing::data_file(name)).empty()) << name;
    EXPECT_EQ(Dataset::load(options).status().message(),
              "the data set is empty: " + testing::data_file(name));
    options.files.push_back(testing::data_file("verl_snappy.parquet"));
    const auto with_rows = Dataset::load(options);
    ASSERT_TRUE(with_rows.ok()) << with_rows.status().to_string();
    EXPECT_EQ(with_rows->size(), 10) << name;
  }
}

TEST(RowSource, ReadsEveryTypeAndMissingValues) {
  const ordered_json first = {{"int8", -8},           {"uint64", UINT64_MAX}, {"float", 0.5},
                              {"bool", true},         {"text", "a"},          {"bytes", "xyz"},
                              {"day", "2024-02-29"},  {"decimal", "1.25"},    {"dictionary", "x"},
                              {"list", {1, nullptr}}, {"fixed", {1, 2}},      {"map", {{"k", 1}}},
                              {"null", nullptr}};
  for (const char* name : {"types.parquet", "types.arrow"}) {
    SCOPED_TRACE(name);
    const auto rows = values(testing::data_file(name));
    ASSERT_EQ(rows.size(), 2u);
    EXPECT_EQ(rows[0], first);
    for (const auto& [column, value] : rows[1].items()) EXPECT_TRUE(value.is_null()) << column;
  }
}

TEST(RowSource, ReadsFoldersOfSaveToDisk) {
  expect_verl_rows(values(testing::data_file("saved")), 0, 10);
  expect_verl_rows(values(testing::data_file("splits"), {.row_bytes_max = 1000, .split = "train"}),
                   0, 6);
  expect_verl_rows(
      values(testing::data_file("splits"), {.row_bytes_max = 1000, .split = "validation"}), 6,
      4);  // there it is called test
  expect_verl_rows(values(testing::data_file("splits/test")), 6, 4);
  EXPECT_EQ(file_complaint(testing::data_file("splits")),
            "data folder " + testing::data_file("splits") +
                ": it has several splits (train, test): name one, as " +
                testing::data_file("splits/train"));
}

TEST(RowSource, ReadsJsonLists) {
  const TempFile list("\xEF\xBB\xBF [ {\"a\": \"}],[\\\"\"},\n{\"a\": [1, {\"b\": 2}]} ]\n",
                      ".json");
  EXPECT_EQ(values(list.path()),
            (std::vector<ordered_json>{{{"a", "}],[\""}},
                                       ordered_json::parse(R"({"a": [1, {"b": 2}]})")}));
  EXPECT_TRUE(values(TempFile(" [ ] ", ".json").path()).empty());
  const TempFile lines("{\"a\": 1}\n{\"a\": 2}\n", ".json");  // as many tools name it
  EXPECT_EQ(values(lines.path()).size(), 2u);
  const auto expect_bad = [](const std::string& text, const std::string& what) {
    const TempFile bad(text, ".json");
    EXPECT_EQ(file_complaint(bad.path()), bad.path() + ": " + what) << text;
  };
  expect_bad("[{\"a\": 1}, {\"a\": ", "row 2: the list is not closed: the file is cut off");
  expect_bad("[{\"a\": 1} {\"a\": 2}]",
             "row 1: not JSON: parse error at line 1, column 10: syntax error while parsing value "
             "- unexpected '{'; expected end of input");
  expect_bad("[{\"a\": 1},]", "row 2: a row is missing behind a comma");
  expect_bad("[{\"a\": 1}] x", "row 2: there is text behind the list's end");
  expect_bad("[{\"a\": 1}, 5]", "row 2: a row must be an object, it is a number");
}

TEST(RowSource, ReadsCsv) {
  const TempFile csv("question,answer\r\n\"a \"\"b\"\", c\",1\r\n\"two\nlines\",\n\n,x", ".csv");
  EXPECT_EQ(values(csv.path()),
            (std::vector<ordered_json>{{{"question", "a \"b\", c"}, {"answer", "1"}},
                                       {{"question", "two\nlines"}, {"answer", ""}},
                                       {{"question", ""}, {"answer", "x"}}}));
  EXPECT_EQ((*read_all(csv.path()))[1].where, csv.path() + ": row 2");
  const TempFile tsv("a\tb\n1,5\t2\n", ".tsv");
  EXPECT_EQ(values(tsv.path()), (std::vector<ordered_json>{{{"a", "1,5"}, {"b", "2"}}}));
  const TempFile fields("a,b\n1,2\n1,2,3\n", ".csv");
  EXPECT_EQ(file_complaint(fields.path()),
            fields.path() + ": row 2: it has 3 fields, and the first line names 2 columns");
  const TempFile open("a,b\n1,\"2\n", ".csv");
  EXPECT_EQ(file_complaint(open.path()), open.path() + ": row 1: a quoted field is not closed");
  const TempFile behind("a,b\n1,\"2\"x\n", ".csv");
  EXPECT_EQ(file_complaint(behind.path()),
            behind.path() + ": row 1: field 2: text behind its closing quote");
  const TempFile latin("a,b\n1,2\n1,caf\xe9\n", ".csv");
  EXPECT_NE(
      file_complaint(latin.path()).find(latin.path() + ": row 2, column 'b': byte 3 is not UTF-8"),
      std::string::npos)
      << file_complaint(latin.path());
  const TempFile twice("a,b,a\n1,2,3\n", ".csv");
  EXPECT_EQ(file_complaint(twice.path()),
            "data file " + twice.path() + ": the first line names column 'a' twice");
}

// As Python's csv and pandas read it: only a quote at the beginning of a field quotes it.
TEST(RowSource, QuotesWithinAFieldAreCharacters) {
  const auto texts = [](const std::string& name, const std::string& text) {
    const TempFile written(text, name);
    const auto rows = read_all(written.path());
    EXPECT_TRUE(rows.ok()) << rows.status().to_string();
    std::vector<std::string> found;
    for (const RawRow& row : rows.value_or({}))
      for (const auto& [column, value] : row.value.items()) found.push_back(value);
    return found;
  };
  using Texts = std::vector<std::string>;
  EXPECT_EQ(texts("a.csv", "p\na 5\" nail\nb 6\" nail\nc\n"),
            (Texts{"a 5\" nail", "b 6\" nail", "c"}));
  EXPECT_EQ(texts("b.csv", "p,a\na 5\" nail,1\n\"x \"\"y\"\",\nz\",2\n"),
            (Texts{"a 5\" nail", "1", "x \"y\",\nz", "2"}));
  EXPECT_EQ(texts("c.tsv", "p\ta\nsays \"hi\", twice\t\"1\n2\"\n5\"\t6\"\n"),
            (Texts{"says \"hi\", twice", "1\n2", "5\"", "6\""}));
  EXPECT_EQ(texts("d.tsv", "p\ta\n\t\nb\t1\n \n\t\r\n"), (Texts{"", "", "b", "1", "", ""}))
      << "a line of tabs is a row of empty fields";
}

TEST(RowSource, ReadsHalfPrecision) {
  for (const char* name : {"half.parquet", "half.arrow"}) {
    const auto rows = read_all(testing::data_file(name));
    ASSERT_TRUE(rows.ok()) << rows.status().to_string();
    ASSERT_EQ(rows->size(), 4u);
    EXPECT_EQ((*rows)[0].value["difficulty"], 0.5);
    EXPECT_EQ((*rows)[1].value["difficulty"], -1.25);
    EXPECT_EQ((*rows)[2].value["difficulty"], std::ldexp(1.0, -14));
    EXPECT_EQ((*rows)[3].value["difficulty"], std::ldexp(1.0, -24));
  }
}

TEST(RowSource, ColumnsWithOneNameAreRefused) {
  for (const char* name : {"twice.parquet", "twice.arrow"}) {
    const auto rows = read_all(testing::data_file(name));
    EXPECT_EQ(rows.status().message(), "data file " + testing::data_file(name) +
                                           ": it has two columns 'answer': rename one of them");
  }
}

// Reading one would wait for a writer.
TEST(RowSource, APipeIsNoDataFile) {
  const TempFile place("", ".jsonl");
  const std::string pipe = place.path() + ".pipe.jsonl";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_NE(file_complaint(pipe).find("a pipe or a device"), std::string::npos)
      << file_complaint(pipe);
  ::unlink(pipe.c_str());
}

TEST(RowSource, ACompressedFileIsToldFromADamagedOne) {
  const TempFile compressed("\x1f\x8b\x08", ".jsonl");
  EXPECT_NE(file_complaint(compressed.path()).find("compressed by gzip: unpack it first"),
            std::string::npos)
      << file_complaint(compressed.path());
}

TEST(RowSource, TextsAreReadInBlocks) {
  for (const auto& [extension, begin, middle, end] :
       {std::tuple{".jsonl", "", "\n", "\n"}, std::tuple{".json", "[", ",\n", "]"},
        std::tuple{".csv", "a,b\n", "\n", "\n"}}) {
    SCOPED_TRACE(extension);
    std::string text = begin;
    for (int i = 0; i < 3000; ++i) {
      const std::string filling(static_cast<std::size_t>(i % 200), i % 7 == 0 ? '"' : 'x');
      const std::string number = std::to_string(i);
      if (i > 0) text += middle;
      std::string quoted = "\"";
      for (const char c : filling)
        quoted +=
            c == '"' ? (std::string(extension) == ".csv" ? "\"\"" : "\\\"") : std::string(1, c);
      text += std::string(extension) == ".csv"
                  ? number + "," + quoted + "\""
                  : "{\"a\": \"" + number + "\", \"b\": " + quoted + "\"}";
    }
    const TempFile rows(text + end, extension);
    const auto read = values(rows.path());
    ASSERT_EQ(read.size(), 3000u);
    for (int i = 0; i < 3000; ++i) {
      const ordered_json& row = read[static_cast<std::size_t>(i)];
      ASSERT_EQ(row.at("a"), std::to_string(i));
      ASSERT_EQ(row.at("b").get<std::string>().size(), static_cast<std::size_t>(i % 200));
    }
    EXPECT_GT((*open_rows(rows.path()))->block_rows()->size(), 2u);
  }
}

TEST(RowSource, DamagedFilesAreErrorsThatNameThem) {
  for (const char* name :
       {"cut.parquet", "damaged.parquet", "lying.parquet", "cut.arrow", "open.arrow"}) {
    SCOPED_TRACE(name);
    const auto rows = read_all(testing::data_file(name));
    ASSERT_FALSE(rows.ok());
    EXPECT_EQ(rows.status().code(), ErrorCode::kInvalidArgument);
    EXPECT_TRUE(rows.status().message().starts_with("data file " + testing::data_file(name)))
        << rows.status().message();
  }
  const TempFile text("{\"a\": 1}\n", ".parquet");
  EXPECT_EQ(read_all(text.path()).status().code(), ErrorCode::kInvalidArgument);
  const TempFile nothing("", ".arrow");
  EXPECT_EQ(read_all(nothing.path()).status().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(read_all("/nowhere/a.parquet").status().code(), ErrorCode::kNotFound);
  const TempFile unknown("x", ".xlsx");
  EXPECT_EQ(read_all(unknown.path()).status().code(), ErrorCode::kUnimplemented);
  const support::TemporaryFolder folder;
  fs::copy(testing::data_file("saved"), folder.path() / "saved");
  fs::remove(folder.path() / "saved" / "data-00001-of-00002.arrow");
  const auto missing = read_all((folder.path() / "saved").string());
  EXPECT_EQ(missing.status().code(), ErrorCode::kNotFound);
  EXPECT_NE(missing.status().message().find("data-00001-of-00002.arrow: it is missing"),
            std::string::npos)
      << missing.status().message();
}

// Any byte of a Parquet file may be another: an error or other rows, but the program goes on.
TEST(RowSource, SurvivesAnyDamagedByte) {
  std::ifstream in(testing::data_file("verl_snappy.parquet"), std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(in)), {});
  ASSERT_GT(whole.size(), 1000u);
  int refused = 0, tried = 0;
  for (std::size_t at = 0; at < whole.size(); at += 11, ++tried) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0xFF);
    const TempFile copy(damaged, ".parquet");
    auto source = open_rows(copy.path());
    bool failed = !source.ok();
    while (!failed) {
      const auto rows = (*source)->next();
      failed = !rows.ok();
      if (!failed && rows->empty()) break;
    }
    refused += failed;
  }
  EXPECT_GT(refused, tried / 4);
}

TEST(RowSource, WritesWhatItReads) {
  const std::vector<ordered_json> rows = values(testing::data_file("verl_snappy.parquet"));
  RowType type;
  for (const ordered_json& row : rows) ASSERT_TRUE(type.add(row).ok());
  const support::TemporaryFolder folder;
  for (const char* name : {"a.parquet", "a.arrow", "a.jsonl", "a.json", "folder"}) {
    SCOPED_TRACE(name);
    const std::string path = (folder.path() / name).string();
    {
      auto unfinished = create_rows(path, type);
      ASSERT_TRUE(unfinished.ok()) << unfinished.status().to_string();
      ASSERT_TRUE((*unfinished)->write({rows[0], "x"}).ok());
    }
    EXPECT_TRUE(fs::is_empty(folder.path()) || !fs::exists(path)) << "not committed";
    auto sink = create_rows(path, type);
    ASSERT_TRUE(sink.ok()) << sink.status().to_string();
    for (const ordered_json& row : rows) ASSERT_TRUE((*sink)->write({row, "x"}).ok());
    const auto committed = (*sink)->commit();
    ASSERT_TRUE(committed.ok()) << committed.to_string();
    EXPECT_EQ(values(path), rows);
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()), 5);
  const auto there = create_rows((folder.path() / "folder").string(), type);
  EXPECT_EQ(there.status().code(), ErrorCode::kInvalidArgument);
}

TEST(RowSource, WritesCsvThatItReads) {
  const std::vector<ordered_json> rows = {{{"a", "x,\"y\"\nz"}, {"b", ""}},
                                          {{"a", ""}, {"b", " padded "}},
                                          {{"a", nullptr}, {"b", "1"}}};
  RowType type;
  for (const ordered_json& row : rows) ASSERT_TRUE(type.add(row).ok());
  const support::TemporaryFolder folder;
  const std::string path = (folder.path() / "a.csv").string();
  auto sink = create_rows(path, type);
  ASSERT_TRUE(sink.ok());
  for (const ordered_json& row : rows) ASSERT_TRUE((*sink)->write({row, "x"}).ok());
  ASSERT_TRUE((*sink)->commit().ok());
  auto expected = rows;
  expected[2]["a"] = "";  // CSV knows no null
  EXPECT_EQ(values(path), expected);
}

TEST(RowType, HoldsWhatWasSeen) {
  RowType type;
  EXPECT_TRUE(type.add(ordered_json::parse(R"({"a": 1, "b": [], "c": null})")).ok());
  EXPECT_TRUE(type.add(ordered_json::parse(R"({"a": 1.5, "b": [{"x": true}], "d": "t"})")).ok());
  EXPECT_EQ(type.to_string(), "object<a: float, b: list<object<x: bool>>, c: null, d: text>");
  EXPECT_EQ(type.add(ordered_json::parse(R"({"b": [{"x": "t"}]})")).message(),
            "'b[].x' is a string here, and bool in rows before");
}

TEST(RowType, LargeIntegersStayExact) {
  const std::vector<ordered_json> rows = {
      {{"id", 5}}, {{"id", UINT64_MAX}}, {{"id", nullptr}}, {{"id", 12345678901234567}}};
  RowType type;
  for (const ordered_json& row : rows) ASSERT_TRUE(type.add(row).ok());
  EXPECT_EQ(type.to_string(), "object<id: unsigned>");
  const support::TemporaryFolder folder;
  for (const char* name : {"a.parquet", "a.arrow", "a.jsonl"}) {
    const std::string path = (folder.path() / name).string();
    auto sink = create_rows(path, type);
    ASSERT_TRUE(sink.ok());
    for (const ordered_json& row : rows) ASSERT_TRUE((*sink)->write({row, "x"}).ok());
    ASSERT_TRUE((*sink)->commit().ok());
    EXPECT_EQ(values(path), rows) << name;
  }
  EXPECT_NE(type.add({{"id", -1}}).message().find("'id' has integers below zero and above"),
            std::string::npos);
  RowType negative;
  ASSERT_TRUE(negative.add({{"id", -1}}).ok());
  EXPECT_FALSE(negative.add({{"id", UINT64_MAX}}).ok());
  RowType number;
  ASSERT_TRUE(number.add({{"id", UINT64_MAX}}).ok());
  ASSERT_TRUE(number.add({{"id", 0.5}}).ok());
  EXPECT_EQ(number.to_string(), "object<id: float>");
}

TEST(RowSource, IntegersBeyond64BitsKeepTheirDigits) {
  const std::string line =
      R"({"a": 12345678901234567890123, "b": [-18446744073709551617], "c": 18446744073709551615})";
  const ordered_json kept = ordered_json::parse(
      R"({"a": "12345678901234567890123", "b": ["-18446744073709551617"], "c": 18446744073709551615})");
  const TempFile lines(line + "\n"), list("[" + line + "]", ".json");
  EXPECT_EQ(values(lines.path()), std::vector<ordered_json>{kept});
  EXPECT_EQ(values(list.path()), std::vector<ordered_json>{kept});
  const TempFile broken("{\"a\": 1.5e20, \"b\": 12345678901234567890.5}\n");
  EXPECT_EQ(values(broken.path())[0]["a"], 1.5e20);
  EXPECT_TRUE(values(broken.path())[0]["b"].is_number_float());
}

TEST(RowSource, AKeyMayNotStandTwiceInAnObject) {
  const TempFile twice("{\"a\": 1}\n{\"a\": 1, \"b\": [{\"c\": 1, \"c\": 2}]}\n");
  EXPECT_EQ(file_complaint(twice.path()),
            twice.path() + ":2: the key 'c' occurs twice in an object");
  const TempFile apart(R"({"a": {"a": 1}, "b": [{"a": 1}, {"a": 2}]})");
  EXPECT_EQ(values(apart.path()).size(), 1u);
}

TEST(RowSource, LinesThatNoNewlineEndsAreNamed) {
  for (const char* extension : {".csv", ".tsv"}) {
    const TempFile old("a\rx\ry\r", extension);
    EXPECT_EQ(file_complaint(old.path()),
              "data file " + old.path() +
                  ": its lines end with a carriage return alone, as on old Macs: convert it first "
                  "(tr '\\r' '\\n')");
  }
  const TempFile quoted("\"a\rb\"\nx\n", ".csv");
  EXPECT_EQ(values(quoted.path()), std::vector<ordered_json>{ordered_json({{"a\rb", "x"}})});
}

TEST(RowSource, UnreadableLinesAreKeptWhereTheyAreAskedFor) {
  const TempFile lines("{\"a\": 1}\n{\"a\"\n5\n{\"a\": \"\\ud800\"}\n{\"a\": 2}\n");
  EXPECT_FALSE(read_all(lines.path()).ok());
  const auto rows = read_all(lines.path(), {.split = {}, .keep_unreadable = true});
  ASSERT_TRUE(rows.ok()) << rows.status().to_string();
  ASSERT_EQ(rows->size(), 5u);
  for (const std::size_t readable : {0, 4}) EXPECT_EQ((*rows)[readable].problem, "");
  for (const std::size_t bad : {1, 2, 3})
    EXPECT_TRUE((*rows)[bad].problem.starts_with((*rows)[bad].where + ": "));
  EXPECT_EQ((*rows)[2].problem, lines.path() + ":3: a row must be an object, it is a number");
  EXPECT_EQ((*rows)[4].value["a"], 2);
}

}  // namespace
}  // namespace rl
