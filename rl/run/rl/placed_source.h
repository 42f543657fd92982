// PlacedSource: the samples that are trained on, on the workers that train them, with what
// references say of them.
#pragma once

#include <memory>
#include <utility>

#include "rl/run/rl/balancer.h"
#include "rl/run/rl/references.h"
#include "rl/run/rl/sample_source.h"

namespace rl {

/// For sources that leave out or add samples after scoring: balances, and asks references, once it
/// is known which samples there are.
class PlacedSource : public SourceDecorator {
 public:
  PlacedSource(std::unique_ptr<SampleSource> inner, Balancer& balancer, References& references)
      : SourceDecorator(std::move(inner)), balancer_(balancer), references_(references) {}

  runtime::Result<StepBatch> next(const SampleRequest& request, StepTimer& timer) override {
    runtime::Result<StepBatch> batch = inner().next(request, timer);
    if (!batch.ok()) return batch;
    runtime::Status status = balancer_.balance(*batch);
    timer.lap("gen");
    if (status.ok()) status = references_.ask(*batch, timer);
    if (!status.ok()) return status;
    return batch;
  }

 private:
  Balancer& balancer_;
  References& references_;
};

}  // namespace rl
