#include "rl/data/python_sampler.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "rl/data/json_text.h"
#include "rl/data/python_child.h"
#include "rl/data/python_programs.h"
#include "runtime/core/json.h"
#include "runtime/core/log.h"

namespace rl {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;
using runtime::Result;
using runtime::Status;

constexpr const char* kSamplerKind = "sampler";

// A row as classes see it: verl's names.
ordered_json row_json(const DataRow& row) {
  ordered_json told{{"prompt", row.prompt},
                    {"data_source", row.data_source},
                    {"reward_model",
                     {{"ground_truth", text_as_json(row.ground_truth, row.ground_truth_is_json)}}},
                    {"extra_info", row.extra}};
  if (row.difficulty) told["difficulty"] = *row.difficulty;
  return told;
}

class PythonOrder : public RowOrder {
 public:
  PythonOrder(std::string who, PythonChild child, std::int64_t rows)
      : who_(std::move(who)), child_(std::move(child)), rows_(rows) {}

  // What the process says next.
  Result<json> hear() {
    const std::optional<std::string_view> line = child_.line();
    if (!line)
      return runtime::invalid_argument(
          who_ + ": the process that says which rows come has ended; what it printed is above");
    json answer = runtime::parse_json(*line);
    if (!answer.is_object())
      return runtime::invalid_argument(who_ + ": the answer is not a JSON object");
    if (answer.contains("error") && answer["error"].is_string())
      return runtime::invalid_argument(who_ + ": " + answer["error"].get<std::string>());
    return answer;
  }

  bool tell(const std::string& line) { return child_.send(line); }

  Result<std::vector<std::int64_t>> next(std::int64_t batch) override {
    Result<json> answer = ask({{"next", {batch}}});
    if (!answer.ok()) return answer.status();
    epoch_ = (*answer)["epoch"].get<std::int64_t>();
    offset_ = (*answer)["offset"].get<std::int64_t>();
    state_ = (*answer)["state"];
    return (*answer)["rows"].get<std::vector<std::int64_t>>();
  }

  std::int64_t epoch() const override { return std::max<std::int64_t>(epoch_, 0); }

  Status learn(std::span<const RowOutcome> outcomes) override {
    json list = json::array();
    for (const RowOutcome& outcome : outcomes)
      list.push_back({outcome.row, outcome.score, outcome.response_tokens});
    Result<json> answer = ask({{"update", {std::move(list)}}});
    if (!answer.ok()) return answer.status();
    state_ = (*answer)["state"];
    return {};
  }

  json position() const override {
    return {{"order", kSamplerKind},
            {"rows", rows_},
            {"epoch", epoch_},
            {"offset", offset_},
            {"state", state_}};
  }

  Status resume(const json& position) override {
    const auto number = [&](const char* key) {
      return position.contains(key) && position[key].is_number_integer()
                 ? position[key].get<std::int64_t>()
                 : -2;
    };
    if (!position.is_object() || position.value("order", json()) != kSamplerKind ||
        number("epoch") < -1 || number("offset") < 0) {
      return runtime::invalid_argument(
          "the position in the data is not one of data.sampler: was the checkpoint made without "
          "it?");
    }
    if (number("rows") != rows_)
      return runtime::invalid_argument("the position in the data is of " +
                                       std::to_string(number("rows")) + " rows, and there are " +
                                       std::to_string(rows_));
    if (number("epoch") < 0) return {};
    const json state = position.value("state", json());
    const Result<json> answer = ask({{"resume", {number("epoch"), number("offset"), state}}});
    if (!answer.ok()) return answer.status();
    if (!answer->value("replays_updates", true))
      LOG(warn,
          "{}: it continues at its position, but without its earlier update() calls; define its "
          "state_dict() and load_state_dict() to keep them",
          who_);
    epoch_ = number("epoch");
    offset_ = number("offset");
    state_ = state;
    return {};
  }

 private:
  Result<json> ask(const json& request) {
    if (!tell(request.dump())) {
      const Result<json> last = hear();
      return last.ok() ? Result<json>(runtime::invalid_argument(
                             who_ + ": the process that says which rows come has ended"))
                       : last;
    }
    return hear();
  }

  std::string who_;
  PythonChild child_;
  std::int64_t rows_;
  std::int64_t epoch_ = -1;
  std::int64_t offset_ = 0;  // rows of the epoch that were given
  json state_;
};

}  // namespace

Result<PythonSampler> PythonSampler::from_config(const Config& config) {
  ConfigReader read(config);
  PythonSampler sampler;
  sampler.path = read.find_string("data.sampler.class_path").value_or("");
  sampler.name = read.find_string("data.sampler.class_name").value_or("");
  if (!read.status().ok()) return read.status();
  if (!sampler.path.empty() && sampler.name.empty())
    return config.out_of_range("data.sampler.class_name",
                               "the name of a class in data.sampler.class_path");
  const nlohmann::ordered_json* data = config.find("data");
  sampler.config = data == nullptr ? ordered_json::object() : *data;
  return sampler;
}

Result<std::unique_ptr<RowOrder>> make_python_order(const Dataset& dataset,
                                                    const PythonSampler& sampler) {
  std::error_code error;
  if (!sampler.path.starts_with("pkg://") && !std::filesystem::is_regular_file(sampler.path, error))
    return runtime::not_found("data.sampler.class_path: there is no file " + sampler.path);
  const ordered_json setup{{"path", sampler.path},
                           {"name", sampler.name},
                           {"config", sampler.config},
                           {"rows", dataset.size()}};
  Result<PythonChild> child = PythonChild::start(kSamplerProgram, setup, "data.sampler.class_path");
  if (!child.ok()) return child.status();
  auto order = std::make_unique<PythonOrder>(sampler.path + ": " + sampler.name + " (data.sampler)",
                                             std::move(*child), dataset.size());
  for (std::int64_t i = 0; i < dataset.size(); ++i) {
    const Result<DataRow> row = dataset.read(i);
    if (!row.ok()) return row.status();
    if (!order->tell(row_json(*row).dump(-1, ' ', false, ordered_json::error_handler_t::replace)))
      break;  // hear() says why
  }
  const Result<json> ready = order->hear();
  if (!ready.ok()) return ready.status();
  return std::unique_ptr<RowOrder>(std::move(order));
}

}  // namespace rl
