#include "backends/cpu/matmul/matmul_call.h"

#include <algorithm>

#include "backends/cpu/isa.h"
#include "backends/cpu/matmul/skinny_matmul.h"
#include "backends/cpu/vectors/tiles.h"
#include "ops/matmul.h"

namespace aloft::cpu {
namespace {

std::optional<Refusal> refuse_types(const CallSpec& call, Precision precision) {
  const bool in_double = precision == Precision::Double;
  for (const auto* list : {&call.in, &call.out})
    for (const TensorType& t : *list)
      if (in_double ? t.dtype != DType::F64 : !has_tiles(t.dtype))
        return Refusal{std::string(name_of(t.dtype)) +
                       (in_double ? " among f64 operands" : " is not computed in f32")};
  return std::nullopt;
}

Dim product(const Shape& shape, int begin, int end) {
  Dim d = 1;
  for (int i = begin; i < end; ++i) d = d * shape[i];
  return d;
}

// Only an outermost dimension may be symbolic.
bool symbol_inside(const Shape& shape) {
  bool outermost = true;
  for (const Dim& d : shape) {
    if (!d.is_constant() && !outermost) return true;
    outermost = outermost && d.is_constant() && d.max() == 1;
  }
  return false;
}

// Start of each product's operand, where the leading axes of `part` broadcast to those of `whole`.
std::vector<std::int64_t> broadcast_offsets(const Shape& part, const Shape& whole) {
  const int axes = whole.rank() - 2, missing = whole.rank() - part.rank();
  const std::int64_t matrix = part[-1].max() * part[-2].max();
  std::vector<std::int64_t> offsets(1, 0);
  std::int64_t step = matrix;
  std::vector<std::int64_t> steps(axes, 0);
  for (int i = axes - 1; i >= missing; --i) {
    if (part[i - missing].max() != 1) steps[i] = step;
    step *= part[i - missing].max();
  }
  for (int i = 0; i < axes; ++i) {
    std::vector<std::int64_t> next;
    for (const std::int64_t base : offsets)
      for (std::int64_t j = 0; j < whole[i].max(); ++j) next.push_back(base + j * steps[i]);
    offsets = std::move(next);
  }
  return offsets;
}

class SkinnyProduct : public Prepared {
 public:
  explicit SkinnyProduct(const MatmulCall& call) : call_(call) {
    const MatmulSpec& s = call.spec;
    spec_ = {s.m, s.n, s.k, s.a, s.b, s.c, s.transpose_b, s.bias};
  }
  std::size_t scratch_bytes() const override { return skinny_scratch_bytes(spec_); }
  std::string how() const override { return "B read once, where it lies"; }
  void run(const RunArgs& args) const override {
    SkinnySpec there = spec_;
    there.m = call_.actual(args).m;
    run_skinny(there, {args.in[0], args.in[1], call_.bias < 0 ? nullptr : args.in[call_.bias],
                       args.out[0], args.scratch});
  }

 private:
  MatmulCall call_;
  SkinnySpec spec_;
};

// On the grid; where the rows vary and are few in a run, as a call with so few rows would be: a
// partial batch then has the same bits whether its bound is known to be small or not.
class Product : public Prepared {
 public:
  explicit Product(const MatmulCall& call) : call_(call), grid_(call.spec) {
    MatmulCall few = call;
    few.spec.m = std::min(few.spec.m, kSkinnyRows);
    if (call.m.slot >= 0 && !refuse_wide(few)) few_ = std::make_unique<SkinnyProduct>(few);
  }
  std::size_t scratch_bytes() const override {
    return std::max(grid_.scratch_bytes(), few_ ? few_->scratch_bytes() : 0);
  }
  std::string how() const override { return grid_.how(); }
  void run(const RunArgs& args) const override {
    const MatmulActual actual = call_.actual(args);
    if (few_ && actual.m <= kSkinnyRows) return few_->run(args);
    grid_.run({args.in[0], args.in[1], call_.bias < 0 ? nullptr : args.in[call_.bias], args.out[0],
               args.scratch},
              actual);
  }

