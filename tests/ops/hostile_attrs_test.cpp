// Every op with attributes that nobody sane would write, and with operands that do not fit: an
// error with a code and what is needed, or the op's meaning, from inference, the kernels and
// gradients. Never a crash, a call without end, "a mistake in Aloft" or an exception of the
// language's library.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "backends/cpu/cpu_backend.h"
#include "base/error.h"
#include "frontend/eager.h"
#include "frontend/eager_emitter.h"
#include "ops/evaluate.h"
#include "ops/kernel_case.h"
#include "ops/kernel_run.h"
#include "ops/last_try.h"
#include "ops/op.h"
#include "ops/sample_inputs.h"
#include "ops/update.h"
#include "types/tolerance.h"

namespace aloft {
namespace {

using testing::case_text;
using testing::make_inputs;
using testing::samples_of;

constexpr std::int64_t kInts[] = {INT64_MIN,
                                  INT64_MIN + 1,
                                  INT32_MIN - std::int64_t{1},
                                  -1000000000,
                                  -7,
                                  -2,
                                  -1,
                                  0,
                                  1,
                                  2,
                                  7,
                                  INT32_MAX,
                                  std::int64_t{1} << 31,
                                  std::int64_t{1} << 32,
                                  std::int64_t{1} << 62,
                                  INT64_MAX - 1,
                                  INT64_MAX};
constexpr double kFloats[] = {-1,
                              -0.0,
                              0,
                              0.5,
                              1,
                              2,
                              1e300,
                              -1e300,
                              1e-300,
                              std::numeric_limits<double>::quiet_NaN(),
                              std::numeric_limits<double>::infinity(),
                              -std::numeric_limits<double>::infinity()};
constexpr std::int64_t kMostElements = 100'000;  // of all results, where a call is computed
constexpr double kMostFlops = 1e8;

// What may stand in the place of a value.
void replace(std::int64_t, std::vector<AttrValue>& out) {
  for (const std::int64_t v : kInts) out.emplace_back(v);
}
void replace(double, std::vector<AttrValue>& out) {
  for (const double v : kFloats) out.emplace_back(v);
}
void replace(bool v, std::vector<AttrValue>& out) { out.emplace_back(!v); }
void replace(DType, std::vector<AttrValue>& out) {
  for (const DType t : kAllDTypes) out.emplace_back(t);
}
void replace(const std::string& v, std::vector<AttrValue>& out) {
  for (const std::string& text : {std::string(), "no " + v, std::string(1000, 'x')})
    out.emplace_back(text);
}
void replace(const Ints& v, std::vector<AttrValue>& out) {
  for (std::size_t i = 0; i < v.size(); ++i)
    for (const std::int64_t hostile : kInts) {
      Ints list = v;
      list[i] = hostile;
      out.emplace_back(list);
    }
  for (const std::int64_t hostile : kInts) {
    out.emplace_back(Ints{hostile});
    out.emplace_back(Ints{hostile, hostile});
    Ints longer = v;
    longer.push_back(hostile);
    out.emplace_back(longer);
  }
  out.emplace_back(Ints{});
  if (!v.empty()) out.emplace_back(Ints(v.begin(), v.end() - 1));
  out.emplace_back(Ints(9, 1));
  out.emplace_back(Ints(100, 0));
}
void replace(const Shape& v, std::vector<AttrValue>& out) {
  for (int d = 0; d < v.rank(); ++d)
    for (const std::int64_t hostile : kInts) {
      Shape shape = v;
      shape[d] = hostile;
      out.emplace_back(shape);
    }
  Shape longer = v;
  for (int d = 0; d < 9; ++d) longer.dims().emplace_back(1);
  out.emplace_back(longer);
  const std::int64_t large = std::int64_t{1} << 40;
  for (const Shape& shape : {Shape{}, Shape{0}, Shape{-1, -1}, Shape{large, large},
                             Shape{large, large, 0}, Shape{0, large, large}, Shape{1, 1}})
    out.emplace_back(shape);
}

std::vector<Sample> with_other_attributes(const Sample& sample) {
  std::vector<Sample> all;
  for (const auto& [name, value] : sample.attrs.all()) {
    std::vector<AttrValue> others;
    std::visit([&](const auto& v) { replace(v, others); }, value);
    others.emplace_back(std::string("of another kind"));
    for (const AttrValue& other : others) {
      all.push_back(sample);
      all.back().attrs.set(name, other);
    }
  }
  return all;
}

std::vector<Sample> with_other_operand(const Sample& sample, std::size_t i) {
  std::vector<Sample> all;
  const auto other = [&]() -> SampleInput& { return all.emplace_back(sample).in[i]; };
  const int rank = sample.in[i].shape.rank();
  if (rank > 0) other().shape.dims().pop_back();
  if (rank > 0) {
    std::vector<Dim>& dims = other().shape.dims();
    dims.erase(dims.begin());
  }
  for (const std::int64_t extent : {1, 2, 0}) {
    other().shape.dims().emplace_back(extent);
    std::vector<Dim>& dims = other().shape.dims();
    dims.insert(dims.begin(), extent);
  }
  other().shape = {};
  other().shape = {0};
  other().shape = {1, 1, 1, 1, 1, 1, 1, 1, 1};
  for (int d = 0; d < rank; ++d) {
    const std::int64_t extent = sample.in[i].shape[d].max();
    for (const std::int64_t hostile : {std::int64_t{0}, std::int64_t{1}, extent + 1, extent - 1})
      if (hostile >= 0) other().shape[d] = hostile;
    for (int e = d + 1; e < rank; ++e) {
      Shape& shape = other().shape;
      std::swap(shape[d], shape[e]);
    }
  }
  for (const DType t : kAllDTypes) {
    SampleInput& in = other();
    in.dtype = t;
    in.fixed_dtype = true;
    if (!is_float(t)) in.fill = Fill::Ids, in.lo = 0, in.hi = 3;
    if (is_float(t) && in.fill == Fill::Whole) in.fill = Fill::Normal;
  }
  return all;
}

std::vector<Sample> with_other_operands(const Sample& sample) {
  std::vector<Sample> all;
  for (std::size_t i = 0; i < sample.in.size(); ++i) {
    for (Sample& other : with_other_operand(sample, i)) all.push_back(std::move(other));
    all.push_back(sample);
    all.back().in.erase(all.back().in.begin() + static_cast<std::ptrdiff_t>(i));
    all.push_back(sample);
    all.back().in.push_back(sample.in[i]);
  }
  all.push_back(sample);
  all.back().in.clear();
  return all;
}

std::vector<Sample> hostile(const Sample& sample) {
  std::vector<Sample> all = with_other_attributes(sample);
  for (Sample& other : with_other_operands(sample)) all.push_back(std::move(other));
  return all;
}

// Kernels of narrower types compute with such numbers as infinity or 0, the meaning with all
// digits.
bool fits_f32(const Attrs& attrs) {
  using Limits = std::numeric_limits<float>;
  for (const auto& [name, value] : attrs.all())
    if (const double* v = std::get_if<double>(&value); v != nullptr && std::isfinite(*v) && *v != 0)
      if (std::abs(*v) > Limits::max() || std::abs(*v) < Limits::min()) return false;
  return true;
}

std::vector<TensorType> types_of(const Sample& sample) {
  std::vector<TensorType> types;
  for (const SampleInput& in : sample.in) types.push_back({in.dtype, in.shape});
  return types;
}

std::string text_of(const OpDef& op, const Sample& sample) {
  std::string text = op.name.str() + " " + sample.attrs.str().substr(0, 500) + " (";
  for (const TensorType& t : types_of(sample)) text += t.str() + " ";
  return text + ") " + sample.note;
}

class Hostile : public ::testing::TestWithParam<Name> {
 protected:
  static void SetUpTestSuite() {
    use_device(cpu_device());
    testing::LastTry::watch();
  }
  void TearDown() override { testing::LastTry::end(); }

