#include "rl/reward/math_answer.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <set>
#include <utility>
#include <vector>

#include "rl/reward/answer_name.h"
#include "rl/reward/characters.h"
#include "rl/reward/decimal_comma.h"
#include "rl/reward/expression.h"
#include "rl/reward/interval_union.h"
#include "rl/reward/latex_text.h"
#include "rl/reward/math_relation.h"
#include "rl/reward/math_text.h"
#include "rl/reward/member_units.h"
#include "rl/reward/number_text.h"
#include "rl/reward/numeric_value.h"
#include "rl/reward/quantity_words.h"
#include "rl/reward/set_notation.h"
#include "rl/reward/thousands.h"
#include "rl/reward/unicode_text.h"
#include "rl/reward/written_number.h"

namespace rl {
namespace {

constexpr int kAnswerDepthMax = 8;     // tuples in sets in unions
constexpr std::size_t kPartsMax = 64;  // of an unordered list, which is compared pair by pair
constexpr std::size_t kAnswerBytesMax = 2000;  // longer answers are compared as they stand

/// "1/3 \approx 0.33" is 1/3; "x \approx 11" is all that there is.
std::string without_approximation(const std::string& text) {
  const std::vector<std::string> sides = split_parts(text, "\\approx");
  if (sides.size() < 2 || sides.front().empty()) return text;
  return is_answer_name(sides.front()) ? sides[1] : sides.front();
}

/// An answer in plain form. "1,234" may still be two members.
std::string stated_form(std::string_view answer) {
  std::string text = plain_math(answer);
  if (text.starts_with("\\boxed")) text = plain_math(last_boxed(text).value_or(text));
  return with_round_brackets(without_approximation(text));
}

/// The same without "x =" before it.
std::string answer_form(std::string_view answer) {
  const std::string text = stated_form(answer), named = named_value(text).value_or(text);
  const std::string value = condition_of_set(named).value_or(named);
  return value == "\\{\\}" || value == "\\{ \\}" || value == "\\varnothing" ? "\\emptyset" : value;
}

bool same(const std::string& a, const std::string& b, int depth);

bool same_in_order(const std::vector<std::string>& a, const std::vector<std::string>& b,
                   int depth) {
  return a.size() == b.size() &&
         std::equal(a.begin(), a.end(), b.begin(),
                    [depth](const auto& x, const auto& y) { return same(x, y, depth + 1); });
}

bool same_in_any_order(const std::vector<std::string>& a, std::vector<std::string> b, int depth) {
  if (a.size() != b.size() || a.size() > kPartsMax) return false;
  for (const std::string& part : a) {
    const auto found = std::find_if(
        b.begin(), b.end(), [&](const std::string& other) { return same(part, other, depth + 1); });
    if (found == b.end()) return false;
    b.erase(found);
  }
  return true;
}

/// A set has the same members however often each is named.
bool are_all_among(const std::vector<std::string>& some, const std::vector<std::string>& all,
                   int depth) {
  if (some.size() > kPartsMax || all.size() > kPartsMax) return false;
  return std::all_of(some.begin(), some.end(), [&](const std::string& part) {
    return std::any_of(all.begin(), all.end(),
                       [&](const std::string& other) { return same(part, other, depth + 1); });
  });
}

struct Bracketed {
  std::string open, close, inside;
};

/// "(a, b]" or "\{a, b\}" when the brackets enclose all of it.
std::optional<Bracketed> bracketed(const std::string& text) {
  const bool set = text.starts_with("\\{") && text.ends_with("\\}") && text.size() >= 4;
  const std::size_t skip = set ? 1 : 0;
  if (text.size() < 2 || std::string_view("([{").find(text[skip]) == std::string_view::npos ||
      std::string_view(")]}").find(text.back()) == std::string_view::npos)
    return std::nullopt;
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (std::string_view("([{").find(text[i]) != std::string_view::npos) ++depth;
    if (std::string_view(")]}").find(text[i]) != std::string_view::npos && --depth == 0 &&
        i + 1 < text.size())
      return std::nullopt;
  }
  if (depth != 0) return std::nullopt;
  if (set) return Bracketed{"{", "}", text.substr(2, text.size() - 4)};
  return Bracketed{text.substr(0, 1), text.substr(text.size() - 1),
                   text.substr(1, text.size() - 2)};
}

struct Matrix {
  bool is_determinant = false;
  std::vector<std::string> rows;
};

/// \begin{pmatrix} a & b \\ c & d \end{pmatrix}.
std::optional<Matrix> matrix_of(const std::string& text) {
  for (const std::string_view kind :
       {"pmatrix", "bmatrix", "matrix", "Bmatrix", "smallmatrix", "array", "vmatrix"}) {
    const std::string begin = "\\begin{" + std::string(kind) + "}",
                      end = "\\end{" + std::string(kind) + "}";
    if (!text.starts_with(begin) || !text.ends_with(end)) continue;
    std::vector<std::string> rows = split_parts(
        std::string_view(text).substr(begin.size(), text.size() - begin.size() - end.size()), "\n");
    while (rows.size() > 1 && rows.back().empty()) rows.pop_back();
    return Matrix{kind == "vmatrix", std::move(rows)};
  }
  return std::nullopt;
}

bool same_matrix(const Matrix& a, const Matrix& b, int depth) {
  return a.is_determinant == b.is_determinant && a.rows.size() == b.rows.size() &&
         std::equal(a.rows.begin(), a.rows.end(), b.rows.begin(),
                    [depth](const auto& x, const auto& y) {
                      return same_in_order(split_parts(x, "&"), split_parts(y, "&"), depth);
                    });
}

/// "\pm 2" and "1 \pm \sqrt 2" as both; a sign within brackets is a member's.
std::optional<std::vector<std::string>> both_signs(const std::string& text) {
  const std::size_t at = text.find("\\pm");
  if (at == text.npos || text.find("\\pm", at + 1) != text.npos || text.starts_with("\\{"))
    return std::nullopt;
  return std::vector<std::string>{text.substr(0, at) + "+" + text.substr(at + 3),
                                  text.substr(0, at) + "-" + text.substr(at + 3)};
}

/// "000" behind a comma, which is no number, but a group of one.
bool is_loose_group(std::string_view part) {
  return part.size() == 3 && part.front() == '0' && std::all_of(part.begin(), part.end(), is_digit);
}

std::vector<std::string> members(const std::string& text) {
  std::vector<std::string> all;
  for (const std::string& part : split_parts(text, ",")) {
    if (const auto signs = both_signs(part)) {
      all.insert(all.end(), signs->begin(), signs->end());
    } else if (!all.empty() && is_loose_group(part)) {
      all.push_back("," + part);  // equals itself alone
    } else {
      all.push_back(part);
    }
  }
  return all;
}

std::string without_blanks_between_symbols(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool blank = std::isspace(static_cast<unsigned char>(text[i])) != 0;
    // "1 0" is not 10.
    if (!blank || (i > 0 && i + 1 < text.size() && is_digit(text[i - 1]) && is_digit(text[i + 1])))
      out += text[i];
  }
  return out;
}

