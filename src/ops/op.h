// The op contract: one record answers everything that any other module may ask about an op, so
// that no other module names ops in a list or a switch. A required answer left out does not
// compile (Required has no default constructor).
//
// src/ops/softmax.cpp is the example to copy; CONTRIBUTING.md walks through it.
#pragma once

#include <concepts>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/name.h"
#include "graph/tensor.h"
#include "ops/host_array.h"
#include "ops/infer.h"
#include "ops/samples.h"
#include "ops/vjp.h"
#include "types/attrs.h"
#include "types/call.h"
#include "types/numeric.h"

namespace aloft {

// A field that an author may not leave out.
template <class T>
struct Required {
  Required() = delete;
  template <std::convertible_to<T> U>
  constexpr Required(U&& u) : v(std::forward<U>(u)) {}
  T v;
};

// What the work of a call is, with every symbol at its bound.
struct Cost {
  double flops = 0;
  double bytes = 0;  // read and written, each operand once
};

// A matrix product inside a call: `batch` times [m, k] x [k, n]. What the hardware must do at
// least, which is what a step's time is held against.
struct Product {
  std::int64_t batch = 1, m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
};

// How fusion may treat the op.
enum class Fusion { Opaque, Elementwise, Broadcast, RowReduce, View };

struct Onnx {
  std::string op;  // "" where ONNX has no counterpart: the export goes through the body
  int since = 0;   // first opset with the meaning used here
};
inline Onnx no_onnx() { return {}; }

struct NoGradient {};  // the op's outputs carry no gradient (indices, masks, state)
struct FromBody {};    // differentiate the body instead

// The host's evaluation of a call: inputs and outputs in double; outputs arrive zero-filled with
// their inferred types.
struct EvalCall {
  std::span<const HostArray> in;
  std::span<HostArray> out;
};

template <class A>
using Eval = std::function<void(const A&, EvalCall&)>;
template <class A>
using Body = std::function<std::vector<Tensor>(const A&, std::span<const Tensor>)>;
template <class A>
using VjpOf = std::function<void(const A&, Vjp&)>;

using CallTypes = std::span<const TensorType>;

template <class A>
struct OpSpec {
  Required<std::string> name;
  Required<std::string> doc;
  Required<std::function<void(const A&, Infer&)>> infer;
  Required<Numeric> numeric;
  // Exactly one meaning: a host evaluation in double, or a body in other ops.
  Required<std::variant<Eval<A>, Body<A>>> meaning;
  Required<std::variant<VjpOf<A>, FromBody, NoGradient>> vjp;
  Required<std::function<Cost(const A&, CallTypes in, CallTypes out)>> cost;
  // Einsum-like labels from which sharding is propagated: "b m k, k n -> b m n"; "..." stands for
  // equal leading dimensions, "*" for dimensions that may not be sharded.
  Required<std::string> labels;
  Required<Fusion> fusion;
  Required<Onnx> onnx;
  Required<std::function<void(Samples&)>> samples;
  // The matrix products inside a call, with symbols at their bounds; null: none.
  std::function<std::vector<Product>(const A&, CallTypes in, CallTypes out)> products = nullptr;
  // Forms, beside the plain one, in which these may be computed where operands 0 and 1 are of the
  // types that the form is of: some back end has kernels for them.
  std::span<const ProductForm> product_forms = {};
  bool is_loss = false;  // always computed and stored in fp32
  bool is_norm = false;
  bool only_moves = false;  // each element is one of an operand's, in whatever type
  // The op by whose name lists of a precision recipe mean this one, where none has its own; empty:
  // only by its own.
  std::string_view listed_as = {};
  // Inputs whose types a precision policy never changes (statistics, norm parameters, indices).
  std::vector<int> keep_inputs = {};
};

// The erased record, as the table keeps it.
struct OpDef {
  Name name;
  std::string doc;
  std::vector<std::pair<std::string, std::string>> attr_docs;  // name, doc
  Attrs default_attrs;
  std::function<void(const Attrs&, Infer&)> infer;
  Numeric numeric;
  std::function<void(const Attrs&, EvalCall&)> eval;  // null where the meaning is a body
  std::function<std::vector<Tensor>(const Attrs&, std::span<const Tensor>)> body;
  std::function<void(const Attrs&, Vjp&)> vjp;  // null: see gradient
  enum class Gradient { Vjp, FromBody, None } gradient;
  std::function<Cost(const Attrs&, CallTypes, CallTypes)> cost;
  std::function<std::vector<Product>(const Attrs&, CallTypes, CallTypes)> products;  // may be null
  std::span<const ProductForm> product_forms;
  std::string labels;
  Fusion fusion;
  Onnx onnx;
  std::function<void(Samples&)> samples;
  bool is_loss = false, is_norm = false, only_moves = false;
  std::string_view listed_as;
  std::vector<int> keep_inputs;
};

template <class A>
OpDef define(OpSpec<A> s) {
  OpDef d;
  d.name = s.name.v;
  d.doc = std::move(s.doc.v);
  A::fields().each([&](const auto& f) { d.attr_docs.emplace_back(f.name, f.doc); });
  d.default_attrs = to_attrs(A{});
  d.infer = [f = std::move(s.infer.v)](const Attrs& a, Infer& c) { f(from_attrs<A>(a), c); };
  d.numeric = s.numeric.v;
  if (auto* eval = std::get_if<Eval<A>>(&s.meaning.v))
    d.eval = [f = std::move(*eval)](const Attrs& a, EvalCall& c) { f(from_attrs<A>(a), c); };
  else
    d.body = [f = std::move(std::get<Body<A>>(s.meaning.v))](
                 const Attrs& a, std::span<const Tensor> x) { return f(from_attrs<A>(a), x); };
  if (auto* vjp = std::get_if<VjpOf<A>>(&s.vjp.v)) {
    d.vjp = [f = std::move(*vjp)](const Attrs& a, Vjp& g) { f(from_attrs<A>(a), g); };
    d.gradient = OpDef::Gradient::Vjp;
  } else {
    d.gradient = std::holds_alternative<FromBody>(s.vjp.v) ? OpDef::Gradient::FromBody
                                                           : OpDef::Gradient::None;
  }
  d.cost = [f = std::move(s.cost.v)](const Attrs& a, CallTypes in, CallTypes out) {
    return f(from_attrs<A>(a), in, out);
  };
  if (s.products)
    d.products = [f = std::move(s.products)](const Attrs& a, CallTypes in, CallTypes out) {
      return f(from_attrs<A>(a), in, out);
    };
  d.labels = std::move(s.labels.v);
  d.fusion = s.fusion.v;
  d.onnx = std::move(s.onnx.v);
  d.samples = std::move(s.samples.v);
  d.product_forms = s.product_forms;
  d.is_loss = s.is_loss;
  d.is_norm = s.is_norm;
  d.only_moves = s.only_moves;
  d.listed_as = s.listed_as;
  d.keep_inputs = std::move(s.keep_inputs);
  return d;
}

// A cost of `flops_per_element` for each output element, operands moved once.
Cost elementwise_cost(double flops_per_element, CallTypes in, CallTypes out);

// All ops, in the order of catalog.inc; built once, immutable.
const std::vector<OpDef>& op_table();
const OpDef* find_op(Name name);
// UserError E0201 with the nearest name.
const OpDef& op_named(Name name);

// Emits `op` through `operands`' emitter (or the current one where there are none).
std::vector<Tensor> emit_op(Name op, const Attrs& attrs, std::span<const Operand> operands);
Tensor emit_one(Name op, const Attrs& attrs, std::initializer_list<Operand> operands);

// Whether the products of a call of `op` on such operands may be computed in the form.
bool may_have_form(const OpDef& op, ProductForm form, CallTypes in);

// The output types of a call. Throws UserError naming op, place, types seen and needed.
std::vector<TensorType> infer_types(const OpDef& op, const Attrs& attrs, CallTypes in,
                                    const Where& where);

}  // namespace aloft