  const OpDef& op() const { return op_named(GetParam()); }

  // What a user would see of a call: "" for a result, and for an error that helps.
  template <class F>
  static std::string failure_of(F call) {
    try {
      call();
      return "";
    } catch (const Error& e) {
      const std::string text = e.what();
      const bool helps = text.find("\n  need") != std::string::npos;
      return helps && (e.exit_code() == ExitCode::Usage || e.code() == "E0401") ? "" : text;
    } catch (const std::exception& e) {
      return e.what();
    }
  }

  // Which of special values a sum of products meets is a matter of its order.
  bool compares(const Sample& sample, const testing::Case& c) const {
    if (op().name == Name("attention_cached")) return false;  // the cache may be too short then
    // A spread, of a mean square and the square of a mean, may be all rounding errors.
    const optim::FormulaRecord* formula = formula_of_update(op().name);
    if (formula && std::ranges::count(formula->states, "grad_avg") > 0) return false;
    bool numbers = fits_f32(sample.attrs);
    for (const SampleInput& in : sample.in)
      if (in.fill == Fill::Special || in.fill == Fill::InRange)
        numbers = numbers && !testing::sums_products(op());
    std::set<DType> floats;
    for (const HostArray& a : c.in)
      if (is_float(a.dtype)) floats.insert(a.dtype);
    return numbers && (floats.size() < 2 || !floats.contains(DType::F64));  // which is the wider
  }

  // What an update sums in double is of elements in fp32; a sample that did not ask for such a sum
  // does not know that.
  Sample judged(Sample sample, DType out) const {
    if (out == DType::F64 && formula_of_update(op().name))
      sample.tolerance = std::max(
          sample.tolerance, tolerance_of(DType::F32).relative / tolerance_of(DType::F64).relative);
    return sample;
  }