bool same_text(std::string_view a, std::string_view b) {
  if (a == b) return true;
  // Case matters for variables, not for words.
  const bool words = a.size() > 1 && std::all_of(a.begin(), a.end(),
                                                 [](char c) { return is_letter(c) || c == ' '; });
  std::string left = without_blanks_between_symbols(a), right = without_blanks_between_symbols(b);
  if (words) {
    for (std::string* text : {&left, &right})
      std::transform(text->begin(), text->end(), text->begin(),
                     [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  }
  return left == right;
}

/// What is before each "=" in a list of equations, empty where there is no name.
struct NamedMembers {
  std::vector<std::string> names, values;

  explicit NamedMembers(const std::vector<std::string>& list) {
    for (const std::string& member : list) {
      const auto value = named_value(member);
      names.push_back(value ? relation_chain(member).sides.front() : std::string());
      values.push_back(value.value_or(member));
    }
  }
  bool any() const {
    return std::any_of(names.begin(), names.end(), [](const auto& name) { return !name.empty(); });
  }
  /// "x = 1, y = 2", not "x = 1, x = 2" nor "x_1 = 1, x_2 = 2".
  bool are_several() const {
    std::set<std::string> different;
    for (const std::string& name : names) different.insert(without_index(name));
    different.erase("");
    return different.size() > 1;
  }
};

/// Lists without brackets. One whose members have their own names is in order.
bool same_lists(const std::vector<std::string>& a, const std::vector<std::string>& b, int depth) {
  const NamedMembers left(a), right(b);
  if (left.any() && right.any()) return same_in_any_order(a, b, depth);
  if (left.are_several() || right.are_several())
    return same_in_order(left.values, right.values, depth);
  return same_in_any_order(left.values, right.values, depth);
}

/// The members of a set, or of a tuple where the other side names what each is.
std::vector<std::string> listed_in(const std::vector<std::string>& list,
                                   const NamedMembers& other) {
  if (list.size() != 1) return list;
  const auto brackets = bracketed(list.front());
  if (!brackets) return list;
  if (brackets->open == "{" || (brackets->open == "(" && other.are_several()))
    return members(brackets->inside);
  return list;
}

bool same_brackets(const Bracketed& a, const Bracketed& b, int depth) {
  const auto left = members(a.inside), right = members(b.inside);
  if (a.open == "{" && b.open == "{")
    return are_all_among(left, right, depth) && are_all_among(right, left, depth);
  if (left.size() < 2 && right.size() < 2)
    return same(a.inside, b.inside, depth + 1);  // (C) and (5): grouping
  return a.open == b.open && a.close == b.close && same_in_order(left, right, depth);
}

/// The left side less the right.
std::optional<Quotient> difference_of(const RelationChain& chain) {
  if (chain.sides.size() != 2) return std::nullopt;
  const auto left = read_expression(chain.sides[0]), right = read_expression(chain.sides[1]);
  const auto minus = right ? negate(*right) : std::nullopt;
  return left && minus ? add(*left, *minus) : std::nullopt;
}

/// 2x + 4y = 6 and y = (3 - x) / 2; -x > 1 and x < -1.
bool same_up_to_factor(const RelationChain& a, const RelationChain& b) {
  const auto left = difference_of(a), right = difference_of(b);
  const auto factor = left && right ? ratio_of(*left, *right) : std::nullopt;
  if (!factor) return false;
  return a.relations == (factor->numerator < 0 ? flipped(b.relations) : b.relations);
}

bool same_chain(const RelationChain& a, const RelationChain& b, int depth) {
  const auto in_order = [depth](const RelationChain& x, const RelationChain& y) {
    return x.relations == y.relations && same_in_order(x.sides, y.sides, depth);
  };
  return in_order(a, b) || in_order(a, b.reversed()) || same_up_to_factor(a, b);
}

/// "m + n" in an answer "m + n = 113": what was asked for. A ground truth of that form is an
/// equation.
bool is_sum_of_names(const std::string& text) {
  std::string names = text;
  std::replace_if(
      names.begin(), names.end(), [](char c) { return c == '+' || c == '-'; }, ' ');
  return is_answer_name(names);
}

/// "2 + 3 = 5" for 5.
bool equals_throughout(const RelationChain& chain, const std::string& value, int depth) {
  return std::all_of(chain.relations.begin(), chain.relations.end(),
                     [](Relation relation) { return relation == Relation::kEqual; }) &&
         std::all_of(chain.sides.begin(), chain.sides.end(),
                     [&](const std::string& side) { return same(side, value, depth + 1); });
}

/// Equations and inequalities; a bound of a name may stand for its interval, an equation with a
/// name before it for its value.
bool same_relations(const RelationChain& a, const RelationChain& b, int depth) {
  if (!a.relations.empty() && !b.relations.empty()) return same_chain(a, b, depth);
  const RelationChain& chain = a.relations.empty() ? b : a;
  const std::string& other = a.relations.empty() ? a.sides.front() : b.sides.front();
  if (const auto interval = as_interval(chain)) return same(*interval, other, depth + 1);
  if (equals_throughout(chain, other, depth)) return true;
  if (chain.relations != std::vector<Relation>{Relation::kEqual}) return false;
  const bool named = is_answer_name(chain.sides.front()) ||
                     (b.relations.empty() && is_sum_of_names(chain.sides.front()));
  return named && same(chain.sides.back(), other, depth + 1);
}

bool is_decimal(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  return std::count(text.begin(), text.end(), '.') == 1 &&
         std::all_of(text.begin(), text.end(), [](char c) { return is_digit(c) || c == '.'; });
}

/// A decimal and another broken number that are the same when both are rounded to six places, as
/// math-verify has it. Here small ones need five digits, too.
bool same_rounded(const std::string& a, const std::string& b) {
  constexpr double kPlaces = 1e6, kDigits = 1e-5;
  if (!is_decimal(a) && !is_decimal(b)) return false;
  const auto left = real_value(a), right = real_value(b);
  if (!left || !right || *left == std::round(*left) || *right == std::round(*right)) return false;
  return std::round(*left * kPlaces) == std::round(*right * kPlaces) &&
         std::abs(*left - *right) <= kDigits * std::max(std::abs(*left), std::abs(*right));
}

/// "(C)" is the choice "C".
bool is_bracketed_choice(const std::optional<Bracketed>& brackets) {
  return brackets && brackets->open == "(" && !brackets->inside.empty() &&
         is_letter(brackets->inside.front());
}

bool same_unions(const std::string& a, const std::string& b, int depth, bool& are_unions) {
  const auto left = split_parts(a, "\\cup"), right = split_parts(b, "\\cup");
  are_unions = left.size() > 1 || right.size() > 1;
  return are_unions &&
         (same_in_any_order(left, right, depth) || same_union_of_intervals(left, right));
}

/// "1e-05", as JSON and programs write numbers.
std::optional<WrittenNumber> with_power_of_ten(const std::string& text) {
  if (text.find_first_of("eE") == text.npos) return std::nullopt;
  return WrittenNumber::parse(text);
}

/// "2e-5" may also be 2e less 5; "2e-05" and "2e5" are powers of ten.
bool may_be_sum_with_e(std::string_view text) {
  const std::size_t sign = text.find('e') + 1;  // 0: there is none
  return sign > 0 && sign + 1 < text.size() && (text[sign] == '-' || text[sign] == '+') &&
         text[sign + 1] != '0';
}

/// Exactly, at points, or (of a decimal) to six places.
bool same_plain_formula(const std::string& a, const std::string& b) {
  const auto left = read_expression(a), right = read_expression(b);
  if (left && right && same_value(*left, *right).value_or(false)) return true;
  if (same_rounded(a, b)) return true;
  const bool are_fractions = left && right && constant_of(*left) && constant_of(*right);
  return !are_fractions && same_at_points(a, b);
}

bool same_formula(const std::string& a, const std::string& b) {
  const auto left = with_power_of_ten(a), right = with_power_of_ten(b);
  if (!left && !right) return same_plain_formula(a, b);
  if (WrittenNumber::parse(a) == WrittenNumber::parse(b)) return true;
  if (same_plain_formula(left ? left->latex() : a, right ? right->latex() : b)) return true;
  return (!left || may_be_sum_with_e(a)) && (!right || may_be_sum_with_e(b)) &&
         same_plain_formula(a, b);
}

/// "6:8" and "3:4". Of two times of day ("9:30") only the texts are compared.
bool same_ratio(const std::string& a, const std::string& b) {
  const auto left = split_parts(a, ":"), right = split_parts(b, ":");
  if (left.size() < 2 || left.size() != right.size()) return false;
  const auto may_be_time = [](const std::vector<std::string>& parts) {
    return std::all_of(parts.begin() + 1, parts.end(), [](const std::string& part) {
      return part.size() == 2 && is_digit(part.front()) && is_digit(part.back());
    });
  };
  if (may_be_time(left) && may_be_time(right)) return false;
  for (std::size_t i = 1; i < left.size(); ++i) {
    const std::string first = "(" + left[i - 1] + ")/(" + left[i] + ")",
                      second = "(" + right[i - 1] + ")/(" + right[i] + ")";
    if (!same_formula(first, second)) return false;
  }
  return true;
}

bool same(const std::string& a, const std::string& b, int depth) {
  if (same_text(a, b)) return true;
  if (depth > kAnswerDepthMax || a.empty() || b.empty()) return false;
  const auto matrix_a = matrix_of(a), matrix_b = matrix_of(b);
  if (matrix_a || matrix_b) return matrix_a && matrix_b && same_matrix(*matrix_a, *matrix_b, depth);
  const auto list_a = members(a), list_b = members(b);
  if (list_a.size() > 1 || list_b.size() > 1)
    return same_lists(listed_in(list_a, NamedMembers(list_b)),
                      listed_in(list_b, NamedMembers(list_a)), depth);
  const RelationChain chain_a = relation_chain(a), chain_b = relation_chain(b);
  if (!chain_a.relations.empty() || !chain_b.relations.empty())
    return same_relations(chain_a, chain_b, depth);
  bool are_unions = false;
  if (const bool equal = same_unions(a, b, depth, are_unions); are_unions) return equal;
  const auto brackets_a = bracketed(a), brackets_b = bracketed(b);
  if (brackets_a && brackets_b && same_brackets(*brackets_a, *brackets_b, depth)) return true;
  if (!brackets_b && is_bracketed_choice(brackets_a) && same(brackets_a->inside, b, depth + 1))
    return true;
  if (!brackets_a && is_bracketed_choice(brackets_b) && same(a, brackets_b->inside, depth + 1))
    return true;
  return same_formula(a, b) || same_ratio(a, b);
}

/// An answer's readings: "1,234, 5" has three members, or two of which one is a number.
struct Readings {
  std::string list, number;

  explicit Readings(const std::string& text)
      : list(without_thousands_separators(text, Groups::kCertain)),
        number(without_thousands_separators(text)) {}

  bool differ() const { return list != number; }
  /// Outside brackets.
  bool differ_in_members() const {
    return split_parts(list, ",").size() != split_parts(number, ",").size();
  }
};

/// Where both may be numbers, neither shows that it is a list: the members are in order. So are
/// two members: "58,500" is not "500, 58".
bool same_as_lists(const Readings& a, const Readings& b) {
  if (!a.differ() && !b.differ()) return false;
  const auto left = split_parts(a.list, ","), right = split_parts(b.list, ",");
  const bool number_a = a.differ_in_members(), number_b = b.differ_in_members();
  if ((number_a && number_b) || ((number_a || number_b) && left.size() == 2))
    return same_in_order(left, right, 0);
  return same(a.list, b.list, 0);
}

/// Each side without thousands separators.
RelationChain ungrouped(RelationChain chain) {
  for (std::string& side : chain.sides) side = without_thousands_separators(std::move(side));
  return chain;
}

/// Equations and inequalities as wholes, whatever stands before their relations.
bool same_statements(const std::string& a, const std::string& b) {
  RelationChain left = relation_chain(without_thousands_separators(a, Groups::kCertain)),
                right = relation_chain(without_thousands_separators(b, Groups::kCertain));
  if (left.relations.empty() || right.relations.empty()) return false;
  RelationChain left_number = ungrouped(left), right_number = ungrouped(right);
  if (left_number.sides != left.sides && right_number.sides != right.sides) {
    left = std::move(left_number);
    right = std::move(right_number);
  }
  return same_chain(left, right, 0);
}

/// "32\\%" and "32\\text{ percent}", which are 32 or 0.32.
bool is_percentage(std::string_view text) {
  while (text.ends_with('$') || text.ends_with(' ')) text.remove_suffix(1);
  if (text.ends_with('%')) return true;
  if (text.ends_with('}')) text.remove_suffix(1);
  text = trim(text);
  return text.ends_with("percent") || text.ends_with("per cent");
}

bool same_normal_forms(const std::string& a, const std::string& b) {
  return same(normal_form(a), normal_form(b), 0);
}

std::string hundredth(const std::string& number) { return "\\frac{" + number + "}{100}"; }

}  // namespace

std::optional<std::string> last_boxed(std::string_view text) {
  std::size_t at = text.npos, length = 0;
  for (const std::string_view command : {"\\boxed", "\\fbox"}) {
    const std::size_t found = text.rfind(command);
    if (found == text.npos || (at != text.npos && found < at)) continue;
    at = found;
    length = command.size();
  }
  if (at == text.npos) return std::nullopt;
  std::size_t open = at + length;
  if (open < text.size() && text[open] == ' ' &&
      (open + 1 >= text.size() || text[open + 1] != '{')) {  // "\boxed 5$"
    const std::string_view rest = text.substr(open + 1);
    return std::string(trim(rest.substr(0, rest.find_first_of("$\n"))));
  }
  if (open < text.size() && text[open] == ' ') ++open;
  if (open >= text.size() || text[open] != '{') return std::nullopt;
  const std::size_t close = closing_brace(text, open);
  if (close == text.npos) return std::nullopt;
  return std::string(text.substr(open + 1, close - open - 1));
}

std::string normal_form(std::string_view answer) {
  if (trim(answer).size() > kAnswerBytesMax) return std::string(trim(answer));
  return without_thousands_separators(answer_form(answer));
}

bool equivalent(std::string_view written, std::string_view written_truth) {
  const std::string plain = with_ascii_forms(written),
                    plain_truth = with_ascii_forms(written_truth);
  const std::string_view answer = trim(plain), truth = trim(plain_truth);
  if (answer.size() > kAnswerBytesMax || truth.size() > kAnswerBytesMax) return answer == truth;
  if (have_different_units(read_math(answer).units, read_math(truth).units)) return false;
  if (have_members_of_different_units(answer, truth, same_normal_forms)) return false;
  const std::string stated = stated_form(answer), stated_truth = stated_form(truth);
  if (same_statements(stated, stated_truth)) return true;
  if (have_different_names(stated, stated_truth)) return false;
  // "100,200,300" is a number or a list: what the other side makes of it.
  const Readings left(answer_form(answer)), right(answer_form(truth));
  if (same(left.number, right.number, 0) || same_as_lists(left, right)) return true;
  if (is_percentage(answer) != is_percentage(truth) &&
      (is_percentage(answer) ? same(hundredth(left.number), right.number, 0)
                             : same(left.number, hundredth(right.number), 0)))
    return true;
  const auto in_points = [](std::string_view text, Commas commas) {
    auto number = with_decimal_point(text, commas);
    if (!number) number = with_decimal_points_in_list(text);
    return number || commas == Commas::kPlain ? number : with_decimal_points_in_formula(text);
  };
  const auto point_a = in_points(answer, Commas::kAll), point_b = in_points(truth, Commas::kPlain);
  return (point_a || point_b) &&
         equivalent(point_a.value_or(std::string(answer)), point_b.value_or(std::string(truth)));
}

}  // namespace rl
