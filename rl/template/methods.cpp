// Attributes, items and methods of values. What would change a value is hidden, as transformers'
// immutable sandbox does.
#include <algorithm>
#include <set>

#include "rl/template/builtins.h"
#include "rl/template/failure.h"
#include "rl/template/python_string.h"

namespace rl {
namespace {

using Arguments = CallArguments;
using Method = TemplateValue (*)(TemplateEvaluator&, const TemplateValue& self, const Arguments&);

const std::string& need_string(const TemplateValue& value, std::string_view method) {
  require_defined(value);
  if (!value.is_string())
    fail_type(std::string(method) + "() argument must be str, not " + value.type_name());
  return value.as_string();
}

const TemplateValue& need_argument(const Arguments& arguments, std::size_t position,
                                   std::string_view method) {
  if (position >= arguments.positional.size())
    fail_type(std::string(method) + "() is missing an argument");
  return arguments.positional[position];
}

TemplateValue strip(TemplateEvaluator& evaluator, const TemplateValue& self,
                    const Arguments& arguments, bool left, bool right) {
  arguments.check("strip", {"chars"});
  const TemplateValue* characters = arguments.find(0, "chars");
  const bool given = characters != nullptr && !characters->is_none();
  const std::string* const set = given ? &need_string(*characters, "strip") : nullptr;
  evaluator.charge_scan(self.as_string().size());
  if (set != nullptr) evaluator.charge_characters(set->size());
  const std::string_view kept = strip_text(self.as_string(), left, right, set);
  evaluator.charge_characters(self.as_string().size() - kept.size());
  evaluator.charge(kept.size());
  return TemplateValue::text(kept);
}

ValueList to_values(const std::vector<std::string>& texts) {
  ValueList items;
  for (const std::string& text : texts) items.emplace_back(text);
  return items;
}

/// str.split and str.rsplit.
TemplateValue split(TemplateEvaluator& evaluator, const TemplateValue& self,
                    const Arguments& arguments, bool from_right) {
  arguments.check("split", {"sep", "maxsplit"});
  const std::int64_t most = arguments.integer(1, "maxsplit", -1);
  const TemplateValue* separator = arguments.find(0, "sep");
  std::string_view rest = self.as_string();
  evaluator.charge(rest.size());
  std::vector<std::string> parts;
  const auto add = [&](std::string_view part) {
    evaluator.charge(64 + sizeof(TemplateValue));
    evaluator.charge_steps(1);
    parts.emplace_back(part);
  };
  const auto room = [&] { return most < 0 || static_cast<std::int64_t>(parts.size()) < most; };
  if (separator == nullptr || separator->is_none()) {
    rest = strip_text(rest, !from_right, from_right);
    while (!rest.empty() && room()) {
      // The next run of characters that are not blank, from the chosen side.
      std::string_view behind = rest;
      while (!behind.empty()) {
        const std::size_t size = from_right ? last_character_size(behind) : character_size(behind);
        if (is_blank_character(from_right ? behind.substr(behind.size() - size)
                                          : behind.substr(0, size)))
          break;
        from_right ? behind.remove_suffix(size) : behind.remove_prefix(size);
      }
      add(from_right ? rest.substr(behind.size()) : rest.substr(0, rest.size() - behind.size()));
      rest = strip_text(behind, !from_right, from_right);
    }
    if (!rest.empty()) add(rest);  // what is beyond maxsplit, with its blanks on the far side
  } else {
    const std::string& sep = need_string(*separator, "split");
    if (sep.empty()) fail_python("ValueError", "empty separator");
    const std::string_view whole = rest;
    evaluator.charge_scan(whole.size() + sep.size());
    each_occurrence(whole, sep, from_right, [&](std::size_t at) {
      if (!room()) return false;
      const std::size_t begin = whole.size() - rest.size();  // of the rest, where that is behind
      add(from_right ? rest.substr(at + sep.size()) : whole.substr(begin, at - begin));
      rest = from_right ? whole.substr(0, at) : whole.substr(at + sep.size());
      return true;
    });
    add(rest);
  }
  evaluator.charge_characters(separator == nullptr ? self.as_string().size() : 0);
  if (from_right) std::reverse(parts.begin(), parts.end());
  return TemplateValue::list(to_values(parts));
}

/// startswith and endswith, with one text or a tuple of them.
bool has_affix(TemplateEvaluator& evaluator, const std::string& text, const TemplateValue& affix,
               bool at_start) {
  evaluator.charge_steps(1);
  if (affix.is_tuple()) {
    return std::any_of(affix.items().begin(), affix.items().end(), [&](const TemplateValue& one) {
      return has_affix(evaluator, text, one, at_start);
    });
  }
  const std::string& wanted = need_string(affix, at_start ? "startswith" : "endswith");
  evaluator.charge_scan(std::min(wanted.size(), text.size()));
  return at_start ? text.starts_with(wanted) : text.ends_with(wanted);
}

std::string replace_counted(TemplateEvaluator& evaluator, const std::string& text,
                            const std::string& from, const std::string& to, std::int64_t most) {
  evaluator.charge(text.size());
  evaluator.charge_scan(text.size() + from.size());
  std::string out;
  std::size_t at = 0;
  std::int64_t done = 0;
  const auto room = [&] { return most < 0 || done < most; };
  const auto put = [&] {
    evaluator.charge(to.size());
    evaluator.charge_steps(1);
    out += to;
    ++done;
  };
  if (!from.empty()) {
    each_occurrence(text, from, /*from_right=*/false, [&](std::size_t found) {
      if (!room()) return false;
      out.append(text, at, found - at);
      put();
      at = found + from.size();
      return true;
    });
  } else {  // between all characters
    while (room()) {
      put();
      if (at >= text.size()) break;
      const std::size_t size = character_size(std::string_view(text).substr(at));
      out.append(text, at, size);
      at += size;
    }
  }
  return out.append(text, at, std::string::npos);
}

/// The part of a string that a method's arguments `start` and `end`, from position 1, ask for; and
/// how many characters are before it.
struct Searched {
  std::string_view text = {};
  std::int64_t before = 0;
  bool outside = false;  // start lies behind the end: not even the empty string is there
};

Searched searched_part(TemplateEvaluator& evaluator, const TemplateValue& self,
                       const Arguments& arguments, const char* method) {
  arguments.check(method, {"sub", "start", "end"});
  const std::string_view text = self.as_string();
  evaluator.charge_scan(text.size());
  if (arguments.positional.size() < 2) return {text};
  const std::int64_t size = count_characters(text);
  const auto bound = [&](std::size_t position, std::int64_t otherwise) {
    const TemplateValue* given = arguments.find(position, "");
    if (given == nullptr || given->is_none()) return otherwise;
    const std::int64_t at = arguments.integer(position, "", otherwise);
    return at < 0 ? std::max<std::int64_t>(at + size, 0) : at;
  };
  const std::int64_t start = bound(1, 0);
  const std::int64_t end = std::min(bound(2, size), size);
  if (start > end) return {.before = start, .outside = true};
  evaluator.charge_characters(text.size());
  const std::vector<std::string_view> characters = split_characters(text);
  const auto offset = [&](std::int64_t at) {
    return at == size ? text.size()
                      : static_cast<std::size_t>(characters[static_cast<std::size_t>(at)].data() -
                                                 text.data());
  };
  return {text.substr(offset(start), offset(end) - offset(start)), start};
}

/// find and rfind: a number of characters, or -1.
std::int64_t search(TemplateEvaluator& evaluator, const TemplateValue& self,
                    const Arguments& arguments, const char* method, bool last) {
  const std::string& wanted = need_string(need_argument(arguments, 0, method), method);
  const Searched part = searched_part(evaluator, self, arguments, method);
  evaluator.charge_scan(wanted.size());
  const std::size_t at = part.outside ? std::string_view::npos
                         : last       ? find_last_text(part.text, wanted)
                                      : find_text(part.text, wanted);
  return at == std::string_view::npos ? -1
                                      : part.before + count_characters(part.text.substr(0, at));
}

TemplateValue partition(TemplateEvaluator& evaluator, const TemplateValue& self,
                        const Arguments& arguments, bool last) {
  const std::string& text = self.as_string();
  const std::string& separator = need_string(need_argument(arguments, 0, "partition"), "partition");
  if (separator.empty()) fail_python("ValueError", "empty separator");
  evaluator.charge(text.size() + separator.size());
  evaluator.charge_scan(text.size() + separator.size());
  const std::size_t at = last ? find_last_text(text, separator) : find_text(text, separator);
  if (at == std::string::npos)
    return TemplateValue::tuple(to_values(last ? std::vector<std::string>{"", "", text}
                                               : std::vector<std::string>{text, "", ""}));
  return TemplateValue::tuple(
      to_values({text.substr(0, at), separator, text.substr(at + separator.size())}));
}

/// center, ljust, rjust: `left_halves` of the padding's halves go before the text.
TemplateValue pad_string(TemplateEvaluator& evaluator, const TemplateValue& self,
                         const Arguments& arguments, int left_halves) {
  const std::int64_t width = arguments.integer(0, "width", 0);
  const std::string fill = arguments.text(evaluator.budget(), 1, "fillchar", " ");
  if (count_characters(fill) != 1)
    fail_type("The fill character must be exactly one character long");
  const std::int64_t missing = width - count_characters(self.as_string());
  evaluator.charge_scan(self.as_string().size());
  if (missing <= 0) return self;
  evaluator.charge(self.as_string().size());
  evaluator.charge(static_cast<std::size_t>(missing) * fill.size());
  std::int64_t left = left_halves == 0   ? 0
                      : left_halves == 2 ? missing
                                         : missing / 2 + (missing & width & 1);
  std::string out;
  for (std::int64_t i = 0; i < left; ++i) out += fill;
  out += self.as_string();
  for (std::int64_t i = left; i < missing; ++i) out += fill;
  return out;
}

/// "{} {0} {name}".format(...), without format specifications.
TemplateValue format_braces(TemplateEvaluator& evaluator, const TemplateValue& self,
                            const Arguments& arguments) {
  const std::string& format = self.as_string();
  evaluator.charge(format.size());
  evaluator.charge_scan(format.size());
  std::string out;
  std::size_t next = 0;
  for (std::size_t i = 0; i < format.size(); ++i) {
    if ((format[i] == '{' || format[i] == '}') && i + 1 < format.size() &&
        format[i + 1] == format[i]) {
      out += format[i++];
    } else if (format[i] == '}') {
      fail_python("ValueError", "Single '}' encountered in format string");
    } else if (format[i] != '{') {
      out += format[i];
    } else {
      const std::size_t close = format.find('}', i);
      if (close == std::string::npos)
        fail_python("ValueError", "Single '{' encountered in format string");
      const std::string field = format.substr(i + 1, close - i - 1);
      i = close;
      if (field.find_first_of(":!.[{") != std::string::npos)
        fail_unsupported(evaluator.line(), "the format field '{" + field + "}'");
      const bool numbered = !field.empty() &&
                            field.find_first_not_of("0123456789") == std::string::npos &&
                            field.size() < 6;
      if (field.empty() || numbered) {
        const std::size_t position =
            field.empty() ? next++ : static_cast<std::size_t>(std::stoi(field));
        if (position >= arguments.positional.size()) {
          fail_python("IndexError", "Replacement index " + std::to_string(position) +
                                        " out of range for positional args tuple");
        }
        out += arguments.positional[position].to_string(evaluator.budget());
      } else {
        const TemplateValue* value = arguments.find_named(field);
        if (value == nullptr) fail_python("KeyError", "'" + field + "'");
        out += value->to_string(evaluator.budget());
      }
      evaluator.charge(out.size());
    }
  }
  return out;
}

template <bool kLeft, bool kRight>
TemplateValue strip_method(TemplateEvaluator& evaluator, const TemplateValue& self,
                           const Arguments& arguments) {
  return strip(evaluator, self, arguments, kLeft, kRight);
}

template <std::string (*kMap)(std::string_view)>
TemplateValue map_method(TemplateEvaluator& evaluator, const TemplateValue& self,
                         const Arguments& arguments) {
  arguments.check("str method", {});
  evaluator.charge(self.as_string().size());
  evaluator.charge_characters(self.as_string().size());
  return kMap(self.as_string());
}

template <CharacterClass kClass>
TemplateValue class_method(TemplateEvaluator& evaluator, const TemplateValue& self,
                           const Arguments&) {
  evaluator.charge_scan(self.as_string().size());
  return is_all(self.as_string(), kClass);
}

struct NamedMethod {
  std::string_view name;
  Method method;
};

constexpr NamedMethod kStringMethods[] = {
    {"strip", strip_method<true, true>},
    {"lstrip", strip_method<true, false>},
    {"rstrip", strip_method<false, true>},
    {"upper", map_method<to_upper>},
    {"lower", map_method<to_lower>},
    {"casefold", map_method<to_casefolded>},
    {"swapcase", map_method<to_swapped_case>},
    {"capitalize", map_method<to_capitalized>},
    {"title", map_method<to_title>},
    {"isalpha", class_method<CharacterClass::kAlpha>},
    {"isdigit", class_method<CharacterClass::kDigit>},
    {"isnumeric", class_method<CharacterClass::kNumeric>},
    {"isdecimal", class_method<CharacterClass::kDecimal>},
    {"isalnum", class_method<CharacterClass::kAlnum>},
    {"isspace", class_method<CharacterClass::kSpace>},
    {"isupper", class_method<CharacterClass::kUpper>},
    {"islower", class_method<CharacterClass::kLower>},
    {"split", [](TemplateEvaluator& e, const TemplateValue& self,
                 const Arguments& a) { return split(e, self, a, false); }},
    {"rsplit", [](TemplateEvaluator& e, const TemplateValue& self,
                  const Arguments& a) { return split(e, self, a, true); }},
    {"splitlines",
     [](TemplateEvaluator& e, const TemplateValue& self, const Arguments& a) {
       e.charge(self.as_string().size() + line_bytes(self.as_string()) * 4);
       e.charge_characters(self.as_string().size());
       return TemplateValue::list(
           to_values(split_lines(self.as_string(), a.flag(0, "keepends", false))));
     }},
    {"startswith",
     [](TemplateEvaluator& e, const TemplateValue& self, const Arguments& a) {
       return TemplateValue(
           has_affix(e, self.as_string(), need_argument(a, 0, "startswith"), true));
     }},
    {"endswith",
     [](TemplateEvaluator& e, const TemplateValue& self, const Arguments& a) {
       return TemplateValue(has_affix(e, self.as_string(), need_argument(a, 0, "endswith"), false));
     }},
    {"replace",
     [](TemplateEvaluator& e, const TemplateValue& self, const Arguments& a) {
       return TemplateValue(replace_counted(
           e, self.as_string(), need_string(need_argument(a, 0, "replace"), "replace"),
           need_string(need_argument(a, 1, "replace"), "replace"), a.integer(2, "count", -1)));
     }},
    {"find", [](TemplateEvaluator& e, const TemplateValue& self,
                const Arguments& a) { return TemplateValue(search(e, self, a, "find", false)); }},
    {"rfind", [](TemplateEvaluator& e, const TemplateValue& self,
                 const Arguments& a) { return TemplateValue(search(e, self, a, "rfind", true)); }},
    {"index",
     [](TemplateEvaluator& e, const TemplateValue& self, const Arguments& a) {
       const std::int64_t at = search(e, self, a, "index", false);
       if (at < 0) fail_python("ValueError", "substring not found");
       return TemplateValue(at);
     }},
    {"rindex",
     [](TemplateEvaluator& e, const TemplateValue& self, const Arguments& a) {
       const std::int64_t at = search(e, self, a, "rindex", true);
       if (at < 0) fail_python("ValueError", "substring not found");
       return TemplateValue(at);
     }},
    {"count",
     [](TemplateEvaluator& e, const TemplateValue& self, const Arguments& a) {
       const std::string& wanted = need_string(need_argument(a, 0, "count"), "count");
       const Searched part = searched_part(e, self, a, "count");
       if (part.outside) return TemplateValue(std::int64_t{0});
       if (wanted.empty()) return TemplateValue(count_characters(part.text) + 1);
       e.charge_scan(wanted.size());
       std::int64_t count = 0;
       each_occurrence(part.text, wanted, /*from_right=*/false, [&](std::size_t) {
         if (++count % 16 == 0) e.charge_steps(1);
         return true;
       });
       return TemplateValue(count);
     }},
    {"join",
     [](TemplateEvaluator& e, const TemplateValue& self, const Arguments& a) {
       std::string out;
       const ValueList items = e.iterate(need_argument(a, 0, "join"));
       for (std::size_t i = 0; i < items.size(); ++i) {
         if (!items[i].is_string())
           fail_type("sequence item " + std::to_string(i) + ": expected str instance, " +
                     items[i].type_name() + " found");
         e.charge(self.as_string().size() + items[i].as_string().size());
         if (i > 0) out += self.as_string();
         out += items[i].as_string();
       }
       return TemplateValue(std::move(out));
     }},
    {"partition", [](TemplateEvaluator& e, const TemplateValue& self,
                     const Arguments& a) { return partition(e, self, a, false); }},
    {"rpartition", [](TemplateEvaluator& e, const TemplateValue& self,
                      const Arguments& a) { return partition(e, self, a, true); }},
    {"removeprefix",
     [](TemplateEvaluator& e, const TemplateValue& self, const Arguments& a) {
       const std::string& affix = need_string(need_argument(a, 0, "removeprefix"), "removeprefix");
       e.charge(self.as_string().size());
       e.charge_scan(self.as_string().size());
       return self.as_string().starts_with(affix)
                  ? TemplateValue(self.as_string().substr(affix.size()))
                  : self;
     }},
    {"removesuffix",
     [](TemplateEvaluator& e, const TemplateValue& self, const Arguments& a) {
       const std::string& affix = need_string(need_argument(a, 0, "removesuffix"), "removesuffix");
       e.charge(self.as_string().size());
       e.charge_scan(self.as_string().size());
       return self.as_string().ends_with(affix) ? TemplateValue(self.as_string().substr(
                                                      0, self.as_string().size() - affix.size()))
                                                : self;
     }},
    {"ljust", [](TemplateEvaluator& e, const TemplateValue& self,
                 const Arguments& a) { return pad_string(e, self, a, 0); }},
    {"center", [](TemplateEvaluator& e, const TemplateValue& self,
                  const Arguments& a) { return pad_string(e, self, a, 1); }},
    {"rjust", [](TemplateEvaluator& e, const TemplateValue& self,
                 const Arguments& a) { return pad_string(e, self, a, 2); }},
    {"format", format_braces},
};

TemplateValue dict_parts(TemplateEvaluator& evaluator, const TemplateValue& self, bool keys,
                         bool values) {
  ValueList items;
  evaluator.charge(self.as_dict().entries().size() * 64);
  for (const auto& [key, value] : self.as_dict().entries())
    items.push_back(keys && values ? TemplateValue::tuple({key, value}) : keys ? key : value);
  return TemplateValue::list(std::move(items));
}

constexpr NamedMethod kDictMethods[] = {
    {"items", [](TemplateEvaluator& e, const TemplateValue& self,
                 const Arguments&) { return dict_parts(e, self, true, true); }},
    {"keys", [](TemplateEvaluator& e, const TemplateValue& self,
                const Arguments&) { return dict_parts(e, self, true, false); }},
    {"values", [](TemplateEvaluator& e, const TemplateValue& self,
                  const Arguments&) { return dict_parts(e, self, false, true); }},
    {"copy", [](TemplateEvaluator&, const TemplateValue& self, const Arguments&) { return self; }},
    {"get",
     [](TemplateEvaluator& e, const TemplateValue& self, const Arguments& a) {
       const TemplateValue* value =
           self.as_dict().find_value(e.budget(), need_argument(a, 0, "get"));
       if (value != nullptr) return *value;
       const TemplateValue* otherwise = a.find(1, "default");
       return otherwise == nullptr ? TemplateValue() : *otherwise;
     }},
};

constexpr NamedMethod kListMethods[] = {
    {"copy", [](TemplateEvaluator&, const TemplateValue& self, const Arguments&) { return self; }},
    {"count",
     [](TemplateEvaluator& e, const TemplateValue& self, const Arguments& a) {
       const TemplateValue& wanted = need_argument(a, 0, "count");
       e.charge_steps(static_cast<std::int64_t>(self.items().size()));
       return TemplateValue(static_cast<std::int64_t>(std::count_if(
           self.items().begin(), self.items().end(),
           [&](const TemplateValue& item) { return equal_values(e.budget(), item, wanted); })));
     }},
    {"index",
     [](TemplateEvaluator& e, const TemplateValue& self, const Arguments& a) {
       const TemplateValue& wanted = need_argument(a, 0, "index");
       a.check("index", {"value"});
       e.charge_steps(static_cast<std::int64_t>(self.items().size()));
       const auto at = std::find_if(
           self.items().begin(), self.items().end(),
           [&](const TemplateValue& item) { return equal_values(e.budget(), item, wanted); });
       if (at == self.items().end())
         fail_python("ValueError", wanted.repr(e.budget()) + " is not in list");
       return TemplateValue(static_cast<std::int64_t>(at - self.items().begin()));
     }},
};

/// Methods that change their object: the sandbox hides them.
bool is_mutating(const TemplateValue& object, std::string_view name) {
  static const std::set<std::string_view> list_methods = {"append", "clear", "pop",    "reverse",
                                                          "insert", "sort",  "extend", "remove"};
  static const std::set<std::string_view> dict_methods = {"clear", "pop", "popitem", "setdefault",
                                                          "update"};
  return (object.is_list() && list_methods.contains(name)) ||
         (object.is_dict() && dict_methods.contains(name));
}

/// Python's methods of str that are not built here.
bool is_missing_string_method(std::string_view name) {
  static const std::set<std::string_view> names = {
      "encode",  "expandtabs", "format_map", "isascii",  "isidentifier", "isprintable",
      "istitle", "maketrans",  "rindex",     "swapcase", "translate",    "zfill"};
  return names.contains(name);
}

TemplateValue loop_attribute(const TemplateValue& object, std::string_view name) {
  const LoopState& loop = object.as_loop();
  const auto index = static_cast<std::int64_t>(loop.index),
             size = static_cast<std::int64_t>(loop.items.size());
  if (name == "index") return index + 1;
  if (name == "index0") return index;
  if (name == "revindex") return size - index;
  if (name == "revindex0") return size - index - 1;
  if (name == "first") return index == 0;
  if (name == "last") return index + 1 == size;
  if (name == "length") return size;
  if (name == "depth") return loop.depth;
  if (name == "depth0") return loop.depth - 1;
  if (name == "previtem")
    return index > 0 ? loop.items[loop.index - 1]
                     : TemplateValue::undefined("there is no previous item");
  if (name == "nextitem")
    return index + 1 < size ? loop.items[loop.index + 1]
                            : TemplateValue::undefined("there is no next item");
  return TemplateValue::undefined("'jinja2.runtime.LoopContext object' has no attribute '" +
                                  std::string(name) + "'");
}

TemplateValue loop_cycle(TemplateEvaluator&, const TemplateValue& self,
                         const Arguments& arguments) {
  if (arguments.positional.empty()) fail_type("no items for cycling given");
  return arguments.positional[self.as_loop().index % arguments.positional.size()];
}

TemplateValue loop_changed(TemplateEvaluator& evaluator, const TemplateValue& self,
                           const Arguments& arguments) {
  LoopState& loop = self.as_loop();
  const bool same =
      loop.has_changed_value &&
      std::equal(loop.changed_value.begin(), loop.changed_value.end(), arguments.positional.begin(),
                 arguments.positional.end(), [&](const TemplateValue& a, const TemplateValue& b) {
                   return equal_values(evaluator.budget(), a, b);
                 });
  evaluator.charge_steps(static_cast<std::int64_t>(arguments.positional.size()));
  for (const TemplateValue& value : arguments.positional) {
    if (value.depth() == 0) continue;
    evaluator.charge(sizeof(LoopState) + loop.items.size() * sizeof(TemplateValue));
    evaluator.keep(self.loop());
    break;
  }
  loop.has_changed_value = true;
  loop.changed_value = arguments.positional;
  return !same;
}

constexpr NamedMethod kLoopMethods[] = {{"cycle", loop_cycle}, {"changed", loop_changed}};

TemplateValue bind(TemplateEvaluator& evaluator, const TemplateValue& object,
                   const NamedMethod& named) {
  auto box = std::make_shared<CallableBox>();
  box->type_name = "builtin_function_or_method";
  box->name = std::string(named.name);
  // A rendering has one evaluator, which outlives the values.
  box->call = [&evaluator, object, method = named.method](const CallArguments& arguments) {
    return method(evaluator, object, arguments);
  };
  box->depth = object.depth() + 1;
  check_value_depth(box->depth);
  evaluator.charge(sizeof(CallableBox));
  return TemplateValue(TemplateValue::Callable(std::move(box)));
}

std::string object_name(const TemplateValue& object) {
  return object.is_none() ? "None" : object.type_name() + " object";
}

}  // namespace

TemplateValue find_method(TemplateEvaluator& evaluator, const TemplateValue& object,
                          const std::string& name) {
  const auto search = [&](auto&& methods) -> TemplateValue {
    for (const NamedMethod& named : methods) {
      if (named.name == name) return bind(evaluator, object, named);
    }
    return TemplateValue::undefined("");
  };
  if (object.is_string()) return search(kStringMethods);
  if (object.is_dict()) return search(kDictMethods);
  if (object.is_sequence()) return search(kListMethods);
  if (object.is_loop()) return search(kLoopMethods);
  return TemplateValue::undefined("");
}

TemplateValue get_attribute(TemplateEvaluator& evaluator, const TemplateValue& object,
                            const std::string& name) {
  require_defined(object);
  if (is_mutating(object, name) || name.starts_with("__")) {
    return TemplateValue::undefined(
        "access to attribute '" + name + "' of '" + object.type_name() + "' object is unsafe.",
        "SecurityError");
  }
  TemplateValue method = find_method(evaluator, object, name);
  if (!method.is_undefined()) return method;
  if (object.is_dict()) {
    if (const TemplateValue* item = object.as_dict().find(name)) return *item;
  }
  if (object.is_namespace()) {
    evaluator.charge_steps(static_cast<std::int64_t>(object.as_namespace().attributes.size() / 16));
    for (const auto& [present, value] : object.as_namespace().attributes) {
      if (present == name) return value;
    }
  }
  if (object.is_tuple()) {
    const std::vector<std::string>& names = object.as_tuple().names;
    const auto found = std::find(names.begin(), names.end(), name);
    if (found != names.end())
      return object.items()[static_cast<std::size_t>(found - names.begin())];
  }
  if (object.is_loop()) return loop_attribute(object, name);
  if (object.is_callable()) {
    for (const auto& [present, value] : object.as_callable().attributes) {
      if (present == name) return value;
    }
  }
  if (object.is_string() && is_missing_string_method(name))
    fail_unsupported(evaluator.line(), "the method '" + name + "' of str");
  return TemplateValue::undefined("'" + object_name(object) + "' has no attribute '" + name + "'");
}

TemplateValue get_item(TemplateEvaluator& evaluator, const TemplateValue& object,
                       const TemplateValue& key) {
  require_defined(object);
  if (key.is_undefined())
    return TemplateValue::undefined(object_name(object) + " has no element Undefined");
  if (object.is_dict()) {
    if (const TemplateValue* item = object.as_dict().find_value(evaluator.budget(), key))
      return *item;
  }
  if ((object.is_sequence() || object.is_string()) && (key.is_int() || key.is_bool())) {
    const std::int64_t size = length_of(evaluator, object);
    const std::int64_t at = key.as_int() < 0 ? key.as_int() + size : key.as_int();
    if (at >= 0 && at < size) {
      if (object.is_sequence()) return object.items()[static_cast<std::size_t>(at)];
      evaluator.charge_scan(object.as_string().size());
      std::string_view rest = object.as_string();
      for (std::int64_t i = 0; i < at; ++i) rest.remove_prefix(character_size(rest));
      return TemplateValue::text(rest.substr(0, character_size(rest)));
    }
  }
  if (key.is_string()) return get_attribute(evaluator, object, key.as_string());
  return TemplateValue::undefined(object_name(object) + " has no element " +
                                  key.repr(evaluator.budget()));
}

TemplateValue get_path(TemplateEvaluator& evaluator, const TemplateValue& object,
                       const TemplateValue& path, const TemplateValue* otherwise) {
  const bool replaces = otherwise != nullptr && !otherwise->is_none();
  if (!path.is_string()) {
    TemplateValue item = get_item(evaluator, object, path);
    return replaces && item.is_undefined() ? *otherwise : item;
  }
  TemplateValue at = object;
  const std::string& text = path.as_string();
  for (std::size_t start = 0; start <= text.size();) {
    evaluator.charge_steps(1);
    const std::size_t dot = std::min(text.find('.', start), text.size());
    const std::string part = text.substr(start, dot - start);
    const bool is_number = !part.empty() && part.size() < 10 &&
                           part.find_first_not_of("0123456789") == std::string::npos;
    at = get_item(evaluator, at,
                  is_number ? TemplateValue(static_cast<std::int64_t>(std::stoll(part)))
                            : TemplateValue(part));
    if (replaces && at.is_undefined()) at = *otherwise;
    start = dot + 1;
  }
  return at;
}

}  // namespace rl