  void kernels(const Sample& sample, const testing::Case& c) const {
    const bool compared = compares(sample, c);
    DType narrowest = DType::F64;
    for (const HostArray& a : c.in)
      if (is_float(a.dtype) && size_of(a.dtype) <= size_of(narrowest)) narrowest = a.dtype;
    for (const Kernel* kernel : cpu_backend().candidates(op().name)) {
      if (kernel->accepts(c.call)) continue;
      const auto got = testing::run_kernel(*kernel, c.call, c.in, {.threads = 2});
      EXPECT_EQ(got.problem, "") << kernel->name;
      for (std::size_t o = 0; o < c.want.size() && compared; ++o)
        EXPECT_EQ(testing::compare(got.out[o], c.want[o], std::max<std::int64_t>(c.lengths[o], 16),
                                   c.scale, judged(sample, c.want[o].dtype), narrowest),
                  "")
            << kernel->name << ", output " << o;
    }
  }

  static Tensor on_device(const HostArray& a) {
    std::vector<std::byte> bytes(a.values.size() * size_of(a.dtype));
    store_bytes(a, bytes.data());
    const Tensor t = eager().from_host({a.dtype, Shape::of(a.shape)}, bytes.data());
    return Tensor(&eager_session(), t.id(), t.held());
  }

  void gradients(const Sample& sample, const std::vector<HostArray>& in) const {
    std::vector<Tensor> operands, wrt;
    for (const HostArray& a : in) {
      operands.push_back(on_device(a));
      if (is_float(a.dtype)) wrt.push_back(operands.back());
    }
    for (const Tensor& out : eager_session().emit({op().name, sample.attrs}, operands, {})) {
      out.to_vector();
      if (!is_float(out.dtype()) || op().gradient == OpDef::Gradient::None) continue;
      const Tensor seed = on_device(HostArray::zeros(out.dtype(), out.shape().max_extents()));
      for (const Tensor& g : eager_session().gradients(out, seed, wrt, {}))
        if (g.is_defined()) g.to_vector();
    }
  }

  // Whether inference takes the call, and it is small enough to be computed.
  bool can_compute(const Sample& sample) const {
    const std::vector<TensorType> in = types_of(sample);
    const std::vector<TensorType> out = infer_types(op(), sample.attrs, in, {});
    for (const auto& list : {in, out})
      for (const TensorType& t : list)
        if (t.shape.max_numel() > kMostElements) return false;
    if (op().products) op().products(sample.attrs, in, out);
    return op().cost(sample.attrs, in, out).flops < kMostFlops;
  }

  void check(const Sample& sample) {
    const std::string text = text_of(op(), sample);
    if (!seen_.insert(text).second) return;
    testing::LastTry::begin(text);
    SCOPED_TRACE(text);
    bool computes = false;
    EXPECT_EQ(failure_of([&] { computes = can_compute(sample); }), "");
    if (!computes) return;
    ++computed_;
    EXPECT_EQ(failure_of([&] {
                const auto c = testing::make_case(op(), sample, DType::F32);
                ASSERT_TRUE(c);
                kernels(sample, *c);
              }),
              "");
    EXPECT_EQ(failure_of([&] { gradients(sample, make_inputs(sample, DType::F32, 7)); }), "");
    eager().clear_tape();
  }

  std::set<std::string> seen_;
  int computed_ = 0;
};

// Optimizers' updates have one frame, which is tried in every form by the op of one of them.
bool is_one_of_many(Name op) {
  const optim::FormulaRecord* formula = formula_of_update(op);
  return formula != nullptr && formula->name != optim::kUsualOptimizer;
}

// Longer ones are the same calls; some ops have long ones alone.
std::vector<Sample> small_samples(const OpDef& op) {
  constexpr std::size_t kEach = 5;
  for (const std::int64_t most : {4096, 65536}) {
    std::vector<Sample> all;
    for (Sample& sample : samples_of(op)) {
      std::int64_t elements = 0;
      for (const SampleInput& in : sample.in) elements += in.shape.max_numel();
      if (elements <= most) all.push_back(std::move(sample));
    }
    std::size_t at = 0;
    if (is_one_of_many(op.name))
      std::erase_if(all, [&](const Sample&) { return at++ % kEach != 0; });
    if (!all.empty()) return all;
  }
  return {};
}

TEST_P(Hostile, OneThingIsAnErrorOrTheMeaning) {
  for (const Sample& sample : small_samples(op()))
    for (const Sample& other : hostile(sample)) check(other);
  RecordProperty("tries", static_cast<int>(seen_.size()));
  RecordProperty("computed", computed_);
}

TEST_P(Hostile, TwoThingsAreAnErrorOrTheMeaning) {
  testing::Draw draw;
  const std::vector<Sample> samples = small_samples(op());
  const auto any_of = [&](const std::vector<Sample>& list) {
    return list[static_cast<std::size_t>(draw(static_cast<std::int64_t>(list.size())))];
  };
  for (int trial = 0; trial < 300; ++trial) {
    const Sample once = any_of(hostile(any_of(samples)));
    check(any_of(hostile(once)));
  }
  RecordProperty("tries", static_cast<int>(seen_.size()));
  RecordProperty("computed", computed_);
}

std::vector<Name> all_ops() {
  std::vector<Name> names;
  for (const OpDef& op : op_table()) names.push_back(op.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Ops, Hostile, ::testing::ValuesIn(all_ops()),
                         [](const auto& info) { return info.param.str(); });

}  // namespace
}  // namespace aloft
