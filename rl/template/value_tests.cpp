// Tests: "value is name".
#include "rl/template/builtins.h"
#include "rl/template/failure.h"
#include "rl/template/python_string.h"

namespace rl {
namespace {

using Arguments = CallArguments;

const TemplateValue& other(const Arguments& arguments, std::string_view name) {
  if (arguments.positional.empty())
    fail_type("the test '" + std::string(name) + "' is missing an argument");
  return arguments.positional[0];
}

/// value % by == rest, as Python has it: for any numbers, and for text with a conversion in it.
bool leaves(TemplateEvaluator& evaluator, const TemplateValue& value, const TemplateValue& by,
            std::int64_t rest) {
  if (value.is_big_integer() && by.is_int() && by.as_int() == 2)
    return (value.as_big_integer().back() - '0') % 2 == rest;
  return equal_values(evaluator.budget(), arithmetic(evaluator, "%", value, by),
                      TemplateValue(rest));
}

bool is_ordered(TemplateEvaluator& evaluator, const TemplateValue& a, const Arguments& arguments,
                const char* op) {
  const int order = compare_values(evaluator.budget(), a, other(arguments, op), op);
  const std::string_view name = op;
  return name == "<" ? order < 0 : name == "<=" ? order <= 0 : name == ">" ? order > 0 : order >= 0;
}

/// What a filter or test may be called; what is no text is the name of none.
std::string known_name(const TemplateValue& value) {
  if (value.is_list() || value.is_dict()) fail_type("unhashable type: '" + value.type_name() + "'");
  return value.is_string() ? value.as_string() : "";
}

struct NamedTest {
  std::string_view name;
  TestFunction function;
};

constexpr NamedTest kTests[] = {
    {"defined", [](TemplateEvaluator&, const TemplateValue& v,
                   const Arguments&) { return !v.is_undefined(); }},
    {"undefined",
     [](TemplateEvaluator&, const TemplateValue& v, const Arguments&) { return v.is_undefined(); }},
    {"none",
     [](TemplateEvaluator&, const TemplateValue& v, const Arguments&) { return v.is_none(); }},
    {"string",
     [](TemplateEvaluator&, const TemplateValue& v, const Arguments&) { return v.is_string(); }},
    {"mapping",
     [](TemplateEvaluator&, const TemplateValue& v, const Arguments&) { return v.is_dict(); }},
    {"number", [](TemplateEvaluator&, const TemplateValue& v,
                  const Arguments&) { return v.is_number() || v.is_big_integer(); }},
    {"integer", [](TemplateEvaluator&, const TemplateValue& v,
                   const Arguments&) { return v.is_int() || v.is_big_integer(); }},
    {"float",
     [](TemplateEvaluator&, const TemplateValue& v, const Arguments&) { return v.is_float(); }},
    {"boolean",
     [](TemplateEvaluator&, const TemplateValue& v, const Arguments&) { return v.is_bool(); }},
    {"true", [](TemplateEvaluator&, const TemplateValue& v,
                const Arguments&) { return v.is_bool() && v.as_bool(); }},
    {"false", [](TemplateEvaluator&, const TemplateValue& v,
                 const Arguments&) { return v.is_bool() && !v.as_bool(); }},
    // Python's callable() asks the type: what is missing has a call, which fails.
    {"callable",
     [](TemplateEvaluator&, const TemplateValue& v, const Arguments&) {
       return v.is_callable() || v.is_loop() || v.is_undefined();
     }},
    {"escaped", [](TemplateEvaluator&, const TemplateValue&, const Arguments&) { return false; }},
    // An undefined value iterates over nothing, and has a length.
    {"iterable",
     [](TemplateEvaluator&, const TemplateValue& v, const Arguments&) {
       return v.is_string() || v.is_sequence() || v.is_dict() || v.is_loop() || v.is_undefined();
     }},
    {"sequence",
     [](TemplateEvaluator&, const TemplateValue& v, const Arguments&) {
       return v.is_string() || v.is_sequence() || v.is_dict() || v.is_undefined();
     }},
    {"in", [](TemplateEvaluator& e, const TemplateValue& v,
              const Arguments& a) { return contains(e, other(a, "in"), v); }},
    {"sameas", [](TemplateEvaluator&, const TemplateValue& v,
                  const Arguments& a) { return v.same_as(other(a, "sameas")); }},
    {"odd", [](TemplateEvaluator& e, const TemplateValue& v,
               const Arguments&) { return leaves(e, v, std::int64_t{2}, 1); }},
    {"even", [](TemplateEvaluator& e, const TemplateValue& v,
                const Arguments&) { return leaves(e, v, std::int64_t{2}, 0); }},
    {"divisibleby", [](TemplateEvaluator& e, const TemplateValue& v,
                       const Arguments& a) { return leaves(e, v, other(a, "divisibleby"), 0); }},
    {"upper",
     [](TemplateEvaluator& e, const TemplateValue& v, const Arguments&) {
       return is_all(v.to_string(e.budget()), CharacterClass::kUpper);
     }},
    {"lower",
     [](TemplateEvaluator& e, const TemplateValue& v, const Arguments&) {
       return is_all(v.to_string(e.budget()), CharacterClass::kLower);
     }},
    {"filter", [](TemplateEvaluator&, const TemplateValue& v,
                  const Arguments&) { return find_filter(known_name(v)) != nullptr; }},
    {"test", [](TemplateEvaluator&, const TemplateValue& v,
                const Arguments&) { return find_test(known_name(v)) != nullptr; }},
};

// Comparisons have several names each.
constexpr NamedTest kComparisons[] = {
    {"eq equalto ==",
     [](TemplateEvaluator& e, const TemplateValue& v, const Arguments& a) {
       return equal_values(e.budget(), v, other(a, "eq"));
     }},
    {"ne !=", [](TemplateEvaluator& e, const TemplateValue& v,
                 const Arguments& a) { return !equal_values(e.budget(), v, other(a, "ne")); }},
    {"lt lessthan <", [](TemplateEvaluator& e, const TemplateValue& v,
                         const Arguments& a) { return is_ordered(e, v, a, "<"); }},
    {"le <=", [](TemplateEvaluator& e, const TemplateValue& v,
                 const Arguments& a) { return is_ordered(e, v, a, "<="); }},
    {"gt greaterthan >", [](TemplateEvaluator& e, const TemplateValue& v,
                            const Arguments& a) { return is_ordered(e, v, a, ">"); }},
    {"ge >=", [](TemplateEvaluator& e, const TemplateValue& v,
                 const Arguments& a) { return is_ordered(e, v, a, ">="); }},
};

}  // namespace

TestFunction find_test(std::string_view name) {
  for (const NamedTest& test : kTests) {
    if (test.name == name) return test.function;
  }
  for (const NamedTest& test : kComparisons) {
    for (std::size_t start = 0; start < test.name.size();) {
      const std::size_t end = std::min(test.name.find(' ', start), test.name.size());
      if (test.name.substr(start, end - start) == name) return test.function;
      start = end + 1;
    }
  }
  return nullptr;
}

}  // namespace rl
