#include "runtime/node/preemption.h"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <nlohmann/json.hpp>

#include "runtime/core/duration.h"
#include "runtime/core/json.h"

namespace runtime {

namespace {

constexpr std::size_t kTokenMax = 1024;
constexpr std::size_t kQuotedMax = 60;
constexpr std::chrono::hours kFarAhead{
    1};  // a time that is of no use: the notice counts, and the node drains as if it had none
constexpr std::chrono::hours kNoNotice{24};  // what no clock is wrong by

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

/// The beginning, on one line, of what may be anything.
std::string quoted(std::string_view text) {
  std::string shown(text.substr(0, kQuotedMax));
  for (char& c : shown) {
    if (static_cast<unsigned char>(c) < ' ' || static_cast<unsigned char>(c) > 126) c = '.';
  }
  return "'" + shown + (text.size() > kQuotedMax ? "...'" : "'");
}

/// "2026-09-18T08:22:00Z"
std::optional<std::chrono::milliseconds> unix_time(const std::string& text) {
  std::tm at{};
  int end = 0;
  const int read = std::sscanf(text.c_str(), "%4d-%2d-%2dT%2d:%2d:%2dZ%n", &at.tm_year, &at.tm_mon,
                               &at.tm_mday, &at.tm_hour, &at.tm_min, &at.tm_sec, &end);
  if (read != 6 || end != static_cast<int>(text.size())) return std::nullopt;
  const auto within = [](int value, int least, int most) {
    return value >= least && value <= most;
  };
  if (!within(at.tm_year, 1970, 9999) || !within(at.tm_mon, 1, 12) || !within(at.tm_mday, 1, 31))
    return std::nullopt;
  if (!within(at.tm_hour, 0, 23) || !within(at.tm_min, 0, 59) || !within(at.tm_sec, 0, 60))
    return std::nullopt;
  at.tm_year -= 1900;
  at.tm_mon -= 1;
  return std::chrono::seconds(::timegm(&at));
}

}  // namespace

Result<PreemptionUrl> PreemptionUrl::parse(const std::string& text) {
  if (text == "aws") return PreemptionUrl{Kind::kAws, "169.254.169.254", "80"};
  if (text == "gcp") return PreemptionUrl{Kind::kGcp, "metadata.google.internal", "80"};
  const auto wrong = [&](const std::string& why) {
    return invalid_argument("'" + text + "' " + why +
                            ": expected aws, gcp, aws+http://HOST:PORT or gcp+http://HOST:PORT");
  };
  PreemptionUrl url;
  std::string_view rest = text;
  if (rest.starts_with("aws+"))
    url.kind = Kind::kAws;
  else if (rest.starts_with("gcp+"))
    url.kind = Kind::kGcp;
  else
    return wrong("does not say whose metadata endpoint it is");
  rest.remove_prefix(4);
  if (!rest.starts_with("http://"))
    return wrong("is not a plain http address, which metadata endpoints are");
  rest.remove_prefix(7);
  if (rest.ends_with('/')) rest.remove_suffix(1);
  if (rest.find_first_of("/?#@ \t\r\n") != std::string_view::npos)
    return wrong("has more than a host and a port");
  const std::size_t bracket = rest.starts_with('[') ? rest.find(']') : std::string_view::npos;
  if (rest.starts_with('[') && bracket == std::string_view::npos)
    return wrong("lacks the ] of its address");
  const std::size_t colon = rest.find(':', bracket == std::string_view::npos ? 0 : bracket);
  url.host = rest.substr(0, colon);
  if (bracket != std::string_view::npos) url.host = rest.substr(1, bracket - 1);
  if (colon != std::string_view::npos) url.port = rest.substr(colon + 1);
  const bool is_number =
      !url.port.empty() && url.port.size() <= 5 &&
      std::all_of(url.port.begin(), url.port.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (url.host.empty() || !is_number || std::stoi(url.port) < 1 || std::stoi(url.port) > 65535)
    return wrong("has no host, or no port from 1 to 65535");
  return url;
}

Result<PreemptionAnswer> read_preemption_words(std::string_view text) {
  const std::string_view words = trimmed(text);
  if (words.empty() || words == "none") return PreemptionAnswer();
  constexpr std::string_view kPreempted = "preempted";
  if (!words.starts_with(kPreempted))
    return invalid_argument("it says " + quoted(words) +
                            "; expected nothing, none, preempted, or preempted and the time left, "
                            "like 'preempted 25s'");
  std::string_view rest = words.substr(kPreempted.size());
  if (rest.empty()) return PreemptionAnswer(PreemptionNotice{"preemption", std::nullopt});
  const auto left = rest.front() == ' ' ? parse_duration(trimmed(rest))
                                        : Result<std::chrono::milliseconds>(invalid_argument(""));
  if (!left.ok())
    return invalid_argument("it says " + quoted(words) +
                            "; expected preempted and the time left, like 'preempted 25s'");
  return PreemptionAnswer(PreemptionNotice{"preemption", *left});
}

Result<PreemptionAnswer> read_aws_action(std::string_view body, std::chrono::milliseconds now) {
  const auto json = parse_json(body);
  const auto text_of = [&](const char* key) {
    const auto found = json.is_object() ? json.find(key) : json.end();
    return json.is_object() && found != json.end() && found->is_string() ? found->get<std::string>()
                                                                         : std::string();
  };
  const std::string action = text_of("action");
  if (action != "terminate" && action != "stop" && action != "hibernate") {
    return invalid_argument("it answers " + quoted(body) +
                            " instead of an action (terminate, stop or hibernate) and its time");
  }
  const auto at = unix_time(text_of("time"));
  if (!at)
    return invalid_argument("it answers " + quoted(body) +
                            ", where the time is not like 2026-09-18T08:22:00Z");
  if (*at > now + kNoNotice || *at + kNoNotice < now)
    return invalid_argument("it answers " + quoted(body) +
                            ", whose time is more than a day from this machine's clock");
  PreemptionNotice notice{"preemption: " + action + " at " + text_of("time"), std::nullopt};
  if (*at > now && *at - now <= kFarAhead) notice.left = *at - now;
  return PreemptionAnswer(std::move(notice));
}

Result<PreemptionAnswer> read_gcp_preempted(std::string_view body) {
  const std::string_view word = trimmed(body);
  if (word == "FALSE") return PreemptionAnswer();
  if (word == "TRUE") return PreemptionAnswer(PreemptionNotice{"preemption", std::nullopt});
  return invalid_argument("it answers " + quoted(body) + " instead of TRUE or FALSE");
}

Result<std::string> read_aws_token(std::string_view body) {
  const std::string_view token = trimmed(body);
  const bool is_word = std::all_of(token.begin(), token.end(), [](char c) {
    return c > ' ' && c < 127 && c != '<' && c != '>';
  });
  if (token.empty() || token.size() > kTokenMax || !is_word)
    return invalid_argument("it answers " + quoted(body) + " instead of a token");
  return std::string(token);
}

}  // namespace runtime
