#include "parity/op_builders.h"

#include "ops/activation.h"
#include "ops/attention.h"
#include "ops/batch_norm.h"
#include "ops/cast.h"
#include "ops/constant.h"
#include "ops/conv1d.h"
#include "ops/conv2d.h"
#include "ops/conv_transpose2d.h"
#include "ops/cross_entropy.h"
#include "ops/embedding.h"
#include "ops/group_norm.h"
#include "ops/layer_norm.h"
#include "ops/losses.h"
#include "ops/op.h"
#include "ops/pool2d.h"
#include "ops/rms_norm.h"
#include "ops/rotary.h"
#include "ops/softmax.h"
#include "ops/transpose.h"
#include "ops/unary.h"

namespace aloft::parity {
namespace {

using Builders = std::map<std::string, Build>;

// An input that may be missing: an undefined Tensor.
Tensor optional_of(const Named& in, const std::string& name) {
  const auto it = in.find(name);
  return it == in.end() ? Tensor() : it->second;
}

Build unary(Tensor (*op)(Operand)) {
  return [op](const Json&, const Named& in) { return Named{{"y", op(in.at("x"))}}; };
}

// PyTorch's [B, H, T, D] and our [B, T, H, D].
Tensor swap_heads(const Tensor& x) { return transpose(x, {0, 2, 1, 3}); }

void add_activations(Builders& b) {
  b["tanh"] = unary(tanh);
  b["erf"] = unary(erf);
  b["gelu"] = unary(gelu);
  b["gelu_tanh"] = unary(gelu_tanh);
  b["silu"] = unary(silu);
  b["sigmoid"] = unary(sigmoid);
  b["softplus"] = unary(softplus);
  b["softmax"] = [](const Json& a, const Named& in) {
    return Named{{"y", softmax(in.at("x"), a.at("axis"))}};
  };
  b["log_softmax"] = [](const Json& a, const Named& in) {
    return Named{{"y", log_softmax(in.at("x"), a.at("axis"))}};
  };
}

void add_convolutions(Builders& b) {
  b["conv2d"] = [](const Json& a, const Named& in) {
    const Conv2dAttrs attrs{a.value("stride", Ints{1, 1}), a.value("padding", Ints{0, 0}),
                            a.value("dilation", Ints{1, 1}), a.value("groups", std::int64_t{1})};
    return Named{{"y", conv2d(in.at("x"), in.at("w"), optional_of(in, "b"), attrs)}};
  };
  b["conv1d"] = [](const Json& a, const Named& in) {
    const Conv1dAttrs attrs{a.value("stride", Ints{1})[0], a.value("padding", Ints{0})[0],
                            a.value("dilation", Ints{1})[0], a.value("groups", std::int64_t{1})};
    return Named{{"y", conv1d(in.at("x"), in.at("w"), optional_of(in, "b"), attrs)}};
  };
  b["conv_transpose2d"] = [](const Json& a, const Named& in) {
    const ConvTranspose2dAttrs attrs{a.value("stride", Ints{1, 1}), a.value("padding", Ints{0, 0}),
                                     a.value("output_padding", Ints{0, 0}),
                                     a.value("dilation", Ints{1, 1}),
                                     a.value("groups", std::int64_t{1})};
    return Named{{"y", conv_transpose2d(in.at("x"), in.at("w"), optional_of(in, "b"), attrs)}};
  };
  b["max_pool2d"] = [](const Json& a, const Named& in) {
    return Named{{"y", max_pool2d(in.at("x"), {a.at("kernel_size"), a.at("stride"),
                                               a.value("padding", Ints{0, 0})})}};
  };
  b["avg_pool2d"] = [](const Json& a, const Named& in) {
    return Named{{"y", avg_pool2d(in.at("x"), {a.at("kernel_size"), a.at("stride"),
                                               a.value("padding", Ints{0, 0}),
                                               a.value("count_include_pad", true)})}};
  };
}

void add_norms(Builders& b) {
  b["layer_norm"] = [](const Json& a, const Named& in) {
    return Named{{"y", layer_norm(in.at("x"), in.at("weight"), in.at("bias"), a.at("eps"),
                                  static_cast<std::int64_t>(a.at("normalized_shape").size()))}};
  };
  b["group_norm"] = [](const Json& a, const Named& in) {
    return Named{{"y", group_norm(in.at("x"), a.at("num_groups"), in.at("weight"), in.at("bias"),
                                  a.at("eps"))}};
  };
  b["batch_norm"] = [](const Json& a, const Named& in) {
    const BatchNormResult r =
        batch_norm(in.at("x"), in.at("weight"), in.at("bias"), in.at("running_mean"),
                   in.at("running_var"), {a.at("training"), a.at("momentum"), a.at("eps")});
    return Named{{"y", r.y}, {"running_mean", r.running_mean}, {"running_var", r.running_var}};
  };
  b["rms_norm"] = [](const Json& a, const Named& in) {
    return Named{{"y", rms_norm(in.at("x"), in.at("weight"), a.at("eps"))}};
  };
}

Tensor bias_of(const Named& in) { return in.contains("b") ? in.at("b") : Tensor(); }

void add_images(Builders& b) {
  const Ints ones = {1, 1}, zeros = {0, 0};
  b["conv2d"] = [=](const Json& a, const Named& in) {
    const Conv2dAttrs attrs{a.value("stride", ones), a.value("padding", zeros),
                            a.value("dilation", ones), a.value("groups", 1)};
    return Named{{"y", conv2d(in.at("x"), in.at("w"), bias_of(in), attrs)}};
  };
  b["conv1d"] = [](const Json& a, const Named& in) {
    const Ints one = {1}, zero = {0};
    const Conv1dAttrs attrs{a.value("stride", one)[0], a.value("padding", zero)[0],
                            a.value("dilation", one)[0], a.value("groups", 1)};
    return Named{{"y", conv1d(in.at("x"), in.at("w"), bias_of(in), attrs)}};
  };
  b["max_pool2d"] = [=](const Json& a, const Named& in) {
    const MaxPool2dAttrs attrs{a.at("kernel_size"), a.at("stride"), a.value("padding", zeros)};
    return Named{{"y", max_pool2d(in.at("x"), attrs)}};
  };
  b["avg_pool2d"] = [=](const Json& a, const Named& in) {
    const AvgPool2dAttrs attrs{a.at("kernel_size"), a.at("stride"), a.value("padding", zeros),
                               a.value("count_include_pad", true)};
    return Named{{"y", avg_pool2d(in.at("x"), attrs)}};
  };
}

void add_losses(Builders& b) {
  b["cross_entropy"] = [](const Json& a, const Named& in) {
    const CrossEntropyAttrs attrs{a.at("ignore_index"), a.at("label_smoothing"), a.at("reduction")};
    return Named{{"loss", cross_entropy(in.at("x"), in.at("target"), attrs)}};
  };
}

Build regression(Tensor (*op)(Operand, Operand, const std::string&)) {
  return [op](const Json& a, const Named& in) {
    return Named{{"loss", op(in.at("x"), in.at("y"), a.at("reduction"))}};
  };
}

void add_other_losses(Builders& b) {
  b["mse_loss"] = regression(mse_loss);
  b["l1_loss"] = regression(l1_loss);
  b["bce_with_logits"] = regression(bce_with_logits);
  b["huber_loss"] = [](const Json& a, const Named& in) {
    return Named{{"loss", huber_loss(in.at("x"), in.at("y"), a.at("delta"), a.at("reduction"))}};
  };
  b["kl_div"] = [](const Json& a, const Named& in) {
    return Named{{"loss", kl_div(in.at("x"), in.at("y"), a.at("reduction"), a.at("log_target"))}};
  };
  b["nll_loss"] = [](const Json& a, const Named& in) {
    return Named{
        {"loss", nll_loss(in.at("x"), in.at("target"), {a.at("ignore_index"), a.at("reduction")})}};
  };
}

void add_sequences(Builders& b) {
  b["embedding"] = [](const Json&, const Named& in) {
    return Named{{"y", embedding(in.at("weight"), in.at("index"))}};
  };
  b["attention"] = [](const Json& a, const Named& in) {
    const Tensor y = attention(swap_heads(in.at("q")), swap_heads(in.at("k")),
                               swap_heads(in.at("v")), {.causal = a.at("causal")});
    return Named{{"y", swap_heads(y)}};
  };
  b["rotary"] = [](const Json& a, const Named& in) {
    const Tensor x = swap_heads(in.at("x"));
    const Tensor y =
        rotary(x, iota(x.dim(1).max()), {.base = a.at("base"), .interleaved = a.at("interleaved")});
    return Named{{"y", swap_heads(y)}};
  };
}

Builders make_builders() {
  Builders b;
  add_activations(b);
  add_convolutions(b);
  add_norms(b);
  add_images(b);
  add_losses(b);
  add_other_losses(b);
  add_sequences(b);
  return b;
}

AttrValue attr_of(const AttrValue& like, const Json& value) {
  return std::visit(
      [&](const auto& v) -> AttrValue {
        using T = std::remove_cvref_t<decltype(v)>;
        if constexpr (std::is_same_v<T, DType> || std::is_same_v<T, Shape>)
          throw std::invalid_argument("an attribute that no fixture has");
        else
          return value.get<T>();
      },
      like);
}

}  // namespace

Tensor call_op(const std::string& op, const Json& attrs, const std::vector<Tensor>& inputs) {
  Attrs values = op_named(op).default_attrs;
  DType compute = DType::F32;
  for (const auto& [name, value] : attrs.items()) {
    if (name == "compute")
      compute = *parse_dtype(value.get<std::string>());
    else
      values.set(name, attr_of(*values.find(name), value));
  }
  std::vector<Operand> operands(inputs.begin(), inputs.end());
  if (compute != DType::F32)
    for (Operand& x : operands)
      if (is_float(x.tensor.dtype())) x.tensor = cast(x, compute);
  if (op == "where") operands[0].tensor = cast(operands[0], DType::Bool);
  return emit_op(op, values, operands)[0];
}

const Builders& op_builders() {
  static const Builders builders = make_builders();
  return builders;
}

}  // namespace aloft::parity
