// Private to rl/kernel: the table of one Lanes type.
#pragma once

#include "rl/kernel/attention_generic.h"
#include "rl/kernel/int8_generic.h"
#include "rl/kernel/kernel_table.h"
#include "rl/kernel/linear_generic.h"
#include "rl/kernel/product_generic.h"
#include "rl/kernel/rows_generic.h"

namespace rl::kernel {

template <class L>
constexpr KernelTable make_table() {
  return {.linear = &linear_block<L>,
          .quantize_int8 = &quantize_int8_row<L>,
          .dequantize_int8 = &dequantize_int8_row<L>,
          .attention = &attention_block<L>,
          .rms_norm = &rms_norm_row<L>,
          .layer_norm = &layer_norm_row<L>,
          .rope_head = &rope_head<L>,
          .activate = &activate_values<L>,
          .activate_backward = &activate_backward_values<L>,
          .softcap = &softcap_values<L>,
          .exp = &exp_values<L>,
          .add = &add_values<L>,
          .softmax_sums = &softmax_sums<L>,
          .multiply = &multiply_packed<L>};
}

}  // namespace rl::kernel
