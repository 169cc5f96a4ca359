#include "parity/op_builders.h"

#include "ops/attention.h"
#include "ops/batch_norm.h"
#include "ops/constant.h"
#include "ops/cross_entropy.h"
#include "ops/embedding.h"
#include "ops/group_norm.h"
#include "ops/layer_norm.h"
#include "ops/rms_norm.h"
#include "ops/rotary.h"
#include "ops/softmax.h"
#include "ops/transpose.h"
#include "ops/unary.h"

namespace aloft::parity {
namespace {

using Builders = std::map<std::string, Build>;

Build unary(Tensor (*op)(Operand)) {
  return [op](const Json&, const Named& in) { return Named{{"y", op(in.at("x"))}}; };
}

// PyTorch's [B, H, T, D] and our [B, T, H, D].
Tensor swap_heads(const Tensor& x) { return transpose(x, {0, 2, 1, 3}); }

void add_activations(Builders& b) {
  b["tanh"] = unary(tanh);
  b["erf"] = unary(erf);
  b["softmax"] = [](const Json& a, const Named& in) {
    return Named{{"y", softmax(in.at("x"), a.at("axis"))}};
  };
  b["log_softmax"] = [](const Json& a, const Named& in) {
    return Named{{"y", log_softmax(in.at("x"), a.at("axis"))}};
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

void add_losses(Builders& b) {
  b["cross_entropy"] = [](const Json& a, const Named& in) {
    const CrossEntropyAttrs attrs{a.at("ignore_index"), a.at("label_smoothing"), a.at("reduction")};
    return Named{{"loss", cross_entropy(in.at("x"), in.at("target"), attrs)}};
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
  add_norms(b);
  add_losses(b);
  add_sequences(b);
  return b;
}

}  // namespace

const Builders& op_builders() {
  static const Builders builders = make_builders();
  return builders;
}

}  // namespace aloft::parity
