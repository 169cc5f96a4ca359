#include "ops/add_norm.h"

#include "ops/binary.h"
#include "ops/layer_norm.h"
#include "ops/op.h"
#include "ops/rms_norm.h"

namespace aloft {
namespace {

std::vector<TensorType> infer_norm(const FusedNorm& f, const Attrs& attrs, const Infer& c) {
  std::vector<TensorType> in;
  for (int i = 1; i < c.count(); ++i) in.push_back(c.in(i));
  return infer_types(op_named(f.norm), attrs, in, {});
}

template <class A>
void infer(const FusedNorm& f, const A& a, Infer& c) {
  c.need_count(2, 6);
  c.need_same_dtype(0, 1);
  c.need_same_shape(0, 1);
  for (const TensorType& t : infer_norm(f, to_attrs(a), c)) c.out(t);
  if (!f.is_gradient) c.out(c.in(0));
}

template <class A>
std::vector<Tensor> body(const FusedNorm& f, const A& a, std::span<const Tensor> in) {
  std::vector<Operand> operands;
  for (const Tensor& t : in.subspan(1)) operands.push_back(t);
  if (!f.is_gradient) operands[0] = in[0] + in[1];
  std::vector<Tensor> out = emit_op(f.norm, to_attrs(a), operands);
  if (f.is_gradient)
    out[0] = in[0] + out[0];
  else
    out.push_back(operands[0].tensor);
  return out;
}

// The norm's own samples with an operand more, like its first.
void samples(const FusedNorm& f, Samples& s) {
  Samples of_norm;
  op_named(f.norm).samples(of_norm);
  for (const Sample& sample : of_norm.all()) {
    std::vector<SampleInput> in = sample.in;
    in.insert(in.begin(), sample.in[0]);
    Sample& with_sum = s.add_erased(sample.attrs, std::move(in), sample.note);
    with_sum.gradient = sample.gradient;
    with_sum.tolerance = sample.tolerance;
    with_sum.rounds_between_ops = true;
    // dx near the middle of two neighbours may go to the other one.
    if (f.is_gradient) with_sum.inner_roundings = 1;
  }
}

template <class A>
OpDef fused_norm_op(const FusedNorm& f, std::string labels, std::vector<int> keep_inputs) {
  return define<A>({
      .name = f.fused,
      .doc = f.is_gradient
                 ? "The gradients of " + std::string(f.norm) + "'s norm, the first one added to r."
                 : std::string(f.norm) + " of a sum, and the sum.",
      .infer = [f](const A& a, Infer& c) { infer(f, a, c); },
      .numeric = Numeric::Widen,
      .meaning = Body<A>([f](const A& a, std::span<const Tensor> in) { return body(f, a, in); }),
      .vjp = FromBody{},
      .cost =
          [f](const A& a, CallTypes in, CallTypes out) {
            const auto own = out.subspan(0, f.is_gradient ? out.size() : out.size() - 1);
            Cost c = op_named(f.norm).cost(to_attrs(a), in.subspan(1), own);
            c.flops += static_cast<double>(in[0].shape.max_numel());
            c.bytes += static_cast<double>(in[0].max_bytes());
            if (!f.is_gradient) c.bytes += static_cast<double>(out.back().max_bytes());
            return c;
          },
      .labels = std::move(labels),
      .fusion = Fusion::RowReduce,
      .onnx = no_onnx(),
      .samples = [f](Samples& s) { samples(f, s); },
      .is_norm = true,
      .keep_inputs = std::move(keep_inputs),
  });
}

}  // namespace

std::vector<OpDef> add_norm_ops() {
  return {
      fused_norm_op<LayerNormAttrs>(kFusedNorms[0], "... *, ... *, *, * -> ... *, ..., ..., ... *",
                                    {2, 3}),
      fused_norm_op<RmsNormAttrs>(kFusedNorms[1], "... *, ... *, * -> ... *, ..., ... *", {2}),
      fused_norm_op<LayerNormGradAttrs>(
          kFusedNorms[2], "... *, ... *, ... *, ..., ..., * -> ... *, *, *", {3, 4, 5}),
      fused_norm_op<NoAttrs>(kFusedNorms[3], "... *, ... *, ... *, ..., * -> ... *, *", {3, 4})};
}

}  // namespace aloft
