// Evaluation of a model by scored answers. Pure functions.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace rl {

struct EvaluatedAnswer {
  std::string text;
  std::string answer;  // what is voted with
  double score = 0.0;
  bool right = false;
  bool cut = false;  // the limit of tokens ended it
  std::int64_t tokens = 0;
  std::string error;  // why there is no answer or no score; such a one is not right
};

struct EvaluatedPrompt {
  std::string prompt;
  std::string expected;
  std::string data_source;
  std::string where;
  std::vector<EvaluatedAnswer> answers;  // as many for every prompt
};

/// A mean over prompts, with its 95 % confidence interval.
struct Estimate {
  double value = 0.0;
  double low = 0.0;
  double high = 1.0;
};

struct EvaluationSummary {
  std::string data_source;
  std::int64_t prompts = 0;
  std::int64_t answers = 0;  // with the errors
  std::int64_t errors = 0;
  Estimate accuracy;                          // the share of right answers
  double score = 0.0;                         // mean of those that have one
  double tokens = 0.0;                        // mean
  double cut = 0.0;                           // share of answers
  std::map<std::int64_t, Estimate> pass;      // by k, from 2
  std::map<std::int64_t, Estimate> majority;  // by k, from 3
};

/// The probability that of k answers drawn from these n at least one is right, c of which are: 1 -
/// C(n-c, k) / C(n, k). Chen et al. 2021, arXiv:2107.03374, equation 1. CHECKs 0 <= c <= n and 1 <=
/// k <= n.
double pass_at(std::int64_t n, std::int64_t c, std::int64_t k);

/// How often the most frequent answer of k is right, over the n / k blocks of k answers in a row.
/// Of answers that tie each counts its part; errors do not vote.
double majority_at(const std::vector<EvaluatedAnswer>& answers, std::int64_t k);

/// The mean of values in [0, 1] of independent prompts, with Wilson's score interval (1927). The
/// interval is exact in form where values are 0 or 1, wider than need be where they are means. It
/// does not collapse where all agree.
Estimate estimate(const std::vector<double>& values);

/// One summary per data source by name, then "all" where there are several. k are the powers of two
/// up to the number of answers, and that number.
std::vector<EvaluationSummary> summarize(const std::vector<EvaluatedPrompt>& prompts);

}  // namespace rl
