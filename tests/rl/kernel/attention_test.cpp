#include "rl/kernel/attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "for_each_isa.h"
#include "random_values.h"

namespace rl::kernel {
namespace {

struct Case {
  std::int64_t heads;
  std::int64_t kv_heads;
  std::int64_t head_dim;
  std::int64_t tokens;
  std::int64_t window = 0;
  float softcap = 0.0F;
};

const std::vector<Case> kCases = {{4, 2, 12, 20},
                                  {9, 3, 64, 77},
                                  {2, 2, 80, 33},
                                  {4, 1, 128, 50},
                                  {1, 1, 16, 1},
                                  {3, 1, 40, 16},
                                  {4, 2, 12, 20, 8},
                                  {9, 3, 64, 77, 1},
                                  {1, 1, 16, 70, 5},
                                  {4, 4, 24, 90, 33},
                                  {4, 1, 128, 50, 17, 2.0F},
                                  {4, 2, 16, 20, 0, 0.5F}};

struct Inputs {
  explicit Inputs(const Case& c)
      : shape{.heads = c.heads,
              .kv_heads = c.kv_heads,
              .head_dim = c.head_dim,
              .scale = 1.0F / std::sqrt(static_cast<float>(c.head_dim)),
              .softcap = c.softcap,
              .window = c.window},
        tokens(c.tokens),
        q(random_values(tokens * c.heads * c.head_dim, 1, 3.0F)),
        k(random_values(tokens * c.kv_heads * c.head_dim, 2)),
        v(random_values(tokens * c.kv_heads * c.head_dim, 3)) {}

  std::int64_t q_width() const { return shape.heads * shape.head_dim; }
  std::int64_t kv_width() const { return shape.kv_heads * shape.head_dim; }

  AttentionSequence packed(std::int64_t first, std::int64_t count) const {
    return {.keys = k.data(),
            .values = v.data(),
            .token_stride = kv_width(),
            .query_row = first,
            .query_count = count,
            .first_position = first};
  }

  AttentionShape shape;
  std::int64_t tokens;
  std::vector<float> q, k, v;
};

// All queries at once over packed keys.
std::vector<float> whole(const Inputs& in, std::vector<float>* log_normalizer = nullptr) {
  ThreadPool pool(2);
  std::vector<float> out(in.q.size());
  if (log_normalizer != nullptr)
    log_normalizer->resize(static_cast<std::size_t>(in.tokens * in.shape.heads));
  const AttentionSequence sequence = in.packed(0, in.tokens);
  attention(pool, in.shape, in.q.data(), 0, std::span(&sequence, 1), out.data(), 0,
            log_normalizer ? log_normalizer->data() : nullptr);
  return out;
}

TEST(Attention, EqualsSoftmaxInDoublePrecision) {
  for_each_isa([] {
    for (const Case& c : kCases) {
      const Inputs in(c);
      std::vector<float> log_normalizer;
      const std::vector<float> out = whole(in, &log_normalizer);
      for (std::int64_t r = 0; r < in.tokens; ++r) {
        for (std::int64_t h = 0; h < c.heads; ++h) {
          const std::int64_t kv = h / (c.heads / c.kv_heads) * c.head_dim;
          std::vector<double> p;
          double sum = 0;
          const std::int64_t first = c.window > 0 ? std::max<std::int64_t>(0, r + 1 - c.window) : 0;
          for (std::int64_t t = 0; t <= r; ++t) {
            double score = 0;
            for (std::int64_t d = 0; d < c.head_dim; ++d) {
              score += double{in.q[r * in.q_width() + h * c.head_dim + d]} *
                       double{in.k[t * in.kv_width() + kv + d]};
            }
            score *= double{in.shape.scale};
            if (c.softcap > 0.0F) score = double{c.softcap} * std::tanh(score / double{c.softcap});
            p.push_back(t < first ? 0.0 : std::exp(score));
            sum += p.back();
          }
          ASSERT_NEAR(log_normalizer[r * c.heads + h], std::log(sum), 1e-5);
          for (std::int64_t d = 0; d < c.head_dim; ++d) {
            double expected = 0;
            for (std::int64_t t = 0; t <= r; ++t)
              expected += p[t] / sum * double{in.v[t * in.kv_width() + kv + d]};
            ASSERT_NEAR(out[r * in.q_width() + h * c.head_dim + d], expected, 2e-6)
                << c.head_dim << ": " << r << " " << h << " " << d;
          }
        }
      }
    }
  });
}

TEST(Attention, GivesTheSameBitsOnEveryInstructionSet) {
  for (const Case& c : kCases) {
    const Inputs in(c);
    std::vector<std::vector<float>> results;
    for_each_isa([&] { results.push_back(whole(in)); });
    for (const std::vector<float>& result : results) ASSERT_EQ(result, results.front());
  }
}

// Decoding over pages, token by token, against the whole prompt over packed memory; unused memory
// is poisoned with NaN.
TEST(Attention, GivesTheSameBitsPagedTokenByTokenAsPackedAtOnce) {
  for_each_isa([] {
    for (const Case& c : kCases) {
      const Inputs in(c);
      const std::vector<float> expected = whole(in);
      for (std::int64_t block_tokens : {16, 32}) {
        const std::int64_t blocks = (in.tokens + block_tokens - 1) / block_tokens;
        const std::int64_t stride = 2 * block_tokens * in.kv_width();  // keys, then values
        std::vector<float> cache(static_cast<std::size_t>(blocks * stride),
                                 std::numeric_limits<float>::quiet_NaN());
        std::vector<std::int32_t> table;
        for (std::int64_t b = 0; b < blocks; ++b)
          table.push_back(static_cast<std::int32_t>(blocks - 1 - b));
        std::vector<float> out(in.q.size());
        ThreadPool pool(2);
        for (std::int64_t t = 0; t < in.tokens; ++t) {
          float* slot =
              cache.data() + table[t / block_tokens] * stride + t % block_tokens * in.kv_width();
          std::copy_n(in.k.data() + t * in.kv_width(), in.kv_width(), slot);
          std::copy_n(in.v.data() + t * in.kv_width(), in.kv_width(),
                      slot + block_tokens * in.kv_width());
          const AttentionSequence sequence{.keys = cache.data(),
                                           .values = cache.data() + block_tokens * in.kv_width(),
                                           .token_stride = in.kv_width(),
                                           .blocks = table.data(),
                                           .block_tokens = block_tokens,
                                           .block_stride = stride,
                                           .query_row = t,
                                           .query_count = 1,
                                           .first_position = t};
          attention(pool, in.shape, in.q.data(), 0, std::span(&sequence, 1), out.data(), 0);
        }
        ASSERT_EQ(out, expected) << "head_dim " << c.head_dim << ", blocks of " << block_tokens;
      }
    }
  });
}

TEST(Attention, GivesTheSameBitsInPieces) {
  const Inputs in({9, 3, 64, 77});
  const std::vector<float> expected = whole(in);
  ThreadPool pool(3);
  for (std::int64_t piece : {2, 5, 16, 30}) {
    std::vector<AttentionSequence> pieces;  // as if they were separate sequences that come together
    for (std::int64_t first = 0; first < in.tokens; first += piece)
      pieces.push_back(in.packed(first, std::min(piece, in.tokens - first)));
    std::vector<float> out(in.q.size());
    attention(pool, in.shape, in.q.data(), 0, pieces, out.data(), 0);
    ASSERT_EQ(out, expected) << piece;
  }
}

}  // namespace
}  // namespace rl::kernel
