// The kernels of matmul and linear as the back end offers them: shapes, broadcasting, symbols.
#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>

#include "backends/cpu/cpu_backend.h"
#include "backends/cpu/float_buffer.h"
#include "backends/cpu/isa.h"
#include "ops/matmul.h"
#include "runtime/backend.h"
#include "types/tolerance.h"

namespace aloft {
namespace {

using test::FloatBuffer;
using test::random_values;

CallSpec make_call(const char* op, Attrs attrs, std::vector<std::string> in, const char* out) {
  CallSpec call;
  call.op = op;
  call.attrs = std::move(attrs);
  for (const std::string& t : in) call.in.push_back(parse_tensor_type(t));
  call.out = {parse_tensor_type(out)};
  call.threads = omp_get_max_threads();
  return call;
}

std::vector<double> run(const CallSpec& call, const std::vector<std::vector<double>>& values,
                        std::vector<std::int64_t> symbols = {}) {
  const Choice choice = choose_kernel(cpu_backend(), call);
  if (!choice.kernel) {
    ADD_FAILURE() << "no kernel";
    return {};
  }
  const auto prepared = choice.kernel->prepare(call);
  std::vector<FloatBuffer> in;
  for (std::size_t i = 0; i < values.size(); ++i) in.emplace_back(call.in[i].dtype, values[i]);
  FloatBuffer out(call.out[0].dtype, call.out[0].shape.max_numel());
  FloatBuffer scratch(DType::F32, static_cast<std::int64_t>(prepared->scratch_bytes() + 3) / 4);
  std::vector<void*> in_pointers;
  for (FloatBuffer& b : in) in_pointers.push_back(b.data());
  void* out_pointers[] = {out.data()};
  prepared->run({in_pointers, out_pointers, scratch.data(), symbols});
  scratch.expect_guards();
  out.expect_guards();
  std::vector<double> result(call.out[0].shape.max_numel());
  for (std::size_t i = 0; i < result.size(); ++i) result[i] = out.get(i);
  return result;
}

TEST(CpuLinear, AddsTheBiasBeforeTheOneRounding) {
  for (const char* type : {"f32", "bf16", "f16"}) {
    const std::string t = type;
    const CallSpec call =
        make_call("linear", {}, {t + "[2,3,20]", t + "[7,20]", t + "[7]"}, (t + "[2,3,7]").c_str());
    const DType d = call.in[0].dtype;
    const auto x = random_values(120, d, 1), w = random_values(140, d, 2),
               b = random_values(7, d, 3);
    const auto y = run(call, {x, w, b});
    for (int r = 0; r < 6; ++r)
      for (int j = 0; j < 7; ++j) {
        double want = b[j];
        for (int k = 0; k < 20; ++k) want += x[r * 20 + k] * w[j * 20 + k];
        EXPECT_NEAR(y[r * 7 + j], want, allowed_error(d, 21, want, 1)) << type;
      }
  }
}

TEST(CpuLinear, PartialBatchComputesThePrefix) {
  const CallSpec call = make_call("linear", {}, {"f32[B<=4,3,8]", "f32[5,8]"}, "f32[B<=4,3,5]");
  const auto x = random_values(96, DType::F32, 1), w = random_values(40, DType::F32, 2);
  const auto y = run(call, {x, w}, {3});
  for (int r = 0; r < 9; ++r)
    for (int j = 0; j < 5; ++j) {
      double want = 0;
      for (int k = 0; k < 8; ++k) want += x[r * 8 + k] * w[j * 8 + k];
      EXPECT_NEAR(y[r * 5 + j], want, allowed_error(DType::F32, 8, want, 1));
    }
}

TEST(CpuMatmul, LeadingAxesBroadcast) {
  // [2,1,3,4] x [5,6,4]^T -> [2,5,3,6]
  const CallSpec call = make_call("matmul", to_attrs(MatmulAttrs{false, true}),
                                  {"f32[2,1,3,4]", "f32[5,6,4]"}, "f32[2,5,3,6]");
  const auto a = random_values(24, DType::F32, 1), b = random_values(120, DType::F32, 2);
  const auto c = run(call, {a, b});
  for (int p = 0; p < 2; ++p)
    for (int q = 0; q < 5; ++q)
      for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 6; ++j) {
          double want = 0;
          for (int k = 0; k < 4; ++k) want += a[(p * 3 + i) * 4 + k] * b[(q * 6 + j) * 4 + k];
          EXPECT_NEAR(c[((p * 5 + q) * 3 + i) * 6 + j], want,
                      allowed_error(DType::F32, 4, want, 1));
        }
}

TEST(CpuMatmul, WeightGradientOfAPartialBatch) {
  // X[B*8, 6]^T dY[B*8, 5] with 2 of 4 batches there: the rows behind hold anything.
  const CallSpec call = make_call("matmul", to_attrs(MatmulAttrs{true, false}),
                                  {"bf16[8*B<=4,6]", "bf16[8*B<=4,5]"}, "bf16[6,5]");
  auto x = random_values(192, DType::BF16, 1), dy = random_values(160, DType::BF16, 2);
  std::fill(x.begin() + 96, x.end(), std::nan(""));
  std::fill(dy.begin() + 80, dy.end(), std::nan(""));
  const auto dw = run(call, {x, dy}, {2});
  for (int i = 0; i < 6; ++i)
    for (int j = 0; j < 5; ++j) {
      double want = 0;
      for (int r = 0; r < 16; ++r) want += x[r * 6 + i] * dy[r * 5 + j];
      EXPECT_NEAR(dw[i * 5 + j], want, allowed_error(DType::BF16, 16, want, 1));
    }
}

TEST(CpuMatmul, FewRowsReadBWhereItLies) {
  for (const char* type : {"f32", "bf16", "f16"})
    for (const bool transposed : {false, true})
      for (const int m : {1, 2, 3, 8}) {
        constexpr int kN = 301, kK = 77;
        const std::string t = type, rows = std::to_string(m);
        const CallSpec call =
            make_call("matmul", to_attrs(MatmulAttrs{false, transposed}),
                      {t + "[" + rows + ",77]", t + (transposed ? "[301,77]" : "[77,301]")},
                      (t + "[" + rows + ",301]").c_str());
        EXPECT_EQ(choose_kernel(cpu_backend(), call).kernel->name, "cpu.matmul.few_rows");
        const DType d = call.in[0].dtype;
        const auto a = random_values(m * kK, d, 1), b = random_values(kN * kK, d, 2);
        const auto c = run(call, {a, b});
        for (int i = 0; i < m; ++i)
          for (int j = 0; j < kN; ++j) {
            double want = 0;
            for (int k = 0; k < kK; ++k)
              want += a[i * kK + k] * b[transposed ? j * kK + k : k * kN + j];
            EXPECT_NEAR(c[i * kN + j], want, allowed_error(d, kK, want, 1)) << type << " " << m;
          }
        const int before = omp_get_max_threads();
        for (const int threads : {1, 2, 4}) {
          omp_set_num_threads(threads);
          EXPECT_EQ(run(call, {a, b}), c) << threads;
        }
        omp_set_num_threads(before);
      }
}

TEST(CpuMatmul, RefusesWhatItCannotDoAndSaysWhy) {
  const CallSpec call =
      make_call("matmul", to_attrs(MatmulAttrs{}), {"f32[3,B<=4]", "f32[B<=4,2]"}, "f32[3,2]");
  const Choice choice = choose_kernel(cpu_backend(), call);
  EXPECT_EQ(choice.kernel, nullptr);
  ASSERT_FALSE(choice.refusals.empty());
  EXPECT_TRUE(std::any_of(choice.refusals.begin(), choice.refusals.end(), [](const std::string& r) {
    return r.find("symbolic") != std::string::npos;
  }));
}

// A form of products is asked for by the call; what a kernel computes, it says of itself.
TEST(CpuMatmul, ComputesInTheFormThatIsAskedForWhereItCan) {
  CallSpec call =
      make_call("matmul", to_attrs(MatmulAttrs{}), {"f32[64,32]", "f32[32,48]"}, "f32[64,48]");
  const Choice plain = choose_kernel(cpu_backend(), call);
  ASSERT_NE(plain.kernel, nullptr);
  EXPECT_TRUE(plain.kernel->forms.empty());
  EXPECT_EQ(form_by(*plain.kernel, call), ProductForm::Plain);
  call.form = ProductForm::Bf16x6;
  const Choice split = choose_kernel(cpu_backend(), call);
  ASSERT_NE(split.kernel, nullptr);
  EXPECT_EQ(form_by(*split.kernel, call),
            cpu::cpu_features().amx_bf16 ? ProductForm::Bf16x6 : ProductForm::Plain);
  EXPECT_EQ(split.kernel == plain.kernel, !cpu::cpu_features().amx_bf16);
  CallSpec narrow =
      make_call("matmul", to_attrs(MatmulAttrs{}), {"bf16[64,32]", "bf16[32,48]"}, "bf16[64,48]");
  narrow.form = ProductForm::Bf16x6;
  EXPECT_EQ(form_by(*choose_kernel(cpu_backend(), narrow).kernel, narrow), ProductForm::Plain);
}

}  // namespace
}  // namespace aloft
