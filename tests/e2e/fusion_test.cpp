// Fused loops give the bits of the ops that they stand for: programs drawn at random in all float
// types, with broadcasts, casts, odd sizes, short batches, infinities and NaN, on 1, 2 and 4
// threads; and whole training steps.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "e2e/tiny_gpt.h"
#include "e2e/training.h"
#include "frontend/eager_emitter.h"
#include "frontend/programs.h"
#include "models/gpt2.h"
#include "models/llama.h"
#include "ops/activation.h"
#include "ops/binary.h"
#include "ops/cast.h"
#include "ops/clamp.h"
#include "ops/compare.h"
#include "ops/constant.h"
#include "ops/cross_entropy.h"
#include "ops/dropout.h"
#include "ops/host_array.h"
#include "ops/reduce.h"
#include "ops/unary.h"
#include "ops/where.h"
#include "optim/adamw.h"
#include "scalar/philox.h"

namespace aloft::e2e {
namespace {

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : seed_(seed) {}
  std::int64_t operator()(std::int64_t below) {
    return scalar::random_bits({seed_, 0, 0, 0}, n_++) % below;
  }

 private:
  std::uint64_t seed_, n_ = 0;
};

constexpr DType kFloats[] = {DType::F32, DType::BF16, DType::F16, DType::F64};

// Normal numbers, and among them what arithmetic treats apart.
Tensor operand(DType dtype, const std::vector<std::int64_t>& shape, std::uint64_t seed) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  const double apart[] = {kInf, -kInf, std::numeric_limits<double>::quiet_NaN(), -0.0, 1e-40, 3e38};
  HostArray a = HostArray::zeros(dtype, shape);
  for (std::int64_t i = 0; i < a.numel(); ++i)
    a[i] = i % 37 == 5 ? apart[i / 37 % 6] : 2 * scalar::normal({seed, 1, 0, 0}, i);
  round_to_dtype(a);
  std::vector<char> bytes(a.values.size() * size_of(dtype));
  store_bytes(a, bytes.data());
  return eager().from_host({dtype, Shape::of(shape)}, bytes.data());
}

Tensor one_step(Draw& draw, const std::vector<Tensor>& values, const Tensor& rng) {
  const auto pick = [&]() -> const Tensor& { return values[draw(values.size())]; };
  const Tensor &a = pick(), &b = pick();
  switch (draw(21)) {
    case 0:
      return a - b;
    case 1:
      return a * b;
    case 2:
      return a / b;
    case 3:
      return maximum(a, b);
    case 4:
      return square(a);
    case 5:
      return exp(a);
    case 6:
      return sigmoid(a);
    case 7:
      return gelu_tanh(a);
    case 8:
      return relu(a);
    case 9:
      return clamp(a, -1, 2);
    case 10:
      return tanh(a);
    case 11:
    case 12:
    case 13:
      return cast(a, kFloats[draw(4)]);
    case 14:
      return where(less(a, cast(b, a.dtype())), a, cast(pick(), a.dtype()));
    case 20:
      return dropout(a, rng, 0.25);
    case 15:
      return cast(greater(a, cast(b, a.dtype())), a.dtype());
    default:
      return a + b;
  }
}

// A NaN has no sign: which operand's a sum of two NaNs takes is the compiler's choice.
std::string bits_of(const Tensor& t) {
  std::vector<double> values = t.to_vector();
  for (double& v : values)
    if (std::isnan(v)) v = std::numeric_limits<double>::quiet_NaN();
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(double)};
}

struct Case {
  std::vector<std::int64_t> shape;
  DType dtype;
  std::uint64_t seed;
};

// Results of the program that `seed` draws. Without a bias, a short batch is run too.
std::vector<std::string> results_of(const Case& c, int threads, bool fuses, int& loops) {
  const bool has_bias = c.seed % 3 == 0 && c.shape.back() != c.shape[0];
  std::vector<std::int64_t> column(c.shape.size(), 1);
  column[0] = c.shape[0];
  const auto arguments = [&](std::int64_t rows) {
    std::vector<std::int64_t> shape = c.shape;
    shape[0] = rows;
    std::vector<std::int64_t> side = column;
    side[0] = rows;
    std::vector<Tensor> all{operand(c.dtype, shape, c.seed), operand(c.dtype, shape, c.seed + 1),
                            operand(c.dtype, side, c.seed + 2)};
    if (has_bias) all.push_back(operand(c.dtype, {c.shape.back()}, c.seed + 3));
    return all;
  };
  CompileOptions options{.name = "drawn", .threads = threads};
  if (!fuses) options.passes.skip = {"fuse-elementwise"};
  const auto drawn = [&](const std::vector<Tensor>& in) {
    Draw draw(c.seed);
    std::vector<Tensor> values = in;
    const Tensor rng = iota(3, DType::I64);
    const std::int64_t steps = 4 + draw(12);
    for (std::int64_t i = 0; i < steps; ++i) values.push_back(one_step(draw, values, rng));
    std::vector<Tensor> out = {values.back()};
    for (int i = 0; i < 2; ++i) out.push_back(values[in.size() + draw(steps)]);
    Ints leading;  // the gradient of a bias is such a sum
    for (int i = 0; i + 1 < in[0].rank(); ++i) leading.push_back(i);
    for (int i = 0; i < 2 && !leading.empty(); ++i) {
      const Tensor& v = values[in.size() + draw(steps)];
      if (v.rank() == in[0].rank()) out.push_back(sum(v, leading));
    }
    return out;
  };
  auto call = compile(drawn, options);
  std::vector<std::string> bits;
  const std::int64_t fewer = has_bias ? c.shape[0] : std::max<std::int64_t>(1, c.shape[0] - 1);
  for (std::int64_t rows : {c.shape[0], fewer})
    for (const Tensor& t : call(arguments(rows))) bits.push_back(bits_of(t));
  loops = 0;
  for (const Instruction& i : call.programs().plan().find("drawn")->instructions)
    loops += i.call.op == Name("fused");
  return bits;
}

