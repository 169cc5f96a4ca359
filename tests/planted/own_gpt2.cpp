// own_gpt2 FOLDER OUT [--eager] [--twice] [MISTAKE]: a forward and a backward pass of a GPT-2 that
// a person has written in C++ who ports model.py, with the weights and tokens of a folder of
// Hugging Face, looked at by a session. Of a mistake the line that is to be named is marked behind
// "LINE" and its name; without one the program is right. Twice: two passes make the step, as two
// batches do.
#include <cmath>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "backends/cpu/cpu_backend.h"
#include "base/error.h"
#include "base/file.h"
#include "files/safetensors.h"
#include "frontend/amp.h"
#include "frontend/compile.h"
#include "frontend/eager.h"
#include "models/state_dict.h"
#include "nn/embedding.h"
#include "nn/linear.h"
#include "nn/norm.h"
#include "ops/activation.h"
#include "ops/binary.h"
#include "ops/cast.h"
#include "ops/compare.h"
#include "ops/constant.h"
#include "ops/cross_entropy.h"
#include "ops/linear.h"
#include "ops/matmul.h"
#include "ops/reshape.h"
#include "ops/slice.h"
#include "ops/softmax.h"
#include "ops/transpose.h"
#include "ops/where.h"
#include "optim/sgd.h"
#include "train/observe_session.h"

namespace aloft {
namespace {

constexpr std::int64_t kDim = 32, kHeads = 4, kVocab = 96, kLength = 24;

std::string mistake;
bool is_wrong(const char* name) { return mistake == name; }

// Each id's next one, as another tokenizer might count them.
Tensor next(const Tensor& ids) { return remainder(ids + 1, full({}, kVocab, DType::I32)); }

struct Attention : nn::Layer {
  using Layer::Layer;
  nn::Linear c_attn{*this, "c_attn", kDim, 3 * kDim}, c_proj{*this, "c_proj", kDim, kDim};
  std::string_view kind() const override { return "Attention"; }

  Tensor operator()(Operand x) const {
    return call(x, [&](const Tensor& t) {
      const Tensor packed = c_attn(t);
      const auto heads = [&](int part) {
        const Tensor own = slice(packed, 2, part * kDim, (part + 1) * kDim);
        return transpose(reshape(own, {t.shape()[0], kLength, kHeads, kDim / kHeads}),
                         {0, 2, 1, 3});
      };
      const bool is_exchanged = is_wrong("keys_and_values_exchanged");
      const Tensor q = heads(0), k = heads(is_exchanged ? 2 : 1), v = heads(is_exchanged ? 1 : 2);
      const double width = kDim / kHeads;
      const Tensor products = matmul(q, k, false, true);
      const Tensor scores = products * (is_wrong("scale") ? 1 / width : 1 / std::sqrt(width));
      const Tensor last = iota(kLength, DType::I32, is_wrong("mask_off_by_one") ? 1 : 0);
      const Tensor mask =
          less_equal(reshape(iota(kLength), {1, kLength}), reshape(last, {kLength, 1}));
      const Tensor hidden = where(mask, scores, full({}, -3.4e38));
      const Tensor weights = softmax(hidden, is_wrong("axis") ? -2 : -1);
      const Tensor mixed = transpose(matmul(weights, v), {0, 2, 1, 3});
      const Tensor out =
          c_proj(reshape(mixed, {t.shape()[0], kLength, kDim}));     // LINE own_projection
      return is_wrong("bias_twice") ? out + use(c_proj.bias) : out;  // LINE own_bias
    });
  }
};

struct Mlp : nn::Layer {
  using Layer::Layer;
  nn::Linear c_fc{*this, "c_fc", kDim, 4 * kDim}, c_proj{*this, "c_proj", 4 * kDim, kDim};
  std::string_view kind() const override { return "Mlp"; }

  Tensor operator()(Operand x) const {
    return call(x, [&](const Tensor& t) {
      const Tensor wide = c_fc(t);
      const Tensor bent = is_wrong("gelu") ? gelu(wide) : gelu_tanh(wide);
      return c_proj(bent);  // LINE own_narrow
    });
  }
};

struct Block : nn::Layer {
  using Layer::Layer;
  nn::LayerNorm ln_1{*this, "ln_1", kDim, {.eps = is_wrong("eps") ? 1e-3 : 1e-5}};
  Attention attn{*this, "attn"};
  nn::LayerNorm ln_2{*this, "ln_2", kDim};
  Mlp mlp{*this, "mlp"};
  std::string_view kind() const override { return "Block"; }