 private:
  MatmulCall call_;
  MatmulGrid grid_;
  std::unique_ptr<SkinnyProduct> few_;
};

void set_types(const CallSpec& call, MatmulSpec* s) {
  s->a = call.in[0].dtype;
  s->b = call.in[1].dtype;
  s->c = call.out[0].dtype;
  s->threads = call.threads;
  s->form = call.form;
}

}  // namespace

std::optional<Refusal> refuse_form(const CallSpec& call) {
  if (call.form == ProductForm::Plain ||
      !fits_operands(call.form, call.in[0].dtype, call.in[1].dtype))
    return Refusal{"no split of f32 products is asked for"};
  if (!cpu_features().amx_bf16)
    return Refusal{"this processor has no bf16 matrix units: products of f32 stay plain"};
  return std::nullopt;
}

std::optional<Refusal> read_matmul(const CallSpec& call, MatmulCall* into, Precision precision) {
  if (auto refusal = refuse_types(call, precision)) return refusal;
  const Shape &a = call.in[0].shape, &b = call.in[1].shape, &c = call.out[0].shape;
  if (symbol_inside(a) || symbol_inside(b) || symbol_inside(c))
    return Refusal{"a symbolic dimension that is not the outermost"};
  if (!into) return std::nullopt;
  const auto attrs = from_attrs<MatmulAttrs>(call.attrs);
  const int axes = c.rank() - 2;
  Dim m = c[-2], batch = product(c, 0, axes);
  if (c.max_numel() == 0) batch = 0;  // of results without an element there may be any number
  const Dim k = attrs.transpose_a ? a[-2] : a[-1];
  MatmulSpec& s = into->spec;
  set_types(call, &s);
  s.transpose_a = attrs.transpose_a;
  s.transpose_b = attrs.transpose_b;
  const bool one_b = product(b, 0, b.rank() - 2) == Dim(1);
  if (one_b && !attrs.transpose_a && a.rank() == c.rank()) {
    // One matrix B for all: the leading axes of A are rows.
    m = batch * m;
    batch = 1;
  } else if (batch.max() > 1) {
    s.a_offset = broadcast_offsets(a, c);
    s.b_offset = broadcast_offsets(b, c);
  }
  s.batch = batch.max(), s.m = m.max(), s.n = c[-1].max(), s.k = k.max();
  s.k_varies = !k.is_constant();
  into->batch = extent_of(batch, call);
  into->m = extent_of(m, call);
  into->k = extent_of(k, call);
  return std::nullopt;
}

std::optional<Refusal> read_linear(const CallSpec& call, MatmulCall* into, Precision precision) {
  if (auto refusal = refuse_types(call, precision)) return refusal;
  const Shape &x = call.in[0].shape, &w = call.in[1].shape;
  if (symbol_inside(x) || symbol_inside(w) || !w[0].is_constant() || !x[-1].is_constant())
    return Refusal{"a symbolic dimension that is not x's outermost"};
  if (!into) return std::nullopt;
  MatmulSpec& s = into->spec;
  set_types(call, &s);
  s.transpose_b = true;
  const Dim m = product(x, 0, x.rank() - 1);
  s.m = m.max(), s.n = w[0].max(), s.k = w[1].max();
  if (call.in.size() == 3) {
    s.bias = call.in[2].dtype;
    into->bias = 2;
  }
  into->batch = extent_of(Dim(1), call);
  into->m = extent_of(m, call);
  into->k = extent_of(w[1], call);
  return std::nullopt;
}

std::optional<Refusal> refuse_wide(const MatmulCall& call) {
  const MatmulSpec& s = call.spec;
  if (s.m > kSkinnyRows) return Refusal{"more rows than are worth reading B in place for"};
  if (s.batch != 1 || s.transpose_a || s.k_varies)
    return Refusal{"not one matrix B of a constant depth"};
  return std::nullopt;
}

std::unique_ptr<Prepared> prepare_skinny(const MatmulCall& call) {
  return std::make_unique<SkinnyProduct>(call);
}

std::unique_ptr<Prepared> prepare_product(const MatmulCall& call) {
  return std::make_unique<Product>(call);
}

}  // namespace aloft::cpu
