#include "models/mlp.h"

#include "base/error.h"
#include "base/text.h"

namespace aloft::models {
namespace {

using Activation = Tensor (*)(Operand);

constexpr std::pair<std::string_view, Activation> kActivations[] = {
    {"relu", relu}, {"gelu", gelu},       {"gelu_tanh", gelu_tanh},
    {"silu", silu}, {"sigmoid", sigmoid}, {"mish", mish}};

Activation activation_named(const std::string& name) {
  for (const auto& [known, activation] : kActivations)
    if (known == name) return activation;
  const auto known = mlp_activations();
  throw UserError("E0210", "Mlp: there is no such activation")
      .saw(in_quotes(name))
      .need("one of " + join(std::vector<std::string>(known.begin(), known.end()), ", "));
}

std::vector<std::int64_t> widths_of(const MlpConfig& c) {
  std::vector<std::int64_t> widths{c.features};
  widths.insert(widths.end(), c.hidden.begin(), c.hidden.end());
  widths.push_back(c.classes);
  return widths;
}

}  // namespace

std::vector<std::string_view> mlp_activations() {
  std::vector<std::string_view> names;
  for (const auto& [name, activation] : kActivations) names.push_back(name);
  return names;
}

Mlp::Mlp(const std::vector<std::int64_t>& widths, Activation activation)
    : Mlp(widths, activation, 0) {}

Mlp::Mlp(const std::vector<std::int64_t>& widths, Activation activation, double dropout)
    : activation_(activation), drop_(*this, "drop", dropout) {
  nn::need_positive(static_cast<std::int64_t>(widths.size()) - 1, "Mlp: layers");
  for (std::size_t i = 0; i + 1 < widths.size(); ++i)
    layers_.push_back(
        std::make_unique<nn::Linear>(*this, std::to_string(i), widths[i], widths[i + 1]));
  classes_ = widths.back();
}

Mlp::Mlp(const MlpConfig& c) : Mlp(widths_of(c), activation_named(c.activation), c.dropout) {}

Tensor Mlp::operator()(Operand x) const {
  return call(x, [&](Tensor t) {
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      if (i > 0) t = drop_(activation_(t));
      t = (*layers_[i])(t);
    }
    return t;
  });
}

ModelFamily mlp_family() {
  using I = std::int64_t;
  ModelFamily f = family_of<MlpConfig, Mlp>("mlp", "classifier: dense layers",
                                            {{"features", I{0}}, {"classes", I{0}}});
  f.made_up = {{"features", I{784}}, {"classes", I{10}}};
  return f;
}

}  // namespace aloft::models
