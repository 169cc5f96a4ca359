#include <unordered_map>

#include "base/error.h"
#include "ops/extents.h"
#include "ops/op.h"

namespace aloft {

#define OPS(stem) std::vector<OpDef> stem##_ops();
#define INNER_OPS(stem) OPS(stem)
#include "ops/catalog.inc"
#undef OPS

const std::vector<OpDef>& op_table() {
  static const std::vector<OpDef> table = [] {
    std::vector<OpDef> all;
#define OPS(stem) \
  for (OpDef & d : stem##_ops()) all.push_back(std::move(d));
#include "ops/catalog.inc"
#undef OPS
#undef INNER_OPS
    return all;
  }();
  return table;
}

const OpDef* find_op(Name name) {
  static const auto index = [] {
    std::unordered_map<Name, const OpDef*> m;
    for (const OpDef& d : op_table())
      ensure(m.emplace(d.name, &d).second, "op names are unique: " + d.name.str());
    return m;
  }();
  const auto it = index.find(name);
  return it == index.end() ? nullptr : it->second;
}

const OpDef& op_named(Name name) {
  if (const OpDef* d = find_op(name)) return *d;
  std::vector<std::string> known;
  for (const OpDef& d : op_table()) known.push_back(d.name.str());
  UserError e("E0201", "there is no op '" + name.str() + "'");
  if (const std::string near = nearest_name(name.str(), known); !near.empty())
    e.add_line("try", near);
  throw e;
}

Cost elementwise_cost(double flops_per_element, CallTypes in, CallTypes out) {
  Cost c;
  for (const TensorType& t : in) c.bytes += static_cast<double>(t.max_bytes());
  for (const TensorType& t : out) {
    c.bytes += static_cast<double>(t.max_bytes());
    c.flops += flops_per_element * static_cast<double>(t.shape.max_numel());
  }
  return c;
}

bool may_have_form(const OpDef& op, ProductForm form, CallTypes in) {
  if (form == ProductForm::Plain) return true;
  return is_among(form, op.product_forms) && in.size() >= 2 &&
         fits_operands(form, in[0].dtype, in[1].dtype);
}

namespace {
// Kernels rely on actual data being a dense prefix of its buffer, which only an outermost length
// gives (runtime/kernel.h).
void check_lengths(const Infer& infer) {
  for (const TensorType& t : infer.outputs()) {
    bool is_outermost = true;
    for (const Dim& d : t.shape) {
      if (!d.is_constant() && !is_outermost)
        infer.fail("its result " + t.str() + " has a symbolic length that is not outermost",
                   "symbolic lengths in the first dimension only",
                   "give that dimension a constant");
      is_outermost = is_outermost && d == Dim(1);
    }
  }
}

// One limit for all tensors, so that no op meets a back end that has no table for its axes.
void check_ranks(const Infer& infer) {
  const auto check = [&](const TensorType& t, const std::string& which) {
    infer.check(t.shape.rank() <= kMaxRank, which + " has rank " + std::to_string(t.shape.rank()),
                "rank 0 to " + std::to_string(kMaxRank), "join neighbouring axes: reshape");
  };
  for (int i = 0; i < infer.count(); ++i) check(infer.in(i), "operand " + std::to_string(i));
  for (const TensorType& t : infer.outputs()) check(t, "its result");
}

// Whatever made a shape (an attribute, a product of two), it is one that memory can hold.
void check_sizes(const Infer& infer) {
  for (const TensorType& t : infer.outputs()) {
    try {
      t.max_bytes();
    } catch (const UserError& e) {
      infer.fail("its result would be " + t.str(), "extents of 0 or more, and below 2^63 bytes",
                 "check the numbers that the shape is made of", e.code());
    }
  }
}
}  // namespace

std::vector<TensorType> infer_types(const OpDef& op, const Attrs& attrs, CallTypes in,
                                    const Where& where) {
  Infer infer(op.name, in, where);
  try {
    op.infer(attrs, infer);
  } catch (const UserError& e) {
    if (e.code() != "E0103") throw;
    infer.fail("its result would be too large", "extents of 0 or more, and below 2^63 bytes",
               "check the numbers that the shape is made of", e.code());
  }
  check_ranks(infer);
  check_lengths(infer);
  check_sizes(infer);
  return infer.outputs();
}

std::vector<Tensor> emit_op(Name op, const Attrs& attrs, std::span<const Operand> operands) {
  Emitter* emitter = nullptr;
  std::vector<Tensor> in;
  for (const Operand& o : operands) {
    if (!o.tensor.is_defined())
      throw UserError("E0302", op.str() + ": an empty tensor handle was passed")
          .at(place_of(where_of(o.loc)))
          .need("a tensor made by an op, by an input or from host memory");
    if (emitter && o.tensor.emitter() != emitter)
      throw UserError("E0304", op.str() + ": its operands come from different programs")
          .at(place_of(where_of(o.loc)))
          .need("tensors of one trace, or of one thread's eager session on one device")
          .advice(
              "pass the outside tensor to the compiled function as an argument; move one of "
              "another device over by way of the host");
    emitter = o.tensor.emitter();
    in.push_back(o.tensor);
  }
  if (!emitter) emitter = &current_emitter();
  const Where where = operands.empty() ? current_where() : where_of(operands[0].loc);
  return emitter->emit({op, attrs}, in, where);
}

Tensor emit_one(Name op, const Attrs& attrs, std::initializer_list<Operand> operands) {
  return emit_op(op, attrs, std::span(operands.begin(), operands.size()))[0];
}

}  // namespace aloft
