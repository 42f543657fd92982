#include "rl/reward/user_pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <cstdint>

namespace rl {

using runtime::Result;

namespace {

constexpr std::uint32_t kMatchLimit = 1'000'000;

struct MatchDeleter {
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
};
struct ContextDeleter {
  void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
};

}  // namespace

struct UserPattern::Impl {
  explicit Impl(pcre2_code* compiled) : code(compiled) {
    pcre2_pattern_info(code, PCRE2_INFO_CAPTURECOUNT, &groups);
  }
  ~Impl() { pcre2_code_free(code); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  pcre2_code* code;
  std::uint32_t groups = 0;
};

Result<UserPattern> UserPattern::compile(const std::string& pattern) {
  int error = 0;
  PCRE2_SIZE at = 0;
  pcre2_code* code =
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                    PCRE2_UTF | PCRE2_MATCH_INVALID_UTF | PCRE2_DOTALL, &error, &at, nullptr);
  if (code == nullptr) {
    PCRE2_UCHAR message[256];
    pcre2_get_error_message(error, message, sizeof message);
    return runtime::invalid_argument("the pattern '" + pattern + "' is malformed at " +
                                     std::to_string(at) + ": " +
                                     reinterpret_cast<const char*>(message));
  }
  return UserPattern(std::make_shared<const Impl>(code));
}

bool UserPattern::has_group() const { return impl_->groups > 0; }

Result<std::optional<std::string>> UserPattern::find_last(std::string_view text) const {
  const std::unique_ptr<pcre2_match_data, MatchDeleter> data(
      pcre2_match_data_create_from_pattern(impl_->code, nullptr));
  const std::unique_ptr<pcre2_match_context, ContextDeleter> context(
      pcre2_match_context_create(nullptr));
  pcre2_set_match_limit(context.get(), kMatchLimit);
  std::optional<std::string> last;
  for (std::size_t from = 0; from <= text.size();) {
    const int found = pcre2_match(impl_->code, reinterpret_cast<PCRE2_SPTR>(text.data()),
                                  text.size(), from, 0, data.get(), context.get());
    if (found == PCRE2_ERROR_NOMATCH) break;
    if (found < 0)
      return runtime::resource_exhausted(
          "the pattern takes too long on this text: it backtracks without end");
    const PCRE2_SIZE* range = pcre2_get_ovector_pointer(data.get());
    const std::size_t group = found > 1 && range[2] != PCRE2_UNSET ? 2 : 0;
    last = range[group + 1] < range[group]
               ? std::string()
               : std::string(text.substr(range[group], range[group + 1] - range[group]));
    from = range[1] > from ? range[1] : from + 1;
  }
  return last;
}

}  // namespace rl
