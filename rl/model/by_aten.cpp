#include "rl/model/by_aten.h"

namespace rl::forward {
namespace {

thread_local bool by_aten = false;

}  // namespace

ByAten::ByAten(bool on) : before_(by_aten) { by_aten = by_aten || on; }

ByAten::~ByAten() { by_aten = before_; }

bool by_kernels(const at::Tensor& t) { return t.device().is_cpu() && !by_aten; }

}  // namespace rl::forward
