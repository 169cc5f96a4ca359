#include "parity/op_builders.h"

#include "ops/constant.h"
#include "ops/cross_entropy.h"
#include "ops/embedding.h"
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
  // The fixture has heads before positions, [B, H, T, D]; the op wants [B, T, H, D].
  b["rotary"] = [](const Json& a, const Named& in) {
    const Tensor x = transpose(in.at("x"), {0, 2, 1, 3});
    const Tensor y =
        rotary(x, iota(x.dim(1).max()), {.base = a.at("base"), .interleaved = a.at("interleaved")});
    return Named{{"y", transpose(y, {0, 2, 1, 3})}};
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
