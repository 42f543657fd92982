#include "rl/app/data.h"

#include <unistd.h>

#include <CLI/CLI.hpp>

#include <cstdio>
#include <functional>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "rl/app/command_line.h"
#include "rl/app/progress_line.h"
#include "rl/data/dataset.h"
#include "rl/data/json_text.h"
#include "rl/data/row_source.h"
#include "rl/data/row_stats.h"
#include "rl/data/row_type.h"
#include "rl/tokenizer/tokenizer.h"
#include "runtime/core/printable_text.h"

namespace rl {
namespace {

using nlohmann::ordered_json;
using runtime::Result;
using runtime::Status;

constexpr std::size_t kShownBytesMax = 400;  // of a value, where people read

/// What the three have in common.
struct Input {
  std::string file;
  std::string split;

  void add_to(CLI::App& app) {
    app.add_option("file", file,
                   "Parquet, JSON lines, a JSON list, CSV, TSV, Arrow, or a folder of save_to_disk")
        ->required()
        ->type_name("FILE");
    app.add_option("--split", split, "of a folder with several splits")->type_name("NAME");
  }
};

/// Calls `use` with each row until it says false. Shows how far it is where that takes long.
Status for_each_row(const Input& input, const std::function<Result<bool>(const RawRow&)>& use) {
  const auto source = open_rows(input.file, {.split = input.split});
  if (!source.ok()) return source.status();
  ProgressLine progress;
  std::int64_t rows = 0;
  while (true) {
    const auto block = (*source)->next();
    if (!block.ok()) return block.status();
    if (block->empty()) return {};
    for (const RawRow& row : *block) {
      const Result<bool> go_on = use(row);
      if (!go_on.ok()) return go_on.status();
      if (!*go_on) return {};
    }
    rows += static_cast<std::int64_t>(block->size());
    progress.show(std::to_string(rows) + " rows of " + input.file);
  }
}

// Cut where a character begins.
std::string shortened(std::string text) {
  if (text.size() <= kShownBytesMax) return text;
  std::size_t end = kShownBytesMax;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end) + "... (" + std::to_string(text.size()) + " bytes)";
}

// A chat is a message a line, so that two responses to a prompt can be read below each other;
// anything else as JSON.
std::string value_text(const ordered_json& value) {
  const auto text_of = [](const ordered_json& message, const char* role,
                          const char* content) -> std::optional<std::string> {
    if (!message.is_object() || !message.contains(role) || !message.contains(content))
      return std::nullopt;
    if (!message.at(role).is_string() || !message.at(content).is_string()) return std::nullopt;
    return message.at(role).get<std::string>() + ": " + shortened(json_line(message.at(content)));
  };
  std::string lines;
  if (value.is_array()) {
    for (const ordered_json& message : value) {
      auto line = text_of(message, "role", "content");
      if (!line) line = text_of(message, "from", "value");
      if (!line) return " " + shortened(json_line(value));
      lines += "\n    " + *line;
    }
  }
  return lines.empty() ? " " + shortened(json_line(value)) : lines;
}

int head(int argc, char** argv) {
  CLI::App app("Shows the first rows of a file.", "starling data head");
  Input input;
  std::int64_t count = 3;
  bool json = false;
  input.add_to(app);
  app.add_option("-n", count, "how many rows")->check(whole_number_from(1))->capture_default_str();
  app.add_flag("--json", json, "a JSON object a line, in full");
  if (const std::optional<int> exit = parse_command_line(app, argc, argv)) return *exit;
  std::int64_t shown = 0;
  const Status status = for_each_row(input, [&](const RawRow& row) -> Result<bool> {
    if (json) {
      std::cout << json_line(row.value) << "\n";
    } else {
      std::cout << row.where << "\n";
      for (const auto& [name, value] : row.value.items())
        std::cout << "  " << runtime::terminal_text(STDOUT_FILENO, name + ":" + value_text(value))
                  << "\n";
    }
    return ++shown < count;
  });
  if (!status.ok()) return fail(status);
  if (shown == 0) std::cerr << input.file << " has no rows\n";
  return 0;
}

std::string spread_text(const ordered_json& spread) {
  char text[160];
  std::snprintf(text, sizeof text,
                "%lld to %lld, mean %.1f, median %lld, 90%% up to %lld, 99%% up to %lld",
                spread["min"].get<long long>(), spread["max"].get<long long>(),
                spread["mean"].get<double>(), spread["median"].get<long long>(),
                spread["p90"].get<long long>(), spread["p99"].get<long long>());
  return text;
}

void print_stats(const ordered_json& stats) {
  std::cout << stats["rows"] << " rows\n";
  if (stats.contains("pairs"))
    std::cout << stats["pairs"]["count"] << " pairs of chosen and rejected, "
              << stats["pairs"]["equal"] << " of them equal\n";
  for (const ordered_json& column : stats["columns"]) {
    std::cout << "\n"
              << column["name"].get<std::string>() << ": " << column["type"].get<std::string>();
    if (column["missing"] != 0) std::cout << ", missing in " << column["missing"];
    std::cout << "\n";
    if (column.contains("mixed")) std::cout << "  " << column["mixed"].get<std::string>() << "\n";
    for (const char* measure : {"characters", "tokens", "elements"}) {
      if (column.contains(measure))
        std::cout << "  " << measure << ": " << spread_text(column[measure]) << "\n";
    }
    if (!column.contains("values")) continue;
    for (const auto& [value, count] : column["values"].items())
      std::cout << "  " << json_line(value) << ": " << count << "\n";
  }
}

int stats(int argc, char** argv) {
  CLI::App app(
      "Counts a file's rows and describes its columns: types, missing values, lengths, and which "
      "texts there are where there are few.",
      "starling data stats");
  Input input;
  std::string model;
  bool json = false;
  input.add_to(app);
  app.add_option(
         "--tokenizer", model,
         "measure texts in tokens too: a model folder, tokenizer.json, .model or .gguf file")
      ->type_name("MODEL");
  app.add_flag("--json", json, "print JSON");
  if (const std::optional<int> exit = parse_command_line(app, argc, argv)) return *exit;
  RowStats::CountTokens count_tokens;
  if (!model.empty()) {
    Result<Tokenizer> tokenizer = Tokenizer::load(model);
    if (!tokenizer.ok()) return fail(tokenizer.status());
    count_tokens = [tokenizer = std::move(*tokenizer)](std::string_view text) {
      const auto ids = tokenizer.encode(text, /*add_special_tokens=*/false);
      return ids.ok() ? static_cast<std::int64_t>(ids->size())
                      : 0;  // text that no tokenizer takes counts as none
    };
  }
  RowStats counted(std::move(count_tokens));
  const Status status = for_each_row(input, [&](const RawRow& row) -> Result<bool> {
    counted.add(row.value);
    return true;
  });
  if (!status.ok()) return fail(status);
  if (json)
    std::cout << counted.to_json().dump(2, ' ', false, ordered_json::error_handler_t::replace)
              << "\n";
  else
    print_stats(counted.to_json());
  return 0;
}

// The row in verl's form.
ordered_json verl_row(const DataRow& row) {
  ordered_json truth = text_as_json(row.ground_truth, row.ground_truth_is_json);
  if (!row.answerless.empty()) truth = nullptr;
  ordered_json value = {{"data_source", row.data_source},
                        {"prompt", row.prompt},
                        {"reward_model", {{"style", "rule"}, {"ground_truth", std::move(truth)}}}};
  if (row.response) value["response"] = *row.response;
  if (!row.extra.is_null()) value["extra_info"] = row.extra;
  return value;
}

/// Runs over the rows that are to be written, as often as it is called.
using Rows = std::function<Status(const std::function<Result<bool>(const RawRow&)>&)>;

Result<Rows> mapped_rows(const Input& input, const std::vector<std::string>& overrides) {
  ConfigSources sources;
  sources.overrides = overrides;
  for (const std::string& key : overrides) {
    if (!key.starts_with("data."))
      return runtime::invalid_argument(
          "'" + key + "': only keys that begin with data. say how rows are mapped");
  }
  const Result<Config> config = Config::load(sources);
  if (!config.ok()) return config.status();
  const Result<RowMapping> mapping = RowMapping::from_config(*config);
  if (!mapping.ok()) return mapping.status();
  DatasetOptions options;
  options.files = {input.file};
  options.split = input.split;
  options.mapping = *mapping;
  Result<Dataset> rows = Dataset::load(options);
  if (!rows.ok()) return rows.status();
  return Rows(
      [rows = std::move(*rows)](const std::function<Result<bool>(const RawRow&)>& use) -> Status {
        for (const DataRow& row : rows.rows()) {
          const Result<bool> go_on = use({.value = verl_row(row), .where = row.where});
          if (!go_on.ok()) return go_on.status();
          if (!*go_on) break;
        }
        return {};
      });
}

// Twice over the rows: Parquet and its like want to know the type of them all first.
Result<std::int64_t> write_rows(const Rows& rows, const std::string& out, std::int64_t most) {
  RowType type;
  std::int64_t count = 0;
  Status status = rows([&](const RawRow& row) -> Result<bool> {
    if (const Status added = type.add(row.value); !added.ok()) return added.with_context(row.where);
    return ++count != most;
  });
  if (!status.ok()) return status;
  if (count == 0) return runtime::invalid_argument("there are no rows to write");
  const auto sink = create_rows(out, type);
  if (!sink.ok()) return sink.status();
  std::int64_t written = 0;
  status = rows([&](const RawRow& row) -> Result<bool> {
    if (const Status one = (*sink)->write(row); !one.ok()) return one;
    return ++written != most;
  });
  if (status.ok()) status = (*sink)->commit();
  if (!status.ok()) return status;
  return written;
}

int convert(int argc, char** argv) {
  CLI::App app(
      "Writes the rows of a file in another form. The extension of OUT says which: .parquet, "
      ".jsonl, .json, .csv, .tsv or .arrow; without one it is a folder, as save_to_disk writes it.",
      "starling data convert");
  app.footer(
      "Without keys the rows stay as they are. With keys they are read as training would read "
      "them, and written in verl's form:\n"
      "  starling data convert gsm8k.jsonl gsm8k.parquet data.prompt_template=\"'Question: "
      "{question}\\nAnswer:'\" data.answer_after=\"'####'\"\n"
      "  starling data convert oasst1.parquet chats.jsonl data.conversations=tree");
  Input input;
  std::string out;
  std::int64_t most = -1;
  std::vector<std::string> overrides;
  input.add_to(app);
  app.add_option("out", out, "the file or folder to write")->required()->type_name("OUT");
  app.add_option("overrides", overrides, "data.* keys that map columns, as in starling train")
      ->type_name("KEY=VALUE");
  app.add_option("-n", most, "only the first N rows")->check(whole_number_from(1));
  if (const std::optional<int> exit = parse_command_line(app, argc, argv)) return *exit;
  Rows rows = [&input](const std::function<Result<bool>(const RawRow&)>& use) {
    return for_each_row(input, use);
  };
  if (!overrides.empty()) {
    Result<Rows> mapped = mapped_rows(input, overrides);
    if (!mapped.ok()) return fail(mapped.status());
    rows = std::move(*mapped);
  }
  const Result<std::int64_t> written = write_rows(rows, out, most);
  if (!written.ok()) return fail(written.status());
  std::cout << out << ": " << *written << " rows\n";
  return 0;
}

constexpr const char* kUsage =
    "usage: starling data head|stats|convert ...\n"
    "  head FILE            the first rows\n"
    "  stats FILE           how many rows, and what the columns are like\n"
    "  convert FILE OUT     another form, columns mapped\n"
    "`starling data COMMAND --help` explains each\n";

}  // namespace

int data_command(int argc, char** argv) {
  const std::string_view name = argc < 2 ? "" : argv[1];
  if (name == "head") return head(argc - 1, argv + 1);
  if (name == "stats") return stats(argc - 1, argv + 1);
  if (name == "convert") return convert(argc - 1, argv + 1);
  const bool help = name == "--help" || name == "-h";
  if (!help && !name.empty()) std::cerr << "error: no command 'data " << name << "'\n";
  (help ? std::cout : std::cerr) << kUsage;
  return help ? 0 : 2;
}

}  // namespace rl
