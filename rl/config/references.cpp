#include "rl/config/references.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rl/config/nearest.h"
#include "rl/config/override.h"

namespace rl {
namespace {

using nlohmann::ordered_json;
using runtime::invalid_argument;
using runtime::Result;
using runtime::Status;

constexpr std::size_t kBytesMax = 16 << 20;

/// How a value reads inside a longer text: as Python prints it, since that is what paths in
/// existing configurations were made with.
std::string as_text(const ordered_json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_null()) return "None";
  if (value.is_boolean()) return value.get<bool>() ? "True" : "False";
  return value.dump();
}

bool has_reference(const ordered_json& value) {
  return value.is_string() && value.get_ref<const std::string&>().find("${") != std::string::npos;
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  std::size_t start = 0;
  while (true) {
    const std::size_t end = text.find(separator, start);
    parts.emplace_back(text.substr(start, end - start));
    if (end == std::string_view::npos) return parts;
    start = end + 1;
  }
}

std::string trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return "";
  return std::string(text.substr(first, text.find_last_not_of(" \t") - first + 1));
}

// "." leads to the section that the value stands in, each further dot one section up.
std::string absolute(const std::string& target, const std::string& path) {
  if (target.empty() || target[0] != '.') return target;
  std::size_t dots = 0;
  while (dots < target.size() && target[dots] == '.') ++dots;
  std::vector<std::string> parts = split(path, '.');
  parts.resize(parts.size() > dots ? parts.size() - dots : 0);
  std::string out;
  for (const std::string& part : parts) out += part + ".";
  return out + target.substr(dots);
}

class Resolver {
 public:
  Resolver(const ordered_json& root, const KeyTable& keys) : root_(root), keys_(keys) {}

  Result<ordered_json> node(const ordered_json& value, const std::string& path) {
    if (value.is_object() || value.is_array()) {
      ordered_json out = value.is_object() ? ordered_json::object() : ordered_json::array();
      std::size_t index = 0;
      for (const auto& [key, child] : value.items()) {
        const std::string name = value.is_object() ? key : std::to_string(index++);
        Result<ordered_json> resolved = node(child, path.empty() ? name : path + "." + name);
        if (!resolved.ok()) return resolved;
        if (value.is_object()) {
          out[key] = std::move(resolved).value();
        } else {
          out.push_back(std::move(resolved).value());
        }
      }
      return out;
    }
    if (!has_reference(value)) return value;
    if (std::find(active_.begin(), active_.end(), path) != active_.end()) {
      return invalid_argument(path + ": its references lead back to itself");
    }
    active_.push_back(path);
    Result<ordered_json> resolved = text(value.get_ref<const std::string&>(), path);
    active_.pop_back();
    if (!resolved.ok() && active_.empty()) return resolved.status().with_context(path);
    return resolved;
  }

 private:
  Status charge(std::size_t bytes) {
    bytes_ += bytes;
    return bytes_ > kBytesMax ? invalid_argument("references multiply beyond 16 MiB") : Status();
  }

  Result<ordered_json> text(std::string_view source, const std::string& path) {
    std::string out;
    for (std::size_t i = 0; i < source.size();) {
      if (source.substr(i).starts_with("\\${")) {
        out += "${";
        i += 3;
        continue;
      }
      if (!source.substr(i).starts_with("${")) {
        out += source[i++];
        continue;
      }
      int open = 1;
      std::size_t end = i + 2;
      for (; end < source.size() && open > 0; ++end)
        open += source[end] == '{' ? 1 : source[end] == '}' ? -1 : 0;
      if (open > 0)
        return invalid_argument("'}' of ${ is missing in '" + std::string(source) + "'");
      Result<ordered_json> value = reference(source.substr(i + 2, end - i - 3), path);
      if (!value.ok()) return value;
      if (i == 0 && end == source.size()) return value;
      out += as_text(*value);
      const Status status = charge(out.size());
      if (!status.ok()) return status;
      i = end;
    }
    return ordered_json(std::move(out));
  }

