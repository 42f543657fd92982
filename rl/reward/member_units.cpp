#include "rl/reward/member_units.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "rl/reward/latex_looks.h"
#include "rl/reward/latex_text.h"
#include "rl/reward/math_text.h"
#include "rl/reward/number_text.h"
#include "rl/reward/quantity_words.h"

namespace rl {
namespace {

constexpr std::size_t kMembersMax = 16;  // of a list, whose members are compared pair by pair

/// A member as it is written, and its units.
struct MeasuredMember {
  std::string text;
  std::vector<std::string> units;
};

struct MeasuredMembers {
  std::vector<MeasuredMember> all;
  bool in_order = false;

  bool have_units() const {
    return std::ranges::any_of(all, [](const auto& member) { return !member.units.empty(); });
  }
};

/// Without "$" around it, and without the commands that only look.
std::string bare_answer(std::string_view answer) {
  answer = trim(answer);
  if (answer.size() > 2 && answer.front() == '$' && answer.back() == '$' &&
      answer[answer.size() - 2] != '\\')
    answer = trim(answer.substr(1, answer.size() - 2));
  std::string text(answer);
  drop_looks(text);
  return std::string(trim(text));
}

MeasuredMembers measured_members(std::string_view answer) {
  std::string text = bare_answer(answer);
  MeasuredMembers members;
  const bool is_one = split_parts(text, ",").size() == 1 && text.size() > 4;
  if (is_one && text.starts_with("\\{") && text.ends_with("\\}")) {
    text = text.substr(2, text.size() - 4);
  } else if (is_one && (text.front() == '(' || text.front() == '[') &&
             (text.back() == ')' || text.back() == ']')) {
    text = text.substr(1, text.size() - 2);
    members.in_order = true;
  }
  for (const char* joint : {"\\text{ and }", " and ", ";"}) replace_all(text, joint, ",");
  for (std::string& part : split_parts(text, ",")) {
    if (part.empty()) continue;
    std::vector<std::string> units = read_math(part).units;
    members.all.push_back({std::move(part), std::move(units)});
  }
  return members;
}

}  // namespace

bool have_members_of_different_units(std::string_view a, std::string_view b,
                                     const SameValue& same_value) {
  const MeasuredMembers left = measured_members(a), right = measured_members(b);
  const std::size_t count = left.all.size();
  if (count < 2 || count != right.all.size() || count > kMembersMax) return false;
  if (!left.have_units() || !right.have_units()) return false;
  if (left.in_order && right.in_order) {
    for (std::size_t i = 0; i < count; ++i) {
      if (have_different_units(left.all[i].units, right.all[i].units)) return true;
    }
    return false;
  }
  return std::ranges::any_of(left.all, [&](const MeasuredMember& mine) {
    bool has_partner = false;
    for (const MeasuredMember& other : right.all) {
      if (!same_value(mine.text, other.text)) continue;
      if (!have_different_units(mine.units, other.units)) return false;
      has_partner = true;
    }
    return has_partner;
  });
}

}  // namespace rl
