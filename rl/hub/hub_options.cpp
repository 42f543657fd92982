#include "rl/hub/hub_options.h"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <iterator>

#include "runtime/core/environment.h"
#include "runtime/core/rest_of.h"

namespace rl {
namespace {

namespace fs = std::filesystem;

std::string variable(const char* name) {
  const char* value = runtime::environment_variable(name);
  return value == nullptr ? "" : value;
}

bool is_true(std::string value) {
  std::transform(value.begin(), value.end(), value.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return value == "1" || value == "ON" || value == "YES" || value == "TRUE";
}

// "~/x" as a shell has it.
fs::path expanded(const std::string& path) {
  return path == "~" || path.starts_with("~/") ? fs::path(variable("HOME") + path.substr(1))
                                               : fs::path(path);
}

std::string trimmed_line(const std::string& text) {
  constexpr const char* kBlank = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(kBlank);
  return begin == text.npos ? "" : text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

fs::path home() {
  if (const std::string own = variable("HF_HOME"); !own.empty()) return expanded(own);
  if (const std::string xdg = variable("XDG_CACHE_HOME"); !xdg.empty())
    return expanded(xdg) / "huggingface";
  return fs::path(variable("HOME")) / ".cache" / "huggingface";
}

std::string find_token() {
  for (const char* name : {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"}) {
    if (std::string token = trimmed_line(variable(name)); !token.empty()) return token;
  }
  const std::string named = variable("HF_TOKEN_PATH");
  std::ifstream file(named.empty() ? home() / "token"
                                   : expanded(named));  // what `hf auth login` wrote
  return trimmed_line(runtime::rest_of(file));
}

fs::path find_cache() {
  for (const char* name : {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"}) {
    if (const std::string own = variable(name); !own.empty()) return expanded(own);
  }
  return home() / "hub";
}

}  // namespace

HubOptions HubOptions::from_environment() {
  HubOptions options;
  if (std::string endpoint = variable("HF_ENDPOINT"); !endpoint.empty()) {
    while (endpoint.ends_with('/')) endpoint.pop_back();
    options.endpoint = std::move(endpoint);
  }
  if (!is_true(variable("HF_HUB_DISABLE_IMPLICIT_TOKEN"))) options.token = find_token();
  options.cache = find_cache();
  options.offline =
      is_true(variable("HF_HUB_OFFLINE")) || is_true(variable("TRANSFORMERS_OFFLINE"));
  return options;
}

}  // namespace rl
