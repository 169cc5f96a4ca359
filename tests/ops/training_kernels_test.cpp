// Kernels at the sizes of training, where the samples of the ops are too small: wide rows, many
// ids on few rows, partial batches; the same bits on any number of threads.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "backends/cpu/cpu_backend.h"
#include "backends/cpu/memory.h"
#include "ops/embedding.h"
#include "ops/evaluate.h"
#include "ops/kernel_run.h"
#include "ops/update_layout.h"
#include "scalar/float_formats.h"
#include "scalar/philox.h"
#include "types/tolerance.h"

namespace aloft {
namespace {

using testing::run_kernel;
using testing::RunOptions;
using testing::RunResult;

HostArray normals(DType t, std::vector<std::int64_t> shape, std::uint64_t key, double scale = 1) {
  HostArray a = HostArray::zeros(t, std::move(shape));
  for (std::int64_t i = 0; i < a.numel(); ++i)
    a[i] = scale * scalar::normal(scalar::RandomKey{3, 0, 0, key}, i);
  round_to_dtype(a);
  return a;
}

HostArray integers(std::vector<std::int64_t> shape, std::uint64_t below, std::uint64_t key) {
  HostArray a = HostArray::zeros(DType::I32, std::move(shape));
  for (std::int64_t i = 0; i < a.numel(); ++i)
    a[i] = static_cast<double>(scalar::random_bits(scalar::RandomKey{3, 0, 0, key}, i) % below);
  return a;
}

CallSpec call_of(const char* op, const std::vector<HostArray>& in, const Attrs& attrs = {}) {
  CallSpec call{op, attrs, {}, {}};
  for (const HostArray& a : in) call.in.push_back({a.dtype, Shape::of(a.shape)});
  call.out = infer_types(op_named(op), attrs, call.in, {});
  return call;
}

// The result on one thread, after checking that 2 and 4 give the same bits.
RunResult run_everywhere(const CallSpec& call, const std::vector<HostArray>& in) {
  const Choice choice = choose_kernel(cpu_backend(), call);
  EXPECT_NE(choice.kernel, nullptr);
  RunResult first = run_kernel(*choice.kernel, call, in, {.threads = 1});
  EXPECT_EQ(first.problem, "");
  for (int threads : {2, 4})
    EXPECT_EQ(run_kernel(*choice.kernel, call, in, {.threads = threads}).bits, first.bits)
        << call.op.str() << " on " << threads << " threads";
  return first;
}

// Within the table's bound for sums of `length` terms, the largest of which is `want`'s or less.
void expect_near(const HostArray& got, const HostArray& want, std::int64_t length) {
  double scale = 0;
  for (std::int64_t i = 0; i < want.numel(); ++i) scale = std::max(scale, std::abs(want[i]));
  EXPECT_EQ(testing::compare(got, want, length, scale, {}, want.dtype), "");
}

TEST(TrainingKernels, CrossEntropyOfAWholeVocabulary) {
  const std::int64_t rows = 5, classes = 50304;
  std::vector<HostArray> in = {normals(DType::BF16, {rows, classes}, 1, 4),
                               integers({rows}, classes, 2)};
  in[1][3] = -100;
  in[0][7] = 90;  // a maximum that comes late would overflow exp of the others' shift
  in[0][classes + 50300] = 110;
  const CallSpec call = call_of("cross_entropy", in);
  const RunResult got = run_everywhere(call, in);
  double loss = 0;
  for (std::int64_t r = 0; r < rows; ++r) {
    const HostNumber* x = &in[0].values[r * classes];
    double top = x[0], sum = 0;
    for (std::int64_t i = 0; i < classes; ++i) top = std::max<double>(top, x[i]);
    for (std::int64_t i = 0; i < classes; ++i) sum += std::exp(x[i] - top);
    const double lse = top + std::log(sum);
    if (r != 3) loss += (lse - x[static_cast<std::int64_t>(in[1][r])]) / 4;
  }
  EXPECT_NEAR(got.out[0][0], loss, allowed_error(DType::F32, rows, loss, 110));  // the largest term

  // The rows of the gradient sum to 0, and an ignored row is 0.
  std::vector<HostArray> back = {in[0], in[1], HostArray::zeros(DType::F32, {})};
  back[0].dtype = DType::F32;
  back[2][0] = 4;
  const RunResult grad = run_everywhere(call_of("cross_entropy_grad", back), back);
  for (std::int64_t r = 0; r < rows; ++r) {
    double sum = 0, magnitude = 0;
    for (std::int64_t i = 0; i < classes; ++i) {
      sum += grad.out[0][r * classes + i];
      magnitude += std::abs(grad.out[0][r * classes + i]);
    }
    // Each element is off by its own roundings, and by the row's sum of exponentials.
    EXPECT_NEAR(sum, 0, allowed_error(DType::F32, 1, magnitude)) << "row " << r;
    if (r == 3)
      EXPECT_EQ(magnitude, 0);
    else
      EXPECT_GT(magnitude, 0.1);
  }
}

TEST(TrainingKernels, CrossEntropyWithNothingToLearn) {
  std::vector<HostArray> in = {normals(DType::F32, {3, 8}, 1), HostArray::zeros(DType::I64, {3})};
  for (HostNumber& t : in[1].values) t = -100;
  EXPECT_EQ(run_everywhere(call_of("cross_entropy", in), in).out[0][0], 0);
}

TEST(TrainingKernels, CrossEntropyOfAPartialBatch) {
  // 5 of at most 9 sequences of 3 tokens: the rows behind them are not read.
  const std::vector<HostArray> in = {normals(DType::F32, {5, 3, 65}, 1, 3),
                                     integers({5, 3}, 65, 2)};
  const CallSpec whole = call_of("cross_entropy", in);
  CallSpec call = whole;
  const Dim batch = Dim::symbolic("B", 9);
  call.in[0].shape[0] = call.in[1].shape[0] = batch;
  call.out = infer_types(op_named("cross_entropy"), call.attrs, call.in, {});
  const Kernel& kernel = *choose_kernel(cpu_backend(), call).kernel;
  const RunResult want = run_kernel(kernel, whole, in, {.threads = 1});
  const RunResult got =
      run_kernel(kernel, call, in, {.threads = 2, .symbols = {5}, .out_extents = {{}}});
  EXPECT_EQ(got.problem, "");
  EXPECT_EQ(got.bits, want.bits);
}

TEST(TrainingKernels, LayerNormGradientOverManyRows) {
  const std::int64_t rows = 1500, dim = 96;
  const HostArray x = normals(DType::BF16, {rows, dim}, 1, 2);
  std::vector<HostArray> in = {x, normals(DType::F32, {dim}, 2), normals(DType::F32, {dim}, 3)};
  const RunResult forward = run_everywhere(call_of("layer_norm", in), in);
  std::vector<HostArray> back = {normals(DType::BF16, {rows, dim}, 4), x, forward.out[1],
                                 forward.out[2], in[1]};
  const CallSpec call = call_of("layer_norm_grad", back);
  const RunResult got = run_everywhere(call, back);
  const auto want = evaluate_op(op_named("layer_norm_grad"), call.attrs, back);
  expect_near(got.out[0], want[0], dim);
  expect_near(got.out[1], want[1], rows);
  expect_near(got.out[2], want[2], rows);
}

TEST(TrainingKernels, LayerNormGradientOfAPartialBatch) {
  // 33 rows fall into 17 chunks of 2, 32 rows into 32 chunks of 1: scratch must hold either.
  const std::int64_t rows = 32, dim = 4100;
  const std::vector<HostArray> in = {normals(DType::F32, {rows, dim}, 1),
                                     normals(DType::F32, {rows, dim}, 2),
                                     normals(DType::F32, {rows}, 3), normals(DType::F32, {rows}, 4),
                                     normals(DType::F32, {dim}, 5)};
  const CallSpec whole = call_of("layer_norm_grad", in);
  CallSpec call = whole;
  for (int i : {0, 1, 2, 3}) call.in[i].shape[0] = Dim::symbolic("B", 33);
  call.out = infer_types(op_named("layer_norm_grad"), call.attrs, call.in, {});
  const Kernel& kernel = *choose_kernel(cpu_backend(), call).kernel;
  const RunResult want = run_kernel(kernel, whole, in, {.threads = 1});
  const RunResult got =
      run_kernel(kernel, call, in,
                 {.threads = 2, .symbols = {rows}, .out_extents = {{rows, dim}, {dim}, {dim}}});
  EXPECT_EQ(got.problem, "");
  EXPECT_EQ(got.bits, want.bits);
}

// So many weights are rounded past the caches: every one must have arrived.
TEST(TrainingKernels, TheRoundedCopyOfALargeModelIsWhole) {
  const std::int64_t n = (std::int64_t{9} << 20) + 77;
  const UpdateAttrs attrs{.count = 1, .master = "f32", .decay = {1}};
  for (DType low : {DType::BF16, DType::F16}) {
    CallSpec call{"sgd_update", to_attrs(attrs), {}, {}};
    call.in = {{DType::F32, {}}, {DType::F32, {}}, {DType::I32, {}}, {DType::I64, {}},
               {low, {n}},       {low, {n}},       {DType::F32, {n}}};
    call.out = infer_types(op_named("sgd_update"), call.attrs, call.in, {});
    const auto bytes = static_cast<std::size_t>(n);
    const auto p = cpu::allocate_aligned(2 * bytes), g = cpu::allocate_aligned(2 * bytes),
               m = cpu::allocate_aligned(4 * bytes);
    auto* master = static_cast<float*>(m.get());
    auto* parameter = static_cast<std::uint16_t*>(p.get());
    for (std::int64_t i = 0; i < n; ++i) master[i] = static_cast<float>(i % 4099) * 0.37f - 700;
    std::memset(g.get(), 0x11, 2 * bytes);
    std::memset(p.get(), 0, 2 * bytes);
    float lr = 0.5f, multiplier = 1;
    std::int32_t finite = 1;
    std::int64_t applied = 3;
    void* in[] = {&lr, &multiplier, &finite, &applied, p.get(), g.get(), m.get()};
    void* out[] = {p.get(), m.get()};
    choose_kernel(cpu_backend(), call).kernel->prepare(call)->run({in, out, nullptr, {}});
    for (std::int64_t i = 0; i < n; ++i)
      ASSERT_EQ(parameter[i], low == DType::BF16 ? scalar::bf16_of(master[i]).bits
                                                 : scalar::f16_of(master[i]).bits)
          << i;
  }
}

TEST(TrainingKernels, EmbeddingGradientOfRepeatedIds) {
  // 4,000 ids on 7 of 300 rows: rounding to bf16 after every addition would be off by percents.
  const std::vector<HostArray> in = {normals(DType::BF16, {4000, 40}, 1), integers({4000}, 7, 2)};
  const CallSpec call = call_of("embedding_grad", in, to_attrs(EmbeddingGradAttrs{300}));
  const RunResult got = run_everywhere(call, in);
  const auto want = evaluate_op(op_named("embedding_grad"), call.attrs, in);
  expect_near(got.out[0], want[0], 4000);
}

}  // namespace
}  // namespace aloft