  Tensor operator()(Operand x) const {
    return call(x, [&](const Tensor& t) {
      const Tensor normed = ln_1(t);  // LINE own_norm
      const Tensor looked = attn(normed);
      const bool is_alone = is_wrong("residual_dropped") && path() == "h.1";
      const Tensor sum = is_alone ? looked : t + looked;
      return sum + mlp(ln_2(sum));
    });
  }
};

struct Gpt2 : nn::Layer {
  nn::Embedding wte{*this, "wte", kVocab, kDim}, wpe{*this, "wpe", kLength, kDim};
  nn::Module h{*this, "h"};
  Block first{h, "0"}, second{h, "1"};
  nn::LayerNorm ln_f{*this, "ln_f", kDim};

  Tensor loss(const Tensor& tokens, const Tensor& targets) const {
    const Tensor ids = is_wrong("tokenizer") ? next(tokens) : tokens;
    const Tensor at = minimum(iota(kLength) + (is_wrong("first_position") ? 1 : 0), kLength - 1);
    const Tensor rows = wte(ids);   // LINE own_rows
    const Tensor places = wpe(at);  // LINE own_places
    const Tensor scaled = is_wrong("scaled_embedding") ? rows * std::sqrt(kDim) : rows;
    Tensor x = scaled + places;
    x = first(x);
    x = second(x);
    x = ln_f(x);
    return cross_entropy(linear(x, use(wte.weight)), targets);
  }
};

// Weights of Hugging Face's file, which has those of projections the other way round.
void load(const Safetensors& file, Gpt2& model) {
  for (const VariablePtr& v : models::state_variables(model)) {
    const TensorView& t = file.at("transformer." + v->name.str());
    std::vector<float> values(static_cast<std::size_t>(t.type.shape.max_numel()));
    models::read_floats(t, 0, values);
    const bool stays = is_wrong("transposed") && v->name.str() == "h.0.attn.c_proj.weight";
    if (v->name.str().find(".c_") != std::string::npos && t.type.shape.rank() == 2 && !stays) {
      const std::vector<float> read = values;
      const auto extents = t.type.shape.max_extents();
      const auto in = static_cast<std::size_t>(extents[0]),
                 out = static_cast<std::size_t>(extents[1]);
      for (std::size_t i = 0; i < in; ++i)
        for (std::size_t o = 0; o < out; ++o) values[o * in + i] = read[i * out + o];
    }
    models::write_state(*v, 0, values);
  }
}

Tensor ids_of(const Safetensors& file, const char* name) {
  const TensorView& t = file.at(name);
  const auto* const ids = reinterpret_cast<const std::int64_t*>(t.bytes.data());
  const std::vector<std::int32_t> own(ids, ids + t.bytes.size() / sizeof(std::int64_t));
  return from_ints(own, t.type.shape);
}

void dump(const Path& folder, const Path& out, bool is_eager, int passes) {
  use_device(cpu_device());
  Gpt2 model;
  load(Safetensors::open(folder / "model.safetensors"), model);
  const Safetensors data = Safetensors::open(folder / "expected.safetensors");
  const Tensor tokens = ids_of(data, "tokens"), targets = ids_of(data, "targets");
  auto [net, opt] = amp::initialize(model, optim::Sgd{.lr = 0}, "O0");
  const auto step = [&, &opt = opt](const Tensor& x, const Tensor& y) {
    return minimize(model.loss(x, y), opt);
  };
  auto compiled = compile(step, {.name = "step"});
  const Tensor others = next(tokens);
  observe::Session session({.out = out, .level = "mix"});
  session.start();
  for (int pass = 0; pass < passes; ++pass) {
    const Tensor& x = pass == 1 && is_wrong("second_batch") ? others : tokens;
    is_eager ? step(x, targets) : compiled(x, targets);
  }
  session.step();
  session.stop();
}

}  // namespace
}  // namespace aloft

int main(int count, char** arguments) {
  if (count < 3)
    return std::fputs("own_gpt2 FOLDER OUT [--eager] [--twice] [MISTAKE]\n", stderr), 2;
  bool is_eager = false;
  int passes = 1;
  for (int i = 3; i < count; ++i)
    if (std::strcmp(arguments[i], "--eager") == 0)
      is_eager = true;
    else if (std::strcmp(arguments[i], "--twice") == 0)
      passes = 2;
    else
      aloft::mistake = arguments[i];
  try {
    aloft::dump(arguments[1], arguments[2], is_eager, passes);
    return 0;
  } catch (const aloft::Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return static_cast<int>(e.exit_code());
  }
}
