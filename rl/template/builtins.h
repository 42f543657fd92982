// The built-ins of the template language. Everything throws TemplateFailure.
#pragma once

#include <string>
#include <string_view>

#include "rl/template/evaluator.h"

namespace rl {

using FilterFunction = TemplateValue (*)(TemplateEvaluator&, const TemplateValue& input,
                                         const CallArguments&);
using TestFunction = bool (*)(TemplateEvaluator&, const TemplateValue& input, const CallArguments&);

/// nullptr: no such filter, test or global function here.
FilterFunction find_filter(std::string_view name);
TestFunction find_test(std::string_view name);
/// Undefined, with a message, when there is none.
TemplateValue find_global(TemplateEvaluator& evaluator, std::string_view name);

/// a.name: a method or attribute, else the item of that name, else undefined.
TemplateValue get_attribute(TemplateEvaluator& evaluator, const TemplateValue& object,
                            const std::string& name);
/// a[key]: the item, else the attribute of that name, else undefined.
TemplateValue get_item(TemplateEvaluator& evaluator, const TemplateValue& object,
                       const TemplateValue& key);
/// "a.b.0" as filters take it. `otherwise` (may be null or none: nothing does) takes the place of
/// what is missing, at every step.
TemplateValue get_path(TemplateEvaluator& evaluator, const TemplateValue& object,
                       const TemplateValue& path, const TemplateValue* otherwise = nullptr);

/// A method bound to its object; an undefined value where the type has none of that name.
TemplateValue find_method(TemplateEvaluator& evaluator, const TemplateValue& object,
                          const std::string& name);

/// + - * / // % **, Python's way; integers beyond 64 bits are an error.
TemplateValue arithmetic(TemplateEvaluator& evaluator, std::string_view op, const TemplateValue& a,
                         const TemplateValue& b);
/// "a %s" % values, charged. Values that are left over are a TypeError where all have to be used.
std::string format_percent(TemplateEvaluator& evaluator, const std::string& format,
                           const ValueList& values, bool all_used = true);

bool contains(TemplateEvaluator& evaluator, const TemplateValue& container,
              const TemplateValue& item);
std::int64_t length_of(TemplateEvaluator& evaluator, const TemplateValue& value);

}  // namespace rl
