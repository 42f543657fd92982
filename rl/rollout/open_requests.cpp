#include "rl/rollout/open_requests.h"

#include <algorithm>
#include <iterator>
#include <limits>

#include "rl/model/transformer.h"
#include "rl/rollout/request_check.h"
#include "runtime/core/check.h"

namespace rl {
namespace {

std::int64_t draws_of(const Request& request) {
  if (request.sampling.beam.width > 0) return request.n;
  return std::max(request.n, request.best_of);
}

double mean_logprob(const Completion& completion) {
  if (completion.ids.empty() || completion.finish_reason == FinishReason::kError)
    return -std::numeric_limits<double>::infinity();
  double sum = 0;
  for (const float logprob : completion.logprobs) sum += double{logprob};
  return sum / static_cast<double>(completion.logprobs.size());
}

void keep_best(std::vector<Completion>& completions, std::int64_t n) {
  std::stable_sort(
      completions.begin(), completions.end(),
      [](const Completion& a, const Completion& b) { return mean_logprob(a) > mean_logprob(b); });
  completions.resize(static_cast<std::size_t>(n));
}

// Beams begin with one, which is empty.
void start_beams(RunningRequest& running, const EngineSetting& setting) {
  const SamplingParams& params = running.request.sampling;
  const Sequence& first = *running.sequences.front();
  running.beams.emplace(params.beam, setting.stop_ids(params), first.length_max - first.length());
  running.candidates.assign(1, {});
  running.beam_versions.clear();
}

}  // namespace

std::int64_t OpenRequests::rank_of(const Request& request) const {
  switch (setting_.options.policy) {
    case SchedulingPolicy::kFirstCome: break;
    case SchedulingPolicy::kLongestFirst:
      return -(request.predicted_tokens > 0 ? request.predicted_tokens
                                            : request.sampling.max_new_tokens);
    case SchedulingPolicy::kPriority:
      return request.priority == std::numeric_limits<std::int64_t>::min()
                 ? std::numeric_limits<std::int64_t>::max()
                 : -request.priority;
  }
  return 0;
}

RequestId OpenRequests::add(Request request, const runtime::Status& status,
                            EngineProgress* progress) {
  auto running = std::make_unique<RunningRequest>();
  running->id = next_id_++;
  running->request = std::move(request);
  running->progress = progress;
  const RequestId id = running->id;
  const bool sound = running->request.n >= 1 && running->request.n <= kSamplesMax;
  running->completions.resize(static_cast<std::size_t>(
      !sound        ? 1
      : status.ok() ? draws_of(running->request)
                    : running->request.n));  // never again: sequences point into it
  for (std::size_t i = 0; i < running->completions.size(); ++i) {
    running->completions[i].request = id;
    running->completions[i].sample = static_cast<std::int64_t>(i);
  }
  if (progress != nullptr) progress->total += running->completions.size();
  RunningRequest& kept = *requests_.emplace(id, std::move(running)).first->second;
  if (!status.ok()) {
    finish_all(kept, FinishReason::kError, status);
    delivered_.clear();
    return id;
  }
  start(kept);
  delivered_.clear();  // of one whose samples had all finished before
  return id;
}

// Makes the request's sequences.
void OpenRequests::start(RunningRequest& running) {
  const Request& request = running.request;
  const bool beams = request.sampling.beam.width > 0;
  const auto count =
      static_cast<std::size_t>(beams ? request.sampling.beam.width : draws_of(request));
  const std::int64_t length_max =
      static_cast<std::int64_t>(request.prompt_ids.size()) +
      std::min(setting_.context_max() - static_cast<std::int64_t>(request.prompt_ids.size()),
               request.sampling.max_new_tokens);
  running.open = beams ? 1 : static_cast<std::int64_t>(count);
  running.streams = !beams && request.best_of <= request.n;
  for (Completion& completion : running.completions) completion.length_max = length_max;
  for (std::size_t i = 0; i < count; ++i) {
    running.sequences.push_back(std::make_unique<Sequence>());
    Sequence& sequence = *running.sequences.back();
    sequence.request = &request;
    sequence.completion = beams ? &running.completions.front() : &running.completions[i];
    sequence.rank = rank_of(request);
    sequence.order = next_order_++;
    sequence.length_max = length_max;
    sequence.stretch = setting_.model.rope().stretch_of(length_max);
    sequence.beam = i;
  }
  if (request.partial.empty())
    begin(running);
  else
    go_on(running);
}

// Each sample goes on behind what there is of it, and none waits for another to read the prompt.
// Samples that come later find the prompt's blocks in the prefix cache.
void OpenRequests::go_on(RunningRequest& running) {
  const Request& request = running.request;
  for (std::size_t i = 0; i < running.sequences.size(); ++i) {
    Sequence& sequence = *running.sequences[i];
    const PartialSample& partial = request.partial[i];
    sequence.tokens = request.prompt_ids;
    sequence.tokens.insert(sequence.tokens.end(), partial.ids.begin(), partial.ids.end());
    sequence.completion->ids = partial.ids;
    sequence.completion->logprobs = partial.logprobs;
    sequence.completion->weight_versions = partial.weight_versions;
    if (!partial.finished) scheduler_.add(&sequence);
  }
  // Afterwards: with the last sample that ends the request does.
  for (std::size_t i = 0; i < request.partial.size(); ++i) {
    if (request.partial[i].finished)
      finish(*running.sequences[i],
             request.partial[i].stopped ? FinishReason::kStop : FinishReason::kLength);
  }
}

// Puts the sequences that have not finished at the beginning of the prompt, which the first of them
// reads for all.
void OpenRequests::begin(RunningRequest& running) {
  const SamplingParams& sampling = running.request.sampling;
  Sequence* leader = nullptr;
  for (const std::unique_ptr<Sequence>& sequence : running.sequences) {
    if (sequence->request == nullptr) continue;
    sequence->tokens = running.request.prompt_ids;
    sequence->held = false;
    sequence->siblings.clear();
    if (!sampling.stop_strings.empty() || (sampling.text && sampling.beam.width == 0)) {
      sequence->text = std::make_unique<CompletionText>(
          *setting_.options.tokenizer, sampling.skip_special_tokens, sampling.stop_strings,
          sampling.keep_stop_string);
    }
    if (leader == nullptr) {
      leader = sequence.get();
      leader->reads_prompt_rows = sampling.prompt_logprobs || sampling.prompt_top_logprobs > 0;
      scheduler_.add(leader);
    } else if (sampling.beam.width == 0) {
      leader->siblings.push_back(sequence.get());
    }
  }
  if (sampling.beam.width > 0 && sampling.max_new_tokens > 0) start_beams(running, setting_);
}

void OpenRequests::restart(RunningRequest& running) {
  for (const std::unique_ptr<Sequence>& sequence : running.sequences) {
    if (sequence->request == nullptr) continue;
    scheduler_.remove(sequence.get());
    Completion fresh;
    fresh.request = sequence->completion->request;
    fresh.sample = sequence->completion->sample;
    fresh.length_max = sequence->completion->length_max;
    *sequence->completion = std::move(fresh);
  }
  begin(running);
}

void OpenRequests::finish(Sequence& sequence, FinishReason reason, runtime::Status status) {
  if (sequence.request == nullptr) return;
  Completion& completion = *sequence.completion;
  completion.finish_reason = reason;
  completion.status = std::move(status);
  if (sequence.text != nullptr) {
    sequence.text->finish(false);
    completion.text = sequence.text->text();
    completion.stop_string = sequence.text->stop_string();
  }
  scheduler_.remove(&sequence);
  sequence.request = nullptr;  // marks it finished
  RunningRequest& running = of(sequence);
  if (running.progress != nullptr) ++running.progress->finished;
  if (--running.open == 0) deliver(running);
}

void OpenRequests::finish_all(RunningRequest& running, FinishReason reason,
                              const runtime::Status& status) {
  if (running.open > 0 && running.request.sampling.beam.width == 0) {
    for (const std::unique_ptr<Sequence>& sequence : running.sequences)
      finish(*sequence, reason, status);
    return;
  }
  // Beams have no completion each, and a request that was refused has no sequences.
  for (const std::unique_ptr<Sequence>& sequence : running.sequences) {
    scheduler_.remove(sequence.get());
    sequence->request = nullptr;
  }
  for (Completion& completion : running.completions) {
    completion.finish_reason = reason;
    completion.status = status;
  }
  if (running.progress != nullptr) running.progress->finished += running.completions.size();
  deliver(running);
}

void OpenRequests::deliver(RunningRequest& running) {
  const std::int64_t n = running.request.n;  // below 1: refused, with one completion that says so
  if (n >= 1 && running.request.best_of > n && std::ssize(running.completions) > n)
    keep_best(running.completions, n);
  for (Completion& completion : running.completions) finished_.push_back(std::move(completion));
  auto entry = requests_.extract(running.id);
  delivered_.push_back(std::move(entry.mapped()));
  if (requests_.empty() && prefixes_while_busy_ != nullptr) prefixes_while_busy_->clear();
}

bool OpenRequests::abort(RequestId id) {
  const auto found = requests_.find(id);
  if (found == requests_.end()) return false;
  finish_all(*found->second, FinishReason::kAborted);
  delivered_.clear();
  return true;
}

void OpenRequests::abort_all() {
  while (!requests_.empty()) finish_all(*requests_.begin()->second, FinishReason::kAborted);
  delivered_.clear();
  CHECK(scheduler_.idle());
}

void OpenRequests::restart_all() {
  for (const auto& [id, running] : requests_) restart(*running);
}

void OpenRequests::drop_computed() {
  for (const auto& [id, running] : requests_) {
    for (const std::unique_ptr<Sequence>& sequence : running->sequences) {
      if (sequence->request != nullptr) scheduler_.drop_blocks(*sequence);
    }
  }
}

std::vector<Completion> OpenRequests::take_finished(RequestId first, RequestId end) {
  const auto begin =
      std::stable_partition(finished_.begin(), finished_.end(), [&](const Completion& completion) {
        return completion.request < first || completion.request >= end;
      });
  std::vector<Completion> completions(std::make_move_iterator(begin),
                                      std::make_move_iterator(finished_.end()));
  finished_.erase(begin, finished_.end());
  std::stable_sort(completions.begin(), completions.end(),
                   [](const Completion& a, const Completion& b) { return a.request < b.request; });
  return completions;
}

}  // namespace rl
