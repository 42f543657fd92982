#include "rl/metrics/prometheus_sink.h"

#include <cmath>
#include <cstdio>

#include "rl/weights/atomic_file.h"

namespace rl {
namespace {

std::string label(const std::string& name, const std::string& value) {
  std::string text = name + "=\"";
  for (const char c : value) {
    if (c == '\n')
      text += "\\n";
    else if (c == '"' || c == '\\')
      text += std::string("\\") + c;
    else
      text += c;
  }
  return text + "\"";
}

std::string prometheus_number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  char text[40];
  std::snprintf(text, sizeof text, "%.17g", value);
  return text;
}

}  // namespace

PrometheusSink::PrometheusSink(std::filesystem::path file, const std::string& project,
                               const std::string& experiment)
    : file_(std::move(file)),
      labels_(label("project", project) + "," + label("experiment", experiment)) {}

runtime::Status PrometheusSink::write(const StepRecord& record) {
  std::string text =
      "# HELP starling_train_step Steps done.\n# TYPE starling_train_step "
      "gauge\nstarling_train_step{" +
      labels_ + "} " + std::to_string(record.step) +
      "\n# HELP starling_train Metrics of the last step.\n# TYPE starling_train gauge\n";
  for (const auto& [name, value] : record.metrics)
    text += "starling_train{" + label("name", name) + "," + labels_ + "} " +
            prometheus_number(value) + "\n";
  return write_file_atomically(file_, text);
}

}  // namespace rl
