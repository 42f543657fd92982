#include "rl/data/python_sampler.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "rl/data/python_child.h"
#include "runtime/core/json.h"
#include "runtime/core/log.h"

namespace rl {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;
using runtime::Result;
using runtime::Status;

constexpr const char* kSamplerKind = "sampler";

// The rows come first, one a line, then requests, each with one answer.
constexpr const char* kSamplerProgram = R"python(
import itertools, types


class AbstractSampler:
    def __init__(self, data_source, data_config):
        pass


class AbstractCurriculumSampler(AbstractSampler):
    def update(self, batch):
        pass


class DataProto:
    """A step's samples, as far as they are told of."""
    def __init__(self, scores, rows, lengths):
        try:
            import torch
            column = torch.tensor(scores, dtype=torch.float32).unsqueeze(1)
        except ImportError:
            column = [[score] for score in scores]
        try:
            import numpy
            array = numpy.array
        except ImportError:
            array = list
        self.batch = {"token_level_scores": column, "token_level_rewards": column}
        self.non_tensor_batch = {"index": array(rows), "score": array(scores), "response_length": array(lengths)}
        self.meta_info = {}

    def __len__(self):
        return len(self.non_tensor_batch["index"])


def stand_in_for_verl():
    if importlib.util.find_spec("verl") is not None:
        return
    samplers = {"AbstractSampler": AbstractSampler, "AbstractCurriculumSampler": AbstractCurriculumSampler}
    for name, contents in {"verl": {"DataProto": DataProto}, "verl.protocol": {"DataProto": DataProto}, "verl.experimental": {}, "verl.experimental.dataset": {},
                           "verl.experimental.dataset.sampler": samplers}.items():
        module = types.ModuleType(name)
        module.__path__ = []  # a package, so that what is not here is a ModuleNotFoundError by its name
        vars(module).update(contents)
        sys.modules[name] = module
        parent, _, child = name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], child, module)


class Order:
    def __init__(self, sampler, rows):
        self.sampler, self.rows = sampler, rows
        self.numbers, self.epoch, self.offset = None, -1, 0

    def take(self, count):
        if self.numbers is None:
            self.numbers, self.epoch, self.offset = iter(self.sampler), self.epoch + 1, 0
        taken = [int(number) for number in itertools.islice(self.numbers, count)]
        for number in taken:
            if not 0 <= number < self.rows:
                raise LookupError(f"the sampler gave row {number}, and there are {self.rows}")
        self.offset += len(taken)
        return taken

    def next(self, count):
        fresh = self.numbers is None
        taken = self.take(count)
        if len(taken) < count and not fresh:  # what is left over fills no batch
            self.numbers = None
            taken = self.take(count)
        if len(taken) < count:
            raise LookupError(f"an epoch of the sampler has {len(taken)} rows, which is no batch of {count}")
        return {"rows": taken, "epoch": self.epoch, "offset": self.offset, "state": self.state()}

    def state(self):
        if not hasattr(self.sampler, "state_dict") or not hasattr(self.sampler, "load_state_dict"):
            return None
        return plain(self.sampler.state_dict())

    def update(self, outcomes):
        if hasattr(self.sampler, "update"):
            rows, scores, lengths = zip(*outcomes) if outcomes else ((), (), ())
            self.sampler.update(DataProto(list(scores), list(rows), list(lengths)))
        return {"state": self.state()}

    def resume(self, epoch, offset, state):
        for _ in range(epoch):
            for _ in iter(self.sampler):
                pass
        self.epoch, self.numbers = epoch - 1, None
        if epoch >= 0:
            self.take(offset)
        if state is not None and hasattr(self.sampler, "load_state_dict"):
            self.sampler.load_state_dict(state)
        return {"replays_updates": not hasattr(self.sampler, "update") or state is not None}


def main():
    setup = json.loads(sys.argv[1])
    requests = open(0, encoding="utf-8", newline="\n", closefd=False)
    rows = [json.loads(requests.readline()) for _ in range(setup["rows"])]
    stand_in_for_verl()
    sampler = load_class(setup["path"], setup["name"])(data_source=rows, data_config=config_of(setup["config"]))
    order = Order(sampler, len(rows))
    told.write('{"ready": true}\n')
    told.flush()
    for line in requests:
        request = json.loads(line)
        answer = order.next(*request["next"]) if "next" in request else order.update(*request["update"]) if "update" in request else order.resume(*request["resume"])
        told.write(json.dumps(answer) + "\n")
        told.flush()


try:
    main()
except BaseException as error:
    told.write(json.dumps({"error": reasons(error)}) + "\n")
told.flush()
)python";

// A row as classes see it: verl's names.
ordered_json row_json(const DataRow& row) {
  ordered_json told{{"prompt", row.prompt},
                    {"data_source", row.data_source},
                    {"reward_model", {{"ground_truth", row.ground_truth}}},
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
      return runtime::invalid_argument(who_ + ": the answer is no JSON object");
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
          "{}: it goes on where its order was, without what update() had told it before; give it "
          "state_dict() and load_state_dict() to keep that",
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
