// EncodeScratch: the working memory of an encode call, kept from call to call, since the caches
// inside make up for much of the speed.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "rl/tokenizer/added_tokens.h"
#include "rl/tokenizer/pre_tokenizer.h"
#include "rl/tokenizer/regex.h"
#include "rl/tokenizer/subword_model.h"

namespace rl {

struct EncodeScratch {
  RegexScratch regex;
  PieceList pieces;
  std::vector<Segment> segments;
  std::vector<Segment> inner_segments;
  std::string normalized;
  std::unique_ptr<ModelScratch> model;
};

/// Scratch memory of a tokenizer's calls: at most as much as there were calls at once.
class ScratchPool {
 public:
  /// Scratch for one call, given back at its end.
  class Borrowed {
   public:
    Borrowed(ScratchPool& pool, std::unique_ptr<EncodeScratch> scratch)
        : pool_(pool), scratch_(std::move(scratch)) {}
    ~Borrowed() { pool_.give_back(std::move(scratch_)); }
    Borrowed(const Borrowed&) = delete;
    Borrowed& operator=(const Borrowed&) = delete;

    EncodeScratch& operator*() { return *scratch_; }

   private:
    ScratchPool& pool_;
    std::unique_ptr<EncodeScratch> scratch_;
  };

  /// For calls of `model`, which is the same each time.
  Borrowed take(const TokenModel& model);

 private:
  void give_back(std::unique_ptr<EncodeScratch> scratch);

  std::mutex mutex_;
  std::vector<std::unique_ptr<EncodeScratch>> idle_;
};

}  // namespace rl
