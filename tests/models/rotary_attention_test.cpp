// nn::RotaryAttention: projections that lie together are those apart, what a window hides, norms of
// queries and keys, what does not fit together.
#include "nn/rotary_attention.h"

#include <gtest/gtest.h>

#include <vector>

#include "backends/cpu/cpu_backend.h"
#include "base/error.h"
#include "frontend/amp.h"
#include "frontend/eager.h"
#include "frontend/random.h"
#include "models/state_dict.h"
#include "ops/binary.h"
#include "ops/constant.h"
#include "optim/sgd.h"
#include "types/tolerance.h"

namespace aloft::nn {
namespace {

constexpr std::int64_t kDim = 10, kHeads = 4, kLength = 7;

struct Model : Module {
  Model() {
    static const bool once = (use_device(cpu_device()), true);
    (void)once;
  }
};

std::vector<float> rows_of(const VariablePtr& v) {
  std::vector<float> out(static_cast<std::size_t>(v->type.shape.max_numel()));
  models::read_state(*v, 0, out);
  return out;
}

std::vector<float> numbers() {
  std::vector<float> x;
  for (int i = 0; i < kLength * kDim; ++i) x.push_back(static_cast<float>((i * 37) % 23) / 11 - 1);
  return x;
}

std::vector<float> said_by(const RotaryAttention& attention, const std::vector<float>& x) {
  const NoGrad no_grad;
  return attention(from_floats(x, {1, kLength, kDim}), iota(kLength, DType::I32)).to_floats();
}

void expect_alike(const std::vector<float>& got, const std::vector<float>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < got.size(); ++i)
    EXPECT_NEAR(got[i], want[i], allowed_error(DType::F32, 64, 1, 1)) << i;
}

// The weights of `apart`, in the order in which `joined` has them.
void give_weights(const RotaryAttention& apart, RotaryAttention& joined, QkvLayout layout) {
  const std::int64_t row = kDim, width = apart.width() * row;
  const std::vector<float> of[] = {rows_of(apart.q_proj->weight), rows_of(apart.k_proj->weight),
                                   rows_of(apart.v_proj->weight)};
  std::vector<float> all;
  if (layout == QkvLayout::Joined) {
    for (const auto& rows : of) all.insert(all.end(), rows.begin(), rows.end());
  } else {
    for (std::int64_t h = 0; h < apart.heads(); ++h)
      for (const auto& rows : of)
        all.insert(all.end(), rows.begin() + h * width, rows.begin() + (h + 1) * width);
  }
  models::write_state(*joined.qkv_proj->weight, 0, all);
  models::write_state(*joined.o_proj->weight, 0, rows_of(apart.o_proj->weight));
}

TEST(RotaryAttention, ProjectionsTogetherAreThoseApart) {
  for (const QkvLayout layout : {QkvLayout::Joined, QkvLayout::ByHeads})
    for (const QueryKeyNorm norm : {QueryKeyNorm::None, QueryKeyNorm::Heads}) {
      Model a, b;
      manual_seed(2);
      RotaryAttentionOptions o;
      o.kv_heads = layout == QkvLayout::Joined ? 2 : kHeads;
      o.width = 6;
      o.turned = 4;
      o.norm = norm;
      const RotaryAttention apart(a, "attention", kDim, kHeads, o);
      o.layout = layout;
      RotaryAttention joined(b, "attention", kDim, kHeads, o);
      EXPECT_FALSE(joined.q_proj);
      give_weights(apart, joined, layout);
      expect_alike(said_by(joined, numbers()), said_by(apart, numbers()));
    }
}

TEST(RotaryAttention, AWindowHidesWhatIsFurtherBack) {
  Model m;
  manual_seed(3);
  RotaryAttentionOptions o;
  o.width = 6;
  o.window = 3;
  const RotaryAttention attention(m, "attention", kDim, kHeads, o);
  std::vector<float> changed = numbers();
  changed[2 * kDim] += 5;  // of position 2, which 2, 3 and 4 see
  const std::vector<float> before = said_by(attention, numbers()),
                           after = said_by(attention, changed);
  for (std::int64_t t = 0; t < kLength; ++t) {
    const bool differs = !std::equal(before.begin() + t * kDim, before.begin() + (t + 1) * kDim,
                                     after.begin() + t * kDim);
    EXPECT_EQ(differs, t >= 2 && t <= 4) << t;
  }
}

TEST(RotaryAttention, WithoutTurnsLooksAtNoPositions) {
  Model m;
  manual_seed(4);
  RotaryAttentionOptions o;
  o.width = 5;  // odd: nothing is turned
  o.turns = false;
  const RotaryAttention attention(m, "attention", kDim, kHeads, o);
  const NoGrad no_grad;
  const Tensor x = from_floats(numbers(), {1, kLength, kDim});
  const Tensor places = iota(kLength, DType::I32);
  EXPECT_EQ(attention(x, places).to_floats(), attention(x, places * 3).to_floats());
}

TEST(RotaryAttention, ANormPlusOneOfZerosIsOneOfOnes) {
  Model m;
  const RMSNorm plain(m, "plain", kDim), plus(m, "plus", kDim, {1e-6, true});
  EXPECT_EQ(rows_of(plus.weight), std::vector<float>(kDim, 0.0f));
  const NoGrad no_grad;
  const Tensor x = from_floats(numbers(), {kLength, kDim});
  EXPECT_EQ(plus(x).to_floats(), plain(x).to_floats());
}

// 1.003 is 1 in bf16.
TEST(RotaryAttention, ANormPlusOneKeepsSmallWeights) {
  Model m;
  const RMSNorm plus(m, "plus", kDim, {1e-6, true});
  const auto trained = amp::initialize(m, optim::Sgd{}, "O2:bf16");
  const NoGrad no_grad;
  const Tensor x = from_floats(numbers(), {kLength, kDim});
  const std::vector<float> at_zero = plus(x).to_floats();
  models::write_state(*plus.weight, 0, std::vector<float>(kDim, 0.003f));
  EXPECT_NE(plus(x).to_floats(), at_zero);
}

TEST(RotaryAttention, WhatDoesNotFitTogetherIsRefused) {
  Model m;
  int made = 0;
  const auto code_of = [&](const auto& change) -> std::string {
    RotaryAttentionOptions o;
    o.width = 6;
    change(o);
    try {
      const RotaryAttention attention(m, "a" + std::to_string(made++), kDim, kHeads, o);
    } catch (const UserError& e) {
      return e.code();
    }
    return "none";
  };
  using O = RotaryAttentionOptions;
  EXPECT_EQ(code_of([](O&) {}), "none");
  EXPECT_EQ(code_of([](O& o) { o.width = 0; }), "E0211");  // 10 in 4 heads
  EXPECT_EQ(code_of([](O& o) { o.width = -2; }), "E0210");
  EXPECT_EQ(code_of([](O& o) { o.width = 5; }), "E0211");
  EXPECT_EQ(code_of([](O& o) { o.turned = 3; }), "E0211");
  EXPECT_EQ(code_of([](O& o) { o.turned = 8; }), "E0210");
  EXPECT_EQ(code_of([](O& o) { o.layout = QkvLayout::ByHeads, o.kv_heads = 2; }), "E0211");
}

}  // namespace
}  // namespace aloft::nn