void expect_same(const std::vector<std::string>& fused, const std::vector<std::string>& apart) {
  ASSERT_EQ(fused.size(), apart.size());
  for (std::size_t r = 0; r < apart.size(); ++r) {
    ASSERT_EQ(fused[r].size(), apart[r].size());
    for (std::size_t i = 0; i < apart[r].size(); i += sizeof(double)) {
      if (std::memcmp(&fused[r][i], &apart[r][i], sizeof(double)) == 0) continue;
      double a = 0, b = 0;
      std::memcpy(&a, &fused[r][i], sizeof a);
      std::memcpy(&b, &apart[r][i], sizeof b);
      FAIL() << "result " << r << "[" << i / sizeof(double) << "] is " << a << ", apart " << b;
    }
  }
}

TEST(Fusion, DrawnProgramsKeepTheirBits) {
  use_cpu();
  const std::vector<std::int64_t> shapes[] = {{5, 1031}, {3, 2, 300}, {4097}, {37, 7},
                                              {2, 5000}, {700, 600},  {1, 1}, {9, 4, 3, 5}};
  int fused = 0, programs = 0;
  for (std::uint64_t seed = 1; seed <= 84; ++seed) {
    const Case c{shapes[seed % std::size(shapes)], kFloats[seed % 4], seed};
    SCOPED_TRACE("seed " + std::to_string(seed));
    int loops = 0, none = 0;
    const auto apart = results_of(c, 2, false, none);
    EXPECT_EQ(none, 0);
    for (int threads : {1, 2, 4}) expect_same(results_of(c, threads, true, loops), apart);
    fused += loops > 0;
    ++programs;
  }
  EXPECT_GT(fused, programs * 3 / 4) << "most drawn programs have neighbours to fuse";
}

Batch sentences(int step) {
  std::vector<std::int32_t> tokens, targets;
  Draw draw(static_cast<std::uint64_t>(step) + 100);
  for (int i = 0; i < 3 * 12; ++i) {
    tokens.push_back(static_cast<std::int32_t>(draw(29)));
    targets.push_back(static_cast<std::int32_t>(draw(29)));
  }
  return {from_ints(tokens, {3, 12}), from_ints(targets, {3, 12})};
}

struct TinyLlama : models::Llama {
  TinyLlama() : Llama(config()) {}
  static models::LlamaConfig config() {
    models::LlamaConfig c;
    c.layers = 2;
    c.heads = 4;
    c.kv_heads = 2;
    c.dim = 40;
    c.hidden = 56;
    c.vocab = 29;
    return c;
  }
};

class FusedSteps : public testing::TestWithParam<const char*> {};

template <class Model>
void expect_same_steps(const char* precision) {
  const auto loss = [](auto& net, const Tensor& x, const Tensor& label) {
    return cross_entropy(net(x), label);
  };
  TrainOptions o{Mode::Compiled, precision, 6, 2, 3, optim::AdamW{.lr = 1e-3}};
  o.skip = {"fuse-elementwise", "fuse-norm"};
  const Outcome apart = train<Model>(o, sentences, loss);
  o.skip = {};
  for (int threads : {1, 2, 4}) {
    o.threads = threads;
    const Outcome fused = train<Model>(o, sentences, loss);
    EXPECT_EQ(fused.losses, apart.losses) << threads;
    EXPECT_EQ(fused.grad_norms, apart.grad_norms) << threads;
    EXPECT_EQ(differing(fused, apart), std::vector<std::string>()) << threads;
  }
}

TEST_P(FusedSteps, KeepTheirBits) { expect_same_steps<TinyGpt>(GetParam()); }
TEST_P(FusedSteps, OfGatedLayersToo) { expect_same_steps<TinyLlama>(GetParam()); }

// What is computed once more in the backward pass is what was not kept.
TEST_P(FusedSteps, KeepTheirBitsWhereResultsAreComputedAgain) {
  const auto loss = [](auto& net, const Tensor& x, const Tensor& label) {
    return cross_entropy(net(x), label);
  };
  TrainOptions o{Mode::Compiled, GetParam(), 6, 2, 3, optim::AdamW{.lr = 1e-3}};
  const Outcome kept = train<TinyLlama>(o, sentences, loss);
  o.also = {"recompute-elementwise"};
  const Outcome again = train<TinyLlama>(o, sentences, loss);
  EXPECT_EQ(again.losses, kept.losses);
  EXPECT_EQ(again.grad_norms, kept.grad_norms);
  EXPECT_EQ(differing(again, kept), std::vector<std::string>());
}

INSTANTIATE_TEST_SUITE_P(Precisions, FusedSteps,
                         testing::Values("O0", "O1:bf16", "O2:bf16", "O2:fp16"));

}  // namespace
}  // namespace aloft::e2e
