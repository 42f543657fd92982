#include "rl/rollout/beam_search.h"

#include <algorithm>
#include <cmath>

#include "runtime/core/check.h"

namespace rl {
namespace {

bool better(const BeamCandidate& a, const BeamCandidate& b) {
  if (a.score != b.score) return a.score > b.score;
  return a.beam != b.beam ? a.beam < b.beam : a.id < b.id;
}

}  // namespace

BeamSearch::BeamSearch(const BeamSearchParams& params, std::vector<std::int32_t> stop_ids,
                       std::int64_t new_tokens_max)
    : params_(params), stop_ids_(std::move(stop_ids)), new_tokens_max_(new_tokens_max), live_(1) {
  CHECK(params_.width > 0);
  CHECK(new_tokens_max_ > 0);
}

// Enough that `width` go on even when every beam could stop in every way.
std::int64_t BeamSearch::candidates_per_beam() const {
  return std::max<std::int64_t>(2, 1 + static_cast<std::int64_t>(stop_ids_.size())) * params_.width;
}

bool BeamSearch::stops(std::int32_t id) const {
  return std::find(stop_ids_.begin(), stop_ids_.end(), id) != stop_ids_.end();
}

// Behind those of an equal score, which were there before.
void BeamSearch::add_hypothesis(Beam beam) {
  const auto worse = [](const Beam& a, const Beam& b) { return a.score > b.score; };
  finished_.insert(std::upper_bound(finished_.begin(), finished_.end(), beam, worse),
                   std::move(beam));
  if (static_cast<std::int64_t>(finished_.size()) > params_.width) finished_.pop_back();
}

std::int64_t BeamSearch::advance(std::vector<BeamCandidate> candidates) {
  for (BeamCandidate& candidate : candidates) candidate.score += live_[candidate.beam].score;
  std::erase_if(candidates,
                [](const BeamCandidate& candidate) { return !std::isfinite(candidate.score); });
  std::sort(candidates.begin(), candidates.end(), better);
  const auto kept = static_cast<std::size_t>(candidates_per_beam());
  if (candidates.size() > kept) candidates.resize(kept);
  ++length_;

  const auto width = static_cast<std::size_t>(params_.width);
  const bool full =
      finished_.size() == width && params_.early_stopping == BeamSearchParams::Stop::kFirst;
  const auto divisor = static_cast<float>(
      std::pow(static_cast<double>(length_), static_cast<double>(params_.length_penalty)));
  std::vector<Beam> next;
  std::vector<Beam> ended;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const BeamCandidate& candidate = candidates[i];
    const bool stopped = stops(candidate.id);
    const bool ends = stopped || length_ >= new_tokens_max_;
    if (ends ? i >= width || full || !improvable_ : next.size() == width)
      continue;  // only the likeliest `width` may end
    Beam beam = live_[candidate.beam];
    beam.ids.push_back(candidate.id);
    beam.logprobs.push_back(candidate.logprob);
    beam.parent = candidate.beam;
    beam.score = ends ? candidate.score / divisor : candidate.score;
    beam.reason = stopped ? FinishReason::kStop : FinishReason::kLength;
    (ends ? ended : next).push_back(std::move(beam));
  }
  const auto taken = static_cast<std::int64_t>(next.size() + ended.size());
  for (Beam& beam : ended) add_hypothesis(std::move(beam));
  live_ = std::move(next);
  if (!live_.empty() && finished_.size() == width) {
    // What the best beam may reach, at its length or, told never to stop early, at the longest.
    const bool longest =
        params_.early_stopping == BeamSearchParams::Stop::kNever && params_.length_penalty > 0.0F;
    const auto length = static_cast<double>(longest ? new_tokens_max_ : length_);
    const float possible =
        live_.front().score /
        static_cast<float>(std::pow(length, static_cast<double>(params_.length_penalty)));
    improvable_ = improvable_ && possible > finished_.back().score;
  }
  if (over()) live_.clear();
  return taken;
}

bool BeamSearch::over() const {
  if (live_.empty() || !improvable_) return true;
  return params_.early_stopping == BeamSearchParams::Stop::kFirst &&
         static_cast<std::int64_t>(finished_.size()) == params_.width;
}

}  // namespace rl
