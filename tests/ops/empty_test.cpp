// Every op with every dimension empty in turn: a result that is the op's meaning, or an error with
// a code of its own, eagerly, compiled, and in its gradients. Never "a mistake in Aloft".
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "backends/cpu/cpu_backend.h"
#include "base/error.h"
#include "frontend/compile.h"
#include "frontend/eager.h"
#include "frontend/eager_emitter.h"
#include "ops/evaluate.h"
#include "ops/kernel_run.h"
#include "ops/op.h"
#include "ops/sample_inputs.h"

namespace aloft {
namespace {

using testing::case_text;
using testing::make_inputs;
using testing::samples_of;

Tensor on_device(const HostArray& a) {
  std::vector<std::byte> bytes(a.values.size() * size_of(a.dtype));
  store_bytes(a, bytes.data());
  const Tensor t = eager().from_host({a.dtype, Shape::of(a.shape)}, bytes.data());
  return Tensor(&eager_session(), t.id(), t.held());
}

// The sample with every dimension of `extent` empty, in operands and in the shapes among the
// attributes: what belongs together stays together.
Sample without_extent(Sample sample, const Dim& extent) {
  const auto change = [&](Shape& s) {
    for (Dim& d : s.dims())
      if (d == extent) d = 0;
  };
  for (SampleInput& in : sample.in) change(in.shape);
  Attrs attrs;
  for (auto [name, value] : sample.attrs.all()) {
    if (Shape* s = std::get_if<Shape>(&value)) change(*s);
    attrs.set(name, value);
  }
  sample.attrs = attrs;
  return sample;
}

// And with each dimension of each operand empty alone, whatever belongs to it.
std::vector<Sample> emptied(const Sample& sample) {
  std::vector<Sample> all;
  std::set<std::int64_t> extents;
  for (std::size_t i = 0; i < sample.in.size(); ++i)
    for (int d = 0; d < sample.in[i].shape.rank(); ++d) {
      extents.insert(sample.in[i].shape[d].max());
      all.push_back(sample);
      all.back().in[i].shape[d] = 0;
    }
  for (const std::int64_t e : extents) all.push_back(without_extent(sample, e));
  return all;
}

// What a program of the user's would see: "" for what a call gave or refused by a code of its own.
template <class F>
std::string unnamed_failure(F call) {
  try {
    call();
    return "";
  } catch (const Error& e) {
    return e.exit_code() == ExitCode::Internal ? e.what() : "";
  } catch (const std::exception& e) {
    return std::string("not an error of ours: ") + e.what();
  }
}

class EmptyOf : public ::testing::TestWithParam<Name> {
 protected:
  static void SetUpTestSuite() { use_device(cpu_device()); }
  void TearDown() override { eager().clear_tape(); }

  const OpDef& op() const { return op_named(GetParam()); }

  void check_values(const Sample& sample, const std::vector<HostArray>& in,
                    const std::vector<Tensor>& out) const {
    const std::vector<HostArray> want = evaluate_op(op(), sample.attrs, in, EvalRounding::ToDType);
    ASSERT_EQ(out.size(), want.size());
    for (std::size_t o = 0; o < out.size(); ++o) {
      HostArray got = HostArray::zeros(out[o].dtype(), out[o].shape().max_extents());
      const std::vector<double> v = out[o].to_vector();
      got.values.assign(v.begin(), v.end());
      constexpr std::int64_t kTerms = 64;  // samples of more are left out
      EXPECT_EQ(testing::compare(got, want[o], kTerms, 8, sample, DType::F32), "") << o;
    }
  }

  std::vector<Tensor> emit(const Sample& sample, const std::vector<Tensor>& operands) const {
    return operands[0].emitter()->emit({op().name, sample.attrs}, operands, {});
  }

  void gradients(const Sample& sample, const std::vector<HostArray>& in) const {
    if (op().gradient == OpDef::Gradient::None || !sample.gradient) return;
    std::vector<Tensor> operands, wrt;
    for (const HostArray& a : in) {
      operands.push_back(on_device(a));
      if (is_float(a.dtype)) wrt.push_back(operands.back());
    }
    for (const Tensor& out : emit(sample, operands)) {
      if (!is_float(out.dtype())) continue;
      const Tensor seed = on_device(HostArray::zeros(out.dtype(), out.shape().max_extents()));
      for (const Tensor& g : eager_session().gradients(out, seed, wrt, {}))
        if (g.is_defined()) g.to_vector();
    }
  }

  void check(const Sample& sample) const {
    const std::vector<HostArray> in = make_inputs(sample, DType::F32, 7);
    SCOPED_TRACE(case_text(op(), sample, in));
    std::vector<Tensor> operands;
    for (const HostArray& a : in) operands.push_back(on_device(a));
    EXPECT_EQ(unnamed_failure([&] { check_values(sample, in, emit(sample, operands)); }), "");
    EXPECT_EQ(unnamed_failure([&] { gradients(sample, in); }), "");
    EXPECT_EQ(unnamed_failure([&] {
                auto program =
                    compile([&](const std::vector<Tensor>& t) { return emit(sample, t); },
                            {.partial_batches = false});
                for (const Tensor& t : program(operands)) t.to_vector();
              }),
              "");
  }
};

TEST_P(EmptyOf, GivesAResultOrANamedError) {
  constexpr std::int64_t kMost = 4096;  // elements: longer samples are the same calls
  std::set<std::string> seen;
  for (const Sample& sample : samples_of(op())) {
    std::int64_t elements = 0;
    for (const SampleInput& in : sample.in) elements += in.shape.max_numel();
    if (elements > kMost || sample.in.empty()) continue;
    for (const Sample& empty : emptied(sample))
      if (seen.insert(case_text(op(), empty, make_inputs(empty, DType::F32, 7))).second)
        check(empty);
  }
}

std::vector<Name> all_ops() {
  std::vector<Name> names;
  for (const OpDef& op : op_table()) names.push_back(op.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Ops, EmptyOf, ::testing::ValuesIn(all_ops()),
                         [](const auto& info) { return info.param.str(); });

}  // namespace
}  // namespace aloft
