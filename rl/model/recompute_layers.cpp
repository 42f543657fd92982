#include "rl/model/recompute_layers.h"

namespace rl {
namespace {

thread_local bool recompute = false;

}  // namespace

RecomputeLayers::RecomputeLayers(bool on) : before_(recompute) { recompute = recompute || on; }

RecomputeLayers::~RecomputeLayers() { recompute = before_; }

bool RecomputeLayers::in_use() { return recompute; }

}  // namespace rl
