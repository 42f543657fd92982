#include "rl/run/rl/teachers.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace rl {

using runtime::invalid_argument;
using runtime::Result;

namespace {

constexpr const char* kTeachers = "distillation.teacher_models";
constexpr const char* kOnlyOne =
    "teacher_model";  // of verl's default configuration, which is there next to others, too

std::string key_of(const std::string& name, const char* last) {
  return std::string(kTeachers) + "." + name + "." + last;
}

}  // namespace

Result<std::vector<NamedTeacher>> teachers_from_config(const Config& config) {
  const nlohmann::ordered_json* models = config.find(kTeachers);
  std::vector<std::string> names;
  if (models != nullptr && models->is_object()) {
    for (const auto& [name, teacher] : models->items()) {
      if (teacher.is_object() && name != kOnlyOne) names.push_back(name);
    }
  }
  const Result<std::optional<std::string>> only =
      config.find_string(key_of(kOnlyOne, "model_path"));
  if (!only.ok()) return only.status();
  if (*only && !names.empty()) {
    return invalid_argument(key_of(kOnlyOne, "model_path") + ": " + kOnlyOne +
                            " is the name of a teacher for all rows, and there is '" +
                            names.front() +
                            "' besides: give it another name, and the key of its rows");
  }
  if (names.empty()) names.emplace_back(kOnlyOne);
  std::vector<NamedTeacher> teachers;
  for (const std::string& name : names) {
    NamedTeacher teacher{.name = name, .model_key = key_of(name, "model_path"), .rows = {}};
    const Result<std::optional<std::string>> model = config.find_string(teacher.model_key),
                                             rows = config.find_string(key_of(name, "key"));
    if (!model.ok()) return model.status();
    if (!rows.ok()) return rows.status();
    if (!*model)
      return invalid_argument(teacher.model_key +
                              " is not set: there is no teacher to learn from; name one, or set "
                              "distillation.enabled=false");
    if (names.size() > 1) {
      teacher.rows = rows->value_or("");
      if (teacher.rows.empty())
        return invalid_argument(key_of(name, "key") +
                                " is not set: of several teachers each needs to be told its rows, "
                                "by what their column distillation.teacher_key has");
      const auto same =
          std::find_if(teachers.begin(), teachers.end(),
                       [&](const NamedTeacher& other) { return other.rows == teacher.rows; });
      if (same != teachers.end())
        return invalid_argument(key_of(name, "key") + ": '" + teacher.rows + "' is the key of " +
                                same->name + " already");
    }
    teachers.push_back(std::move(teacher));
  }
  return teachers;
}

}  // namespace rl