  Result<ordered_json> reference(std::string_view inner_source, const std::string& path) {
    std::string inner(inner_source);
    if (inner.find("${") != std::string::npos) {
      Result<ordered_json> nested = text(inner_source, path);
      if (!nested.ok()) return nested;
      inner = as_text(*nested);
    }
    const std::size_t colon = inner.find(':');
    if (colon != std::string::npos)
      return resolver(trimmed(inner.substr(0, colon)), inner.substr(colon + 1), path);
    const std::string target = absolute(trimmed(inner), path);
    Result<std::optional<ordered_json>> found = lookup(target);
    if (!found.ok()) return found.status();
    if (!found->has_value())
      return invalid_argument("${" + inner + "} refers to an " +
                              unknown_key_message(target, keys_));
    return **found;
  }

  Result<ordered_json> resolver(const std::string& name, std::string_view arguments,
                                const std::string& path) {
    const std::size_t comma = arguments.find(',');
    const std::string first = trimmed(arguments.substr(0, comma));
    const bool has_default = comma != std::string_view::npos;
    auto fallback = [&]() -> Result<ordered_json> {
      return has_default ? parse_override_value(arguments.substr(comma + 1))
                         : Result<ordered_json>(ordered_json(nullptr));
    };
    if (name == "oc.select") {
      Result<std::optional<ordered_json>> found = lookup(absolute(first, path));
      if (!found.ok()) return found.status();
      if (found->has_value() && !(**found).is_null()) return **found;
      return fallback();
    }
    if (name == "oc.env") {
      if (const char* value = std::getenv(first.c_str())) return ordered_json(value);
      if (!has_default)
        return invalid_argument("the environment variable " + first + " is not set, and ${oc.env:" +
                                first + ",default} gives no default");
      return fallback();
    }
    return invalid_argument("the resolver '" + name +
                            "' is not supported: there are oc.select and oc.env");
  }

  /// The resolved value at a path; empty when there is none.
  Result<std::optional<ordered_json>> lookup(const std::string& path) {
    const ordered_json* at = &root_;
    ordered_json passed;  // keeps a section alive that was itself a reference
    std::string so_far;
    for (const std::string& part : split(path, '.')) {
      if (has_reference(*at)) {
        Result<ordered_json> section = node(*at, so_far);
        if (!section.ok()) return section.status();
        passed = std::move(section).value();
        at = &passed;
      }
      if (!at->is_object() || !at->contains(part)) return std::optional<ordered_json>();
      at = &(*at)[part];
      so_far += so_far.empty() ? part : "." + part;
    }
    Result<ordered_json> value = node(*at, so_far);
    if (!value.ok()) return value.status();
    const Status status = charge(value->is_structured() ? value->dump().size() : 1);
    if (!status.ok()) return status;
    return std::optional<ordered_json>(std::move(value).value());
  }

  const ordered_json& root_;
  const KeyTable& keys_;             // for messages
  std::vector<std::string> active_;  // paths being resolved, outermost first
  std::size_t bytes_ = 0;
};

}  // namespace

Result<ordered_json> resolve_references(const ordered_json& tree, const KeyTable& keys) {
  return Resolver(tree, keys).node(tree, "");
}

std::optional<std::string> referred_key(std::string_view value, const std::string& path) {
  constexpr std::string_view kSelect = "oc.select:";
  if (!value.starts_with("${") || !value.ends_with('}')) return std::nullopt;
  value = value.substr(2, value.size() - 3);
  if (value.starts_with(kSelect))
    value = value.substr(kSelect.size(), value.find(',') - kSelect.size());
  if (value.empty() || value.find_first_of("${}:,") != std::string_view::npos) return std::nullopt;
  return absolute(trimmed(value), path);
}

}  // namespace rl
