// Every kernel of the processor against its op's meaning in double: all samples, all float types,
// poisoned and guarded memory, 1, 2 and 4 threads, sharing buffers where the kernel says it may,
// and an outermost dimension that is a symbol below its bound.
#include <gtest/gtest.h>

#include "backends/cpu/cpu_backend.h"
#include "base/error.h"
#include "ops/evaluate.h"
#include "ops/graph_emitter.h"
#include "ops/kernel_case.h"
#include "ops/kernel_run.h"
#include "ops/sample_inputs.h"

namespace aloft {
namespace {

using testing::Case;
using testing::case_text;
using testing::compare;
using testing::make_case;
using testing::run_kernel;
using testing::RunOptions;
using testing::samples_of;
using testing::special_samples_of;

void check_threads_and_sharing(const Case& c, const Kernel& kernel,
                               const testing::RunResult& first) {
  for (int threads : {2, 4}) {
    const auto again = run_kernel(kernel, c.call, c.in, {.threads = threads});
    EXPECT_EQ(again.bits, first.bits) << "other bits with " << threads << " threads";
    EXPECT_EQ(again.problem, "");
  }
  if (kernel.in_place == nullptr) return;
  for (const auto& pair : kernel.in_place(c.call)) {
    if (c.call.in[pair.first].max_bytes() < c.call.out[pair.second].max_bytes()) {
      ADD_FAILURE() << "shares an input that is too small";
      continue;
    }
    const auto shared = run_kernel(kernel, c.call, c.in, {.threads = 2, .share = pair});
    EXPECT_EQ(shared.bits, first.bits)
        << "other bits with input " << pair.first << " and output " << pair.second << " shared";
    EXPECT_EQ(shared.problem, "");
  }
}

Dim make_symbolic(const Dim& d) { return Dim::symbolic("B", d.max() + 3); }

// The outermost extent of a shape among the attributes, or of the operand with the largest rank; -1
// where there is none.
std::int64_t outer_extent(const CallSpec& call, int& rank) {
  std::int64_t outer = -1;
  rank = 0;
  for (const TensorType& t : call.in)
    if (t.shape.rank() > rank) {
      rank = t.shape.rank();
      outer = t.shape[0].max();
    }
  for (const auto& [name, value] : call.attrs.all())
    if (const Shape* s = std::get_if<Shape>(&value); s && s->rank() > 0) outer = (*s)[0].max();
  return outer;
}

// The call with `outer` made a symbol wherever it is outermost, in operands of at least
// `least_rank`. Nullopt where that is no call of the op, or a symbol would lie further inside.
std::optional<CallSpec> symbolic_form(const Case& c, std::int64_t outer, int least_rank) {
  CallSpec call = c.call;
  const auto change = [&](Shape& s) {
    if (s.rank() > 0 && s[0] == Dim(outer)) s[0] = make_symbolic(outer);
  };
  for (TensorType& t : call.in)
    if (t.shape.rank() >= least_rank) change(t.shape);
  Attrs attrs;
  for (auto [name, value] : call.attrs.all()) {
    if (Shape* s = std::get_if<Shape>(&value)) change(*s);
    attrs.set(name, value);
  }
  call.attrs = attrs;
  try {
    call.out = infer_types(c.op, attrs, call.in, {});
  } catch (const UserError&) {
    return std::nullopt;
  }
  for (std::size_t i = 0; i < call.out.size(); ++i) {
    if (bind_lengths(call.out[i], {{"B", outer}}) != c.call.out[i]) return std::nullopt;
    for (int d = 1; d < call.out[i].shape.rank(); ++d)
      if (!call.out[i].shape[d].is_constant()) return std::nullopt;
  }
  if (call.symbols().empty()) return std::nullopt;
  return call;
}

// The same values under types whose outermost dimension is a symbol with a larger bound. Not every
// sample has such a form; inference says so.
bool check_symbolic(const Case& c) {
  int rank = 0;
  const std::int64_t outer = outer_extent(c.call, rank);
  if (outer < 0) return false;
  std::optional<CallSpec> call = symbolic_form(c, outer, 1);
  if (!call) call = symbolic_form(c, outer, rank);
  if (!call) return false;
  const Choice choice = choose_kernel(cpu_backend(), *call);
  if (!choice.kernel) return false;
  RunOptions options{.threads = 2, .symbols = {outer}};
  for (const HostArray& a : c.want) options.out_extents.push_back(a.shape);
  const auto result = run_kernel(*choice.kernel, *call, c.in, options);
  EXPECT_EQ(result.problem, "") << "with a symbolic outer dimension";
  for (std::size_t o = 0; o < c.want.size(); ++o)
    EXPECT_EQ(compare(result.out[o], c.want[o], c.lengths[o], c.scale, c.sample, c.dtype), "")
        << "output " << o << " with a symbolic outer dimension";
  return true;
}

class Kernels : public ::testing::TestWithParam<Name> {};
// All ops, those that run through their bodies too.
class KernelsOrBodies : public ::testing::TestWithParam<Name> {};
class KernelsOfAnyNumbers : public ::testing::TestWithParam<Name> {};

TEST_P(Kernels, EqualTheMeaning) {
  const OpDef& op = op_named(GetParam());
  int ran = 0;
  const auto samples = samples_of(op);
  for (DType dtype : {DType::F32, DType::BF16, DType::F16, DType::F64}) {
    for (const Sample& sample : samples) {
      const auto c = make_case(op, sample, dtype);
      if (!c) continue;
      SCOPED_TRACE(case_text(op, sample, c->in));
      const Choice choice = choose_kernel(cpu_backend(), c->call);
      if (!choice.kernel) {
        EXPECT_TRUE(op.body != nullptr) << "no kernel takes it, and it has no body";
        continue;
      }
      const auto first = run_kernel(*choice.kernel, c->call, c->in, {.threads = 1});
      EXPECT_EQ(first.problem, "");
      for (std::size_t o = 0; o < c->want.size(); ++o)
        EXPECT_EQ(compare(first.out[o], c->want[o], c->lengths[o], c->scale, sample, dtype), "")
            << "output " << o;
      check_threads_and_sharing(*c, *choice.kernel, first);
      check_symbolic(*c);
      ++ran;
    }
  }
  EXPECT_GT(ran, 0) << "the kernels took no sample";
}

// What an op does with inf, NaN, denormals, -0 and the largest finite numbers, in every operand
// that its samples fill with numbers: not every author thinks of it, and these are where kernels
// differ.
TEST_P(KernelsOfAnyNumbers, EqualTheMeaningOnSpecialValues) {
  const OpDef& op = op_named(GetParam());
  const auto special = special_samples_of(op);
  int ran = 0;
  for (DType dtype : {DType::F32, DType::BF16, DType::F16}) {
    for (const Sample& sample : special) {
      const auto c = make_case(op, sample, dtype);
      if (!c) continue;
      SCOPED_TRACE(case_text(op, sample, c->in));
      const Choice choice = choose_kernel(cpu_backend(), c->call);
      if (!choice.kernel) continue;
      const auto result = run_kernel(*choice.kernel, c->call, c->in, {.threads = 2});
      EXPECT_EQ(result.problem, "");
      for (std::size_t o = 0; o < c->want.size(); ++o)
        EXPECT_EQ(compare(result.out[o], c->want[o], c->lengths[o], c->scale, sample, dtype), "")
            << "output " << o;
      ++ran;
    }
  }
  EXPECT_GT(ran, 0) << "the kernels took no sample";
}

// The call of an op on operands, and what it means.
Case case_of(const OpDef& op, const Sample& sample, std::vector<HostArray> in, DType dtype) {
  Case c{op, sample, std::move(in), {op.name, sample.attrs, {}, {}}, {}, dtype};
  for (const HostArray& a : c.in) c.call.in.push_back({a.dtype, Shape::of(a.shape)});
  c.call.out = infer_types(op, sample.attrs, c.call.in, {});
  c.want = evaluate_op(op, sample.attrs, c.in);
  for (const auto* list : {&c.in, &c.want})
    for (const HostArray& a : *list) c.scale = testing::largest_magnitude(a, c.scale);
  for (std::size_t o = 0; o < c.want.size(); ++o)
    c.lengths.push_back(testing::terms_of(op, c.call, o));
  return c;
}

// Special queries and keys have special log-sum-exps, without which their gradient is no gradient.
TEST(Kernels, GradientsOfAttentionEqualTheMeaningOnSpecialValues) {
  int ran = 0;
  for (const auto& [forward, backward] :
       {std::pair{"attention", "attention_grad"}, std::pair{"attention_qkv", "attention_qkv_grad"}})
    for (const DType dtype : {DType::F32, DType::BF16, DType::F16})
      for (const Sample& sample : samples_of(op_named(forward))) {
        const bool is_causal = std::get<bool>(*sample.attrs.find("causal"));
        if (!sample.note.starts_with("special") || is_causal) continue;
        std::vector<HostArray> in = testing::make_inputs(sample, dtype, 7);
        SCOPED_TRACE(case_text(op_named(backward), sample, in));
        std::vector<HostArray> seen = evaluate_op(op_named(forward), sample.attrs, in);
        Sample seed;
        seed.in = {{Shape::of(seen[0].shape)}};
        for (HostArray& a : seen) round_to_dtype(a);
        in.insert(in.end(), {seen[0], seen[1], testing::make_inputs(seed, dtype, 8)[0]});
        const Case c = case_of(op_named(backward), sample, in, dtype);
        const Choice choice = choose_kernel(cpu_backend(), c.call);
        ASSERT_NE(choice.kernel, nullptr);
        const auto result = run_kernel(*choice.kernel, c.call, c.in, {.threads = 2});
        EXPECT_EQ(result.problem, "");
        for (std::size_t o = 0; o < c.want.size(); ++o)
          EXPECT_EQ(compare(result.out[o], c.want[o], c.lengths[o], c.scale, sample, dtype), "")
              << "output " << o;
        ++ran;
      }
  EXPECT_GT(ran, 0);
}

// Small calls at random: broadcasting, empty and single dimensions, every element type.
TEST_P(Kernels, EqualTheMeaningOnRandomCalls) {
  const OpDef& op = op_named(GetParam());
  testing::Draw draw;
  const auto samples = samples_of(op);
  for (int trial = 0; trial < 300; ++trial) {
    Sample sample;
    sample.attrs = draw(3) == 0 ? op.default_attrs : samples[draw(samples.size())].attrs;
    sample.rounds_between_ops = !samples.empty() && samples.front().rounds_between_ops;
    const std::int64_t count = draw(5);
    for (std::int64_t i = 0; i < count; ++i) {
      if (i > 0 && draw(2) == 0) {
        sample.in.push_back(sample.in[0]);
        continue;
      }
      const TensorType t = testing::random_type(draw);
      SampleInput in{t.shape, is_float(t.dtype) ? Fill::Normal : Fill::Ids, 0, 3};
      in.dtype = t.dtype;
      in.fixed_dtype = true;
      sample.in.push_back(in);
    }
    const auto c = make_case(op, sample, DType::F32);
    if (!c) continue;
    const Choice choice = choose_kernel(cpu_backend(), c->call);
    if (!choice.kernel) continue;
    SCOPED_TRACE(case_text(op, sample, c->in));
    const auto result = run_kernel(*choice.kernel, c->call, c->in, {.threads = 2});
    EXPECT_EQ(result.problem, "");
    for (std::size_t o = 0; o < c->want.size(); ++o)
      EXPECT_EQ(compare(result.out[o], c->want[o], c->lengths[o], c->scale, c->sample, c->dtype),
                "")
          << "output " << o;
  }
}

// Whether a call ends in kernels: one takes it, or its body's calls all do. Adds what does not.
void expand(const OpDef& op, const CallSpec& call, std::vector<std::string>& missing) {
  const Choice choice = choose_kernel(cpu_backend(), call);
  if (choice.kernel) return;
  std::string text = op.name.str() + " " + call.attrs.str() + " (";
  for (const TensorType& t : call.in) text += t.str() + " ";
  for (const std::string& why : choice.refusals) text += "; " + why;
  if (op.body == nullptr) return missing.push_back(text + ")");
  Graph graph;
  GraphEmitter emitter(graph);
  EmitterScope scope(emitter);
  std::vector<Tensor> in;
  for (std::size_t i = 0; i < call.in.size(); ++i)
    in.push_back(emitter.handle(graph.add_input("in" + std::to_string(i), call.in[i])));
  op.body(call.attrs, in);
  for (std::uint32_t n : graph.order()) {
    const Node& node = graph.node(n);
    if (node.op == Name("input")) continue;
    CallSpec part{node.op, node.attrs, {}, node.out};
    for (ValueId v : node.in) part.in.push_back(graph.type(v));
    expand(op_named(node.op), part, missing);
  }
}

// On a processor nothing runs the reference: an op has kernels, or a body whose ops have.
TEST_P(KernelsOrBodies, TakeEveryCall) {
  const OpDef& op = op_named(GetParam());
  std::vector<std::string> missing;
  for (DType dtype : {DType::F32, DType::BF16, DType::F16, DType::F64})
    for (const Sample& sample : samples_of(op))
      if (const auto c = make_case(op, sample, dtype)) expand(op, c->call, missing);
  for (const std::string& text : missing) ADD_FAILURE() << "no kernel: " << text;
}

// Tables of axes have a length: what does not fit is refused, never written behind them. (Inference
// refuses it before; a kernel does not rely on that.)
TEST(Kernels, RefuseTooManyAxes) {
  Shape deep;
  Ints perm;
  for (int d = 0; d < 12; ++d) {
    deep.dims().push_back(2);
    perm.push_back(11 - d);
  }
  for (const char* name : {"sum", "max", "transpose"}) {
    CallSpec call{name, {}, {{DType::F32, deep}}, {}};
    call.attrs.set(name == std::string("transpose") ? "perm" : "axes",
                   name == std::string("transpose") ? perm : Ints{0, 2, 4, 6, 8, 10});
    call.out = {{DType::F32, name == std::string("transpose") ? deep : Shape{2, 2, 2, 2, 2, 2}}};
    EXPECT_EQ(choose_kernel(cpu_backend(), call).kernel, nullptr) << name;
  }
}

TEST(Kernels, EveryKernelHasItsOp) {
  for (const OpDef& op : op_table())
    for (const Kernel* kernel : cpu_backend().candidates(op.name)) {
      EXPECT_EQ(kernel->op, op.name);
      EXPECT_EQ(kernel->name.substr(0, 4), "cpu.");
    }
}

std::vector<Name> all_ops() {
  std::vector<Name> names;
  for (const OpDef& op : op_table()) names.push_back(op.name);
  return names;
}

std::vector<Name> ops_with_kernels() {
  std::vector<Name> names = all_ops();
  std::erase_if(names, [](Name op) { return cpu_backend().candidates(op).empty(); });
  return names;
}

std::vector<Name> ops_of_any_numbers() {
  std::vector<Name> names = ops_with_kernels();
  std::erase_if(names, [](Name op) { return special_samples_of(op_named(op)).empty(); });
  return names;
}

std::string op_of(const ::testing::TestParamInfo<Name>& info) { return info.param.str(); }

INSTANTIATE_TEST_SUITE_P(Ops, Kernels, ::testing::ValuesIn(ops_with_kernels()), op_of);
INSTANTIATE_TEST_SUITE_P(Ops, KernelsOfAnyNumbers, ::testing::ValuesIn(ops_of_any_numbers()),
                         op_of);
INSTANTIATE_TEST_SUITE_P(Ops, KernelsOrBodies, ::testing::ValuesIn(all_ops()), op_of);

}  // namespace
}  // namespace aloft
