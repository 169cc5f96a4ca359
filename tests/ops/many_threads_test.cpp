// Every kernel on far more threads than there are processors: the bits of one thread, in guarded
// memory. The samples of the ops, and attention and norms at sizes that give each thread work.
#include <gtest/gtest.h>

#include "backends/cpu/cpu_backend.h"
#include "base/error.h"
#include "ops/attention_qkv.h"
#include "ops/evaluate.h"
#include "ops/kernel_run.h"
#include "ops/sample_inputs.h"
#include "scalar/philox.h"

namespace aloft {
namespace {

using testing::run_kernel;

struct Case {
  CallSpec call;
  std::vector<HostArray> in;
  const Kernel* kernel;
  std::vector<std::vector<unsigned char>> bits;  // on one thread
};

std::optional<Case> make_case(const OpDef& op, const Attrs& attrs, std::vector<HostArray> in) {
  Case c{{op.name, attrs, {}, {}}, std::move(in), nullptr, {}};
  for (const HostArray& a : c.in) c.call.in.push_back({a.dtype, Shape::of(a.shape)});
  try {
    c.call.out = infer_types(op, attrs, c.call.in, {});
  } catch (const UserError&) {
    return std::nullopt;  // the op does not take these types
  }
  c.kernel = choose_kernel(cpu_backend(), c.call).kernel;
  if (!c.kernel) return std::nullopt;
  c.bits = run_kernel(*c.kernel, c.call, c.in, {.threads = 1}).bits;
  return c;
}

// The pool is changed once for all cases: making threads takes longer than a small kernel.
void expect_same_bits(const std::vector<Case>& cases) {
  ASSERT_FALSE(cases.empty());
  for (const int threads : {16, 64})
    for (const Case& c : cases) {
      const auto again = run_kernel(*c.kernel, c.call, c.in, {.threads = threads});
      EXPECT_EQ(again.problem, "") << c.call.op.str() << " on " << threads << " threads";
      EXPECT_TRUE(again.bits == c.bits) << c.call.op.str() << " on " << threads << " threads";
    }
}

TEST(ManyThreads, TheSamplesOfAllOps) {
  std::vector<Case> cases;
  for (const OpDef& op : op_table()) {
    if (cpu_backend().candidates(op.name).empty()) continue;
    for (const Sample& sample : testing::samples_of(op))
      for (const DType t : {DType::F32, DType::BF16, DType::F16})
        if (auto c = make_case(op, sample.attrs, testing::make_inputs(sample, t, 7)))
          cases.push_back(std::move(*c));
  }
  expect_same_bits(cases);
}

HostArray normals(DType t, std::vector<std::int64_t> shape, std::uint64_t key) {
  HostArray a = HostArray::zeros(t, std::move(shape));
  for (std::int64_t i = 0; i < a.numel(); ++i)
    a[i] = scalar::normal(scalar::RandomKey{3, 0, 0, key}, i);
  round_to_dtype(a);
  return a;
}

TEST(ManyThreads, AttentionNormsAndSoftmaxAtSizesOfTraining) {
  std::vector<Case> cases;
  const auto add = [&](const char* name, std::vector<HostArray> in, const Attrs& attrs = {}) {
    const OpDef& op = op_named(name);
    auto c = make_case(op, attrs.empty() ? op.default_attrs : attrs, std::move(in));
    ASSERT_TRUE(c) << name;
    cases.push_back(std::move(*c));
  };
  for (const DType t : {DType::F32, DType::BF16, DType::F16}) {
    const auto heads = [&](std::uint64_t key) { return normals(t, {3, 130, 8, 40}, key); };
    HostArray lse = normals(DType::F32, {3, 8, 130}, 4);
    for (HostNumber& x : lse.values) x += 8;
    add("attention", {heads(1), heads(2), heads(3)});
    add("attention_grad", {heads(1), heads(2), heads(3), heads(4), lse, heads(5)});
    const HostArray qkv = normals(t, {3, 130, 3 * 8 * 40}, 1), o = normals(t, {3, 130, 320}, 2);
    const Attrs packed = to_attrs(AttentionQkvAttrs{.heads = 8});
    add("attention_qkv", {qkv}, packed);
    add("attention_qkv_grad", {qkv, o, lse, o}, packed);
    const HostArray scale = normals(DType::F32, {300}, 6), x = normals(t, {700, 300}, 7);
    add("layer_norm", {x, scale, scale});
    add("rms_norm", {x, scale});
    add("softmax", {x});
  }
  expect_same_bits(cases);
}

}  // namespace
}  // namespace aloft
