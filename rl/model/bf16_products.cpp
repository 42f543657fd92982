#include "rl/model/bf16_products.h"

namespace rl {
namespace {

thread_local bool bf16 = false;

}  // namespace

Bf16Products::Bf16Products(bool on) : before_(bf16) { bf16 = bf16 || on; }

Bf16Products::~Bf16Products() { bf16 = before_; }

bool Bf16Products::in_use() { return bf16; }

at::Tensor as_factor(const at::Tensor& t) { return bf16 && t.defined() ? t.to(at::kBFloat16) : t; }

}  // namespace rl
