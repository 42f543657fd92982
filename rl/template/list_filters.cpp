#include "rl/template/list_filters.h"

#include <algorithm>

#include "rl/template/failure.h"
#include "rl/template/python_string.h"

namespace rl {
namespace {

using Arguments = CallArguments;

TemplateValue make_list(TemplateEvaluator& evaluator, ValueList items) {
  evaluator.charge(items.size() * sizeof(TemplateValue));
  return TemplateValue::list(std::move(items));
}

/// The part of an item that groupby, min, unique and their like look at: an attribute, and lower
/// case unless case matters.
TemplateValue sort_key(TemplateEvaluator& evaluator, const TemplateValue& item,
                       const TemplateValue* attribute, bool case_sensitive,
                       const TemplateValue* otherwise = nullptr) {
  TemplateValue key = attribute == nullptr || attribute->is_none()
                          ? item
                          : get_path(evaluator, item, *attribute, otherwise);
  evaluator.charge_steps(1);
  if (!case_sensitive && key.is_string()) {
    evaluator.charge(key.as_string().size());
    evaluator.charge_characters(key.as_string().size());
    key = TemplateValue(to_lower(key.as_string()));
  }
  return key;
}

TemplateValue filter_length(TemplateEvaluator& evaluator, const TemplateValue& value,
                            const Arguments&) {
  return length_of(evaluator, value);
}

TemplateValue filter_first(TemplateEvaluator& evaluator, const TemplateValue& value,
                           const Arguments&) {
  const ValueList items = evaluator.iterate(value);
  return items.empty() ? TemplateValue::undefined("No first item, sequence was empty.")
                       : items.front();
}

TemplateValue filter_last(TemplateEvaluator& evaluator, const TemplateValue& value,
                          const Arguments&) {
  const ValueList items = evaluator.iterate(value);
  return items.empty() ? TemplateValue::undefined("No last item, sequence was empty.")
                       : items.back();
}

TemplateValue filter_list(TemplateEvaluator& evaluator, const TemplateValue& value,
                          const Arguments&) {
  return make_list(evaluator, evaluator.iterate(value));
}

TemplateValue filter_items(TemplateEvaluator& evaluator, const TemplateValue& value,
                           const Arguments&) {
  if (value.is_undefined()) return TemplateValue::list({});
  if (!value.is_dict()) fail_type("Can only get item pairs from a mapping.");
  return evaluator.call(find_method(evaluator, value, "items"), {});
}

TemplateValue filter_join(TemplateEvaluator& evaluator, const TemplateValue& value,
                          const Arguments& arguments) {
  arguments.check("join", {"d", "attribute"});
  const std::string separator = arguments.text(evaluator.budget(), 0, "d", "");
  const TemplateValue* attribute = arguments.find(1, "attribute");
  std::string out;
  bool first = true;
  for (const TemplateValue& item : evaluator.iterate(value)) {
    const std::string part =
        (attribute == nullptr || attribute->is_none() ? item
                                                      : get_path(evaluator, item, *attribute))
            .to_string(evaluator.budget());
    if (!first) out += separator;
    first = false;
    out += part;
    evaluator.charge(separator.size() + part.size());
  }
  return out;
}

TemplateValue filter_reverse(TemplateEvaluator& evaluator, const TemplateValue& value,
                             const Arguments&) {
  ValueList items = evaluator.iterate(value);
  std::reverse(items.begin(), items.end());
  if (!value.is_string()) return make_list(evaluator, std::move(items));
  std::string text;
  for (const TemplateValue& item : items) text += item.as_string();
  return text;
}

/// `value`'s items, in the order of what key(item) gives for each.
template <class Key>
ValueList sort_by(TemplateEvaluator& evaluator, const TemplateValue& value, bool reverse, Key key) {
  std::vector<std::pair<TemplateValue, TemplateValue>> keyed;
  for (TemplateValue& item : evaluator.iterate(value)) keyed.emplace_back(key(item), item);
  evaluator.charge_steps(static_cast<std::int64_t>(keyed.size()) * 8);
  std::stable_sort(keyed.begin(), keyed.end(), [&evaluator, reverse](const auto& a, const auto& b) {
    const int order = compare_values(evaluator.budget(), a.first, b.first, "<");
    return reverse ? order > 0 : order < 0;
  });
  ValueList items;
  for (auto& [unused, item] : keyed) items.push_back(std::move(item));
  return items;
}

TemplateValue filter_sort(TemplateEvaluator& evaluator, const TemplateValue& value,
                          const Arguments& arguments) {
  arguments.check("sort", {"reverse", "case_sensitive", "attribute"});
  const bool reverse = arguments.flag(0, "reverse", false),
             case_sensitive = arguments.flag(1, "case_sensitive", false);
  const TemplateValue* attribute = arguments.find(2, "attribute");
  std::vector<TemplateValue> attributes;  // "a,b.c" are two
  if (attribute != nullptr && attribute->is_string()) {
    const std::string& names = attribute->as_string();
    for (std::size_t start = 0; start <= names.size();) {
      const std::size_t comma = std::min(names.find(',', start), names.size());
      evaluator.charge_steps(1);
      attributes.push_back(
          TemplateValue::text(std::string_view(names).substr(start, comma - start)));
      start = comma + 1;
    }
  } else {
    attributes.push_back(attribute == nullptr ? TemplateValue() : *attribute);
  }
  // Lists, as in Jinja: of two that lack the attribute neither is less, which comparing the missing
  // values would not find.
  return make_list(evaluator, sort_by(evaluator, value, reverse, [&](const TemplateValue& item) {
                     ValueList key;
                     for (const TemplateValue& one : attributes)
                       key.push_back(sort_key(evaluator, item, &one, case_sensitive));
                     return TemplateValue::list(std::move(key));
                   }));
}

TemplateValue filter_dictsort(TemplateEvaluator& evaluator, const TemplateValue& value,
                              const Arguments& arguments) {
  arguments.check("dictsort", {"case_sensitive", "by", "reverse"});
  if (!value.is_dict()) fail_type("'" + value.type_name() + "' object has no attribute 'items'");
  const std::string by = arguments.text(evaluator.budget(), 1, "by", "key");
  if (by != "key" && by != "value")
    fail_python("FilterArgumentError", "You can only sort by either \"key\" or \"value\"");
  const TemplateValue part(std::int64_t{by == "key" ? 0 : 1});
  const bool case_sensitive = arguments.flag(0, "case_sensitive", false);
  return make_list(evaluator,
                   sort_by(evaluator, evaluator.call(find_method(evaluator, value, "items"), {}),
                           arguments.flag(2, "reverse", false), [&](const TemplateValue& item) {
                             return sort_key(evaluator, item, &part, case_sensitive);
                           }));
}

TemplateValue extreme(TemplateEvaluator& evaluator, const TemplateValue& value,
                      const Arguments& arguments, bool largest) {
  arguments.check(largest ? "max" : "min", {"case_sensitive", "attribute"});
  const ValueList items = evaluator.iterate(value);
  if (items.empty()) return TemplateValue::undefined("No aggregated item, sequence was empty.");
  const bool case_sensitive = arguments.flag(0, "case_sensitive", false);
  const TemplateValue* attribute = arguments.find(1, "attribute");
  std::size_t best = 0;
  TemplateValue best_key = sort_key(evaluator, items[0], attribute, case_sensitive);
  for (std::size_t i = 1; i < items.size(); ++i) {
    TemplateValue key = sort_key(evaluator, items[i], attribute, case_sensitive);
    const int order = compare_values(evaluator.budget(), key, best_key, largest ? ">" : "<");
    if (largest ? order <= 0 : order >= 0) continue;
    best = i;
    best_key = std::move(key);
  }
  return items[best];
}

TemplateValue filter_unique(TemplateEvaluator& evaluator, const TemplateValue& value,
                            const Arguments& arguments) {
  arguments.check("unique", {"case_sensitive", "attribute"});
  const bool case_sensitive = arguments.flag(0, "case_sensitive", false);
  const TemplateValue* attribute = arguments.find(1, "attribute");
  DictBox seen;
  ValueList items;
  for (TemplateValue& item : evaluator.iterate(value)) {
    TemplateValue key = sort_key(evaluator, item, attribute, case_sensitive);
    if (key.is_list() || key.is_dict()) fail_type("unhashable type: '" + key.type_name() + "'");
    evaluator.charge_steps(key.is_string() ? 1 : static_cast<std::int64_t>(items.size()));
    if (seen.find_value(evaluator.budget(), key) != nullptr) continue;
    seen.set(evaluator.budget(), std::move(key), true);
    items.push_back(std::move(item));
  }
  return make_list(evaluator, std::move(items));
}

TemplateValue filter_sum(TemplateEvaluator& evaluator, const TemplateValue& value,
                         const Arguments& arguments) {
  arguments.check("sum", {"attribute", "start"});
  const TemplateValue* attribute = arguments.find(0, "attribute");
  TemplateValue total = arguments.find(1, "start") != nullptr ? *arguments.find(1, "start")
                                                              : TemplateValue(std::int64_t{0});
  for (const TemplateValue& item : evaluator.iterate(value)) {
    total = arithmetic(evaluator, "+", total,
                       attribute == nullptr || attribute->is_none()
                           ? item
                           : get_path(evaluator, item, *attribute));
  }
  return total;
}

/// map('upper'), map('replace', 'a', 'b'), map(attribute='x', default=0).
TemplateValue filter_map(TemplateEvaluator& evaluator, const TemplateValue& value,
                         const Arguments& arguments) {
  if (!value.truthy())
    return make_list(evaluator, {});  // none as well, and before the arguments are looked at
  ValueList out;
  if (arguments.positional.empty()) {
    const TemplateValue* attribute = arguments.find_named("attribute");
    const TemplateValue* otherwise = arguments.find_named("default");
    if (attribute == nullptr) fail_python("FilterArgumentError", "map requires a filter argument");
    for (const TemplateValue& item : evaluator.iterate(value)) {
      out.push_back(get_path(evaluator, item, *attribute, otherwise));
    }
    return make_list(evaluator, std::move(out));
  }
  const std::string name = arguments.positional[0].to_string(evaluator.budget());
  CallArguments rest = arguments;
  rest.positional.erase(rest.positional.begin());
  for (const TemplateValue& item : evaluator.iterate(value)) {
    evaluator.charge_steps(1);
    out.push_back(evaluator.filter(name, item, rest));
  }
  return make_list(evaluator, std::move(out));
}

/// select, reject and their forms with an attribute first.
TemplateValue select(TemplateEvaluator& evaluator, const TemplateValue& value,
                     const Arguments& arguments, bool with_attribute, bool wanted) {
  if (!value.truthy()) return make_list(evaluator, {});
  CallArguments rest = arguments;
  TemplateValue attribute;
  if (with_attribute) {
    if (rest.positional.empty())
      fail_python("FilterArgumentError", "Missing parameter for attribute name");
    attribute = rest.positional[0];
    rest.positional.erase(rest.positional.begin());
  }
  std::string test;
  if (!rest.positional.empty()) {
    test = rest.positional[0].to_string(evaluator.budget());
    rest.positional.erase(rest.positional.begin());
  }
  ValueList out;
  for (TemplateValue& item : evaluator.iterate(value)) {
    evaluator.charge_steps(1);
    const TemplateValue subject = with_attribute ? get_path(evaluator, item, attribute) : item;
    const bool holds = test.empty() ? subject.truthy() : evaluator.test(test, subject, rest);
    if (holds == wanted) out.push_back(std::move(item));
  }
  return make_list(evaluator, std::move(out));
}

TemplateValue filter_batch(TemplateEvaluator& evaluator, const TemplateValue& value,
                           const Arguments& arguments) {
  arguments.check("batch", {"linecount", "fill_with"});
  if (arguments.find(0, "linecount") == nullptr)
    fail_type("do_batch() missing 1 required positional argument: 'linecount'");
  const std::int64_t size = arguments.integer(0, "linecount", 1);
  if (size < 1 || size > 100'000)
    fail_python("ValueError", "batch: a size from 1 to 100000 is needed");
  const TemplateValue* fill = arguments.find(1, "fill_with");
  ValueList rows, row;
  for (TemplateValue& item : evaluator.iterate(value)) {
    if (static_cast<std::int64_t>(row.size()) == size)
      rows.push_back(make_list(evaluator, std::exchange(row, {})));
    row.push_back(std::move(item));
  }
  if (!row.empty()) {
    while (fill != nullptr && !fill->is_none() && static_cast<std::int64_t>(row.size()) < size)
      row.push_back(*fill);
    rows.push_back(make_list(evaluator, std::move(row)));
  }
  return make_list(evaluator, std::move(rows));
}

/// This many lists of nearly equal length, the longer ones first.
TemplateValue filter_slice(TemplateEvaluator& evaluator, const TemplateValue& value,
                           const Arguments& arguments) {
  arguments.check("slice", {"slices", "fill_with"});
  if (arguments.find(0, "slices") == nullptr)
    fail_type("sync_do_slice() missing 1 required positional argument: 'slices'");
  const std::int64_t slices = arguments.integer(0, "slices", 1);
  if (slices < 1 || slices > 100'000)
    fail_python("ValueError", "slice: a number from 1 to 100000 is needed");
  const TemplateValue* fill = arguments.find(1, "fill_with");
  const ValueList items = evaluator.iterate(value);
  const auto count = static_cast<std::int64_t>(items.size());
  ValueList rows;
  auto next = items.begin();
  for (std::int64_t i = 0; i < slices; ++i) {
    evaluator.charge_steps(1);
    const bool longer = i < count % slices;
    const auto end = next + count / slices + (longer ? 1 : 0);
    ValueList row(next, end);
    next = end;
    if (fill != nullptr && !fill->is_none() && !longer) row.push_back(*fill);
    rows.push_back(make_list(evaluator, std::move(row)));
  }
  return make_list(evaluator, std::move(rows));
}

TemplateValue filter_groupby(TemplateEvaluator& evaluator, const TemplateValue& value,
                             const Arguments& arguments) {
  arguments.check("groupby", {"attribute", "default", "case_sensitive"});
  const TemplateValue* attribute = arguments.find(0, "attribute");
  if (attribute == nullptr) fail_type("groupby: the attribute is missing");
  const TemplateValue* otherwise = arguments.find(1, "default");
  const bool case_sensitive = arguments.flag(2, "case_sensitive", false);
  const auto key_of = [&](const TemplateValue& item) {
    return sort_key(evaluator, item, attribute, case_sensitive, otherwise);
  };
  ValueList groups, members;
  TemplateValue key;
  const auto close = [&] {
    // Printed as the first of the group spells it.
    if (!members.empty())
      groups.push_back(
          TemplateValue::tuple({get_path(evaluator, members.front(), *attribute, otherwise),
                                make_list(evaluator, std::exchange(members, {}))},
                               {"grouper", "list"}));
  };
  for (const TemplateValue& item : sort_by(evaluator, value, false, key_of)) {
    TemplateValue item_key = key_of(item);
    if (!members.empty() && !equal_values(evaluator.budget(), item_key, key)) close();
    if (members.empty()) key = std::move(item_key);
    members.push_back(item);
  }
  close();
  return make_list(evaluator, std::move(groups));
}

TemplateValue filter_attr(TemplateEvaluator& evaluator, const TemplateValue& value,
                          const Arguments& arguments) {
  const std::string name = arguments.text(evaluator.budget(), 0, "name", "");
  // Unlike a.b it never looks at items.
  TemplateValue found = find_method(evaluator, value, name);
  if (!found.is_undefined() || value.is_dict()) return found;
  return get_attribute(evaluator, value, name);
}

constexpr NamedFilter kListFilters[] = {
    {"length", filter_length},
    {"count", filter_length},
    {"first", filter_first},
    {"last", filter_last},
    {"list", filter_list},
    {"items", filter_items},
    {"join", filter_join},
    {"reverse", filter_reverse},
    {"sort", filter_sort},
    {"dictsort", filter_dictsort},
    {"unique", filter_unique},
    {"sum", filter_sum},
    {"map", filter_map},
    {"batch", filter_batch},
    {"slice", filter_slice},
    {"groupby", filter_groupby},
    {"attr", filter_attr},
    {"max", [](TemplateEvaluator& e, const TemplateValue& v,
               const Arguments& a) { return extreme(e, v, a, true); }},
    {"min", [](TemplateEvaluator& e, const TemplateValue& v,
               const Arguments& a) { return extreme(e, v, a, false); }},
    {"select", [](TemplateEvaluator& e, const TemplateValue& v,
                  const Arguments& a) { return select(e, v, a, false, true); }},
    {"reject", [](TemplateEvaluator& e, const TemplateValue& v,
                  const Arguments& a) { return select(e, v, a, false, false); }},
    {"selectattr", [](TemplateEvaluator& e, const TemplateValue& v,
                      const Arguments& a) { return select(e, v, a, true, true); }},
    {"rejectattr", [](TemplateEvaluator& e, const TemplateValue& v,
                      const Arguments& a) { return select(e, v, a, true, false); }},
};

}  // namespace

std::span<const NamedFilter> list_filters() { return kListFilters; }

}  // namespace rl
