// Calls of layers, losses, convolutions and poolings that cannot be: the error names the op and
// says what was needed.
#include <gtest/gtest.h>

#include "base/error.h"
#include "ops/attention.h"
#include "ops/conv2d.h"
#include "ops/conv_transpose2d.h"
#include "ops/cross_entropy.h"
#include "ops/embedding.h"
#include "ops/group_norm.h"
#include "ops/layer_norm.h"
#include "ops/op.h"
#include "ops/pool2d.h"
#include "ops/rotary.h"
#include "ops/wrong_calls.h"

namespace aloft {
namespace {

using testing::Wrong;

constexpr DType kF32 = DType::F32, kI32 = DType::I32;

std::vector<Wrong> wrong_calls() {
  const TensorType x{kF32, {4, 8}}, image{kF32, {2, 3, 8, 8}}, weight{kF32, {5, 3, 3, 3}};
  const Conv2dAttrs two_groups{{1, 1}, {0, 0}, {1, 1}, 2};
  const TensorType heads{kF32, {2, 3, 4, 8}};
  const std::vector<TensorType> turning{heads, {kI32, {3}}};
  const auto scaled = [](const char* scaling) {
    return RotaryAttrs{10000, false, false, 0, scaling};
  };
  return {
      {"linear", {}, {x, {kF32, {8, 5}}}, "swap its axes"},
      {"linear", {}, {x, {DType::BF16, {5, 8}}}, "the same element type"},
      {"linear", {}, {x, {kF32, {5, 8}}, {kF32, {8}}}, "[5]"},
      {"embedding", {}, {x, {kF32, {3}}}, "an integer tensor"},
      {"embedding_grad", to_attrs(EmbeddingGradAttrs{5}), {x, {kI32, {3}}}, "[4]"},
      {"layer_norm", to_attrs(LayerNormAttrs{3}), {x}, "the rank of x"},
      {"layer_norm", {}, {x, {kF32, {4}}}, "[8]"},
      {"layer_norm", {}, {x, {DType::F16, {8}}}, "x's type or f32"},
      {"layer_norm", {}, {{kF32, {Dim::symbolic("T", 9)}}}, "constant normalised axes"},
      {"rms_norm", {}, {{kI32, {4, 8}}}, "a floating-point tensor"},
      {"cross_entropy", {}, {x, {kI32, {8}}}, "[4]"},
      {"cross_entropy", {}, {x, {kF32, {4}}}, "an integer tensor"},
      {"cross_entropy", to_attrs(CrossEntropyAttrs{-100, 0, "none"}), {x, {kI32, {4}}}, "\"sum\""},
      {"cross_entropy", to_attrs(CrossEntropyAttrs{-100, 1.5}), {x, {kI32, {4}}}, "from 0 to 1"},
      {"rotary", {}, {{kF32, {2, 3, 4, 7}}, {kI32, {3}}}, "an even last dimension"},
      {"rotary", {}, {{kF32, {2, 3, 4, 8}}, {kI32, {4}}}, "[3] or [2,3]"},
      {"rotary", to_attrs(RotaryAttrs{10000, false, false, 10}), turning, "0 to 8"},
      {"rotary", to_attrs(RotaryAttrs{10000, false, false, 3}), turning, "an even number"},
      {"rotary", to_attrs(scaled("fast")), turning, "one of default, linear, llama3, yarn"},
      {"rotary", to_attrs(scaled("linear factor")), turning, "a kind and its numbers"},
      {"rotary", to_attrs(scaled("linear factor=0")), turning, "a positive factor"},
      {"rotary", to_attrs(scaled("longrope original=4")), turning, "4 positive numbers"},
      {"attention", to_attrs(AttentionAttrs{true, 0, -1}), {heads, heads, heads}, "0 or more"},
      {"attention", to_attrs(AttentionAttrs{false, 0, 2}), {heads, heads, heads}, "causal = true"},
      {"attention", to_attrs(AttentionAttrs{true, 0, 0, -2}), {heads, heads, heads}, "or 0"},
      {"attention_cached", {}, {heads, heads, heads, {kI32, {}}, {kI32, {3}}}, "i32[2]"},
      {"group_norm", to_attrs(GroupNormAttrs{2}), {image}, "divides"},
      {"batch_norm",
       {},
       {{kF32, {1, 3}}, {kF32, {3}}, {kF32, {3}}, {kF32, {3}}, {kF32, {3}}},
       "more than one example"},
      {"conv2d", {}, {image, {kF32, {5, 4, 3, 3}}}, "[out, in / groups, height, width]"},
      {"conv2d", to_attrs(two_groups), {image, weight}, "divides both channel counts"},
      {"conv2d", {}, {image, {kF32, {5, 3, 9, 3}}}, "more padding"},
      {"conv1d", {}, {image, weight}, "rank 3"},
      {"conv_transpose2d", {}, {image, {kF32, {4, 5, 3, 3}}}, "[in, out / groups, height, width]"},
      {"conv_transpose2d",
       to_attrs(ConvTranspose2dAttrs{.groups = 2}),
       {image, {kF32, {3, 5, 3, 3}}},
       "divides x's channels"},
      {"conv_transpose2d",
       to_attrs(ConvTranspose2dAttrs{.stride = {2, 2}, .output_padding = {0, 2}}),
       {image, {kF32, {3, 5, 3, 3}}},
       "less than stride or dilation"},
      {"conv_transpose2d",
       to_attrs(ConvTranspose2dAttrs{.padding = {9, 0}}),
       {image, {kF32, {3, 5, 3, 3}}},
       "less padding"},
      {"conv_transpose2d", {}, {image, {kF32, {3, 5, 3, 3}}, {kF32, {4}}}, "[5]"},
      {"max_pool2d", to_attrs(MaxPool2dAttrs{{2, 2}, {}, {2, 0}}), {image}, "half the kernel"},
      {"avg_pool2d", to_attrs(AvgPool2dAttrs{{9, 9}}), {image}, "a smaller kernel"},
  };
}

TEST(LayerErrors, NameTheOpAndWhatWasNeeded) { testing::expect_refused(wrong_calls()); }

}  // namespace
}  // namespace aloft
