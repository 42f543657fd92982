#include "runtime/node/head_absence.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "runtime/core/duration.h"
#include "runtime/core/time_text.h"

namespace runtime {

HeadAbsence::HeadAbsence(const Endpoint& head, const HeadLinkOptions& options,
                         std::function<Status()> trouble)
    : head_(head), options_(options), trouble_(std::move(trouble)) {}

std::chrono::milliseconds HeadAbsence::patience() const {
  // The node next to the head starts it again as often as it dies.
  return durable_ || head_.is_unix() ? options_.patience : options_.patience_brief;
}

Status HeadAbsence::check_patience() const {
  if (steady_now() - since_ <= patience()) return {};
  return unavailable("the head has been away for " + std::to_string(patience().count() / 1000) +
                     " s: " + why_.message() + trouble_text());
}

Deadline HeadAbsence::too_long_at(Contact contact) const {
  if (contact == Contact::kUp) return heard_ + options_.mute_max;
  return since_ + (contact == Contact::kRegistering || head_.is_unix() ? options_.mute_max
                                                                       : options_.away_max);
}

std::string HeadAbsence::trouble_text() const {
  const Status trouble = trouble_ ? trouble_() : Status();
  return trouble.ok() ? "" : ": " + trouble.message();
}

Status HeadAbsence::describe(Contact contact) const {
  const bool is_up = contact == Contact::kUp;
  const auto milliseconds = [](Deadline::duration time) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(time);
  };
  const auto away = milliseconds(steady_now() - (is_up ? heard_ : since_));
  const bool is_local = head_.is_unix();
  std::string text =
      is_local ? "the head on this machine" : "the head at " + head_.for_worker({}).to_string();
  text += " has not answered since " +
          time_text(unix_milliseconds() - static_cast<std::uint64_t>(away.count())) + " (" +
          describe_duration(away) + ")";
  if (!is_up && !why_.ok()) text += ": " + why_.message();
  if (!is_up) text += trouble_text();
  text +=
      ". Meanwhile actors, calls between them and objects keep working; requests that the head "
      "must answer wait";
  if (is_local)
    return unavailable(
        text +
        ". Its node starts it again as soon as its process has ended (a process that was stopped "
        "has not). head.log in the session's logs says what keeps it from staying");
  if (!is_up) {
    const auto left =
        std::max(std::chrono::milliseconds(0), milliseconds(since_ + patience() - steady_now()));
    text += ". This node waits another " + describe_duration(left) + " and ends then";
  }
  const char* cure = durable_ ? ". Start it again at the same address, with its journal (starling "
                                "start --head --journal), or end this node with starling stop"
                              : ". Its cluster had no journal that outlives its node (starling "
                                "start --head --journal): start a new one";
  return unavailable(text + cure);
}

}  // namespace runtime
