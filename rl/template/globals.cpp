// Names that every template can use: range, dict, namespace, and transformers' raise_exception and
// strftime_now.
#include <array>
#include <cstdio>
#include <ctime>
#include <set>

#include "rl/template/builtins.h"
#include "rl/template/failure.h"

namespace rl {
namespace {

TemplateValue global_range(TemplateEvaluator& evaluator, const CallArguments& arguments) {
  arguments.check("range", {"start", "stop", "step"});
  const std::size_t given = arguments.positional.size();
  if (given == 0) fail_type("range expected at least 1 argument, got 0");
  const std::int64_t start = given > 1 ? arguments.integer(0, "start", 0) : 0;
  const std::int64_t stop = arguments.integer(given > 1 ? 1 : 0, "stop", 0);
  const std::int64_t step = arguments.integer(2, "step", 1);
  if (step == 0) fail_python("ValueError", "range() arg 3 must not be zero");
  constexpr std::size_t kRangeMax = 100'000;  // the sandbox's own limit
  ValueList items;
  for (__int128 i = start; step > 0 ? i < stop : i > stop; i += step) {
    if (items.size() >= kRangeMax)
      fail_python("OverflowError",
                  "Range too big. The sandbox blocks ranges larger than MAX_RANGE (100000).");
    items.emplace_back(static_cast<std::int64_t>(i));
  }
  evaluator.charge(items.size() * sizeof(TemplateValue));
  return TemplateValue::range(std::move(items), {start, stop, step});
}

TemplateValue global_dict(TemplateEvaluator& evaluator, const CallArguments& arguments) {
  DictBox members;
  if (!arguments.positional.empty()) {
    if (!arguments.positional[0].is_dict())
      fail_type("'" + arguments.positional[0].type_name() + "' object is not iterable");
    const std::size_t entries = arguments.positional[0].as_dict().entries().size();
    evaluator.charge(entries * 2 * sizeof(TemplateValue));
    evaluator.charge_steps(static_cast<std::int64_t>(entries));
    members = arguments.positional[0].as_dict();
  }
  for (const auto& [name, value] : arguments.named) members.set_text(name, value);
  return TemplateValue::dict(std::move(members));
}

TemplateValue global_namespace(TemplateEvaluator& evaluator, const CallArguments& arguments) {
  return evaluator.make_namespace(arguments);
}

TemplateValue global_raise_exception(TemplateEvaluator& evaluator, const CallArguments& arguments) {
  fail_python("TemplateError", arguments.text(evaluator.budget(), 0, "message", ""));
}

struct MomentOfRendering {
  std::tm time{};
  int microseconds = 0;
};

// Of "25" in a time that ends in ".25".
int microseconds_of(const char* digits) {
  int value = 0;
  for (int place = 0; place < 6; ++place) {
    value *= 10;
    if (*digits >= '0' && *digits <= '9') value += *digits++ - '0';
  }
  return value;
}

/// The time to render: the variable `now` ("2026-03-05T09:07:00") where it is given, so that a
/// rendering can be repeated; else the clock.
MomentOfRendering current_time(TemplateEvaluator& evaluator) {
  MomentOfRendering moment;
  std::tm& time = moment.time;
  const TemplateValue* now = evaluator.root_variable("now");
  if (now == nullptr || !now->is_string()) {
    std::timespec clock{};
    std::timespec_get(&clock, TIME_UTC);
    localtime_r(&clock.tv_sec, &time);
    moment.microseconds = static_cast<int>(clock.tv_nsec / 1000);
  } else {
    const std::string& text = now->as_string();
    const char* rest = strptime(text.c_str(), "%Y-%m-%d", &time);
    if (rest != nullptr && (*rest == 'T' || *rest == ' ')) {
      const char* with_seconds = strptime(rest + 1, "%H:%M:%S", &time);
      if (with_seconds == nullptr && strptime(rest + 1, "%H:%M", &time) == nullptr) rest = nullptr;
      if (with_seconds != nullptr && *with_seconds == '.')
        moment.microseconds = microseconds_of(with_seconds + 1);
    }
    if (rest == nullptr)
      fail_python("ValueError", "the variable now is no ISO time: '" + text + "'");
    timegm(&time);  // fills in the day of the week and of the year
  }
  // As Python's time without a zone: %Z and %z are empty.
  time.tm_isdst = -1;
  time.tm_zone = "";
  return moment;
}

// Python's own %f; everything else is the C library's, there as here.
std::string with_microseconds(std::string_view format, int microseconds) {
  std::array<char, 16> digits{};
  std::snprintf(digits.data(), digits.size(), "%06d", microseconds);
  std::string out;
  for (std::size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%' || i + 1 == format.size()) {
      out += format[i];
      continue;
    }
    const std::string_view next = format.substr(i + 1);
    if (next.starts_with('f')) {
      out += digits.data();
      ++i;
    } else if (next.starts_with(":z")) {
      i += 2;
    } else {
      out += format.substr(i, 2);
      ++i;
    }
  }
  return out;
}

TemplateValue global_strftime_now(TemplateEvaluator& evaluator, const CallArguments& arguments) {
  std::string format = arguments.text(evaluator.budget(), 0, "format", "");
  if (format.empty()) return TemplateValue(std::string());
  if (format.size() > 1000) fail_limit("strftime_now: a format of more than 1000 bytes");
  const MomentOfRendering moment = current_time(evaluator);
  format = with_microseconds(format, moment.microseconds);
  std::string text(format.size() * 40 + 64,
                   '\0');  // no field is longer than 40 bytes in the C locale
  text.resize(std::strftime(text.data(), text.size(), format.c_str(), &moment.time));
  return text;
}

using Global = TemplateValue (*)(TemplateEvaluator&, const CallArguments&);

}  // namespace

TemplateValue find_global(TemplateEvaluator& evaluator, std::string_view name) {
  constexpr std::pair<std::string_view, Global> kGlobals[] = {
      {"range", global_range},
      {"dict", global_dict},
      {"namespace", global_namespace},
      {"raise_exception", global_raise_exception},
      {"strftime_now", global_strftime_now},
  };
  for (const auto& [known, function] : kGlobals) {
    if (known != name) continue;
    auto box = std::make_shared<CallableBox>();
    box->type_name = "function";
    box->name = std::string(name);
    box->call = [&evaluator, of_name = function](const CallArguments& arguments) {
      return of_name(evaluator, arguments);
    };
    return TemplateValue(TemplateValue::Callable(std::move(box)));
  }
  for (std::string_view missing : {"cycler", "joiner", "lipsum"}) {
    if (name == missing)
      fail_unsupported(evaluator.line(), "the function '" + std::string(name) + "'");
  }
  return TemplateValue::undefined("'" + std::string(name) + "' is undefined");
}

}  // namespace rl
