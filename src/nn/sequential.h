// Layers and functions one after another; children are named by their position, as in PyTorch.
//
//   nn::Sequential net{*this, "net"};
//   net.add<nn::Linear>(64, 32).add(relu).add<nn::Linear>(32, 10);
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "base/error.h"
#include "nn/layer.h"

namespace aloft::nn {

// A layer that calls its stages one after another.
class Sequential : public Layer {
 public:
  static constexpr std::string_view kKind = "Sequential";
  std::string_view kind() const override { return kKind; }

  using Layer::Layer;
  using Stage = std::function<Tensor(const Tensor&)>;

  // Appends a layer, constructed as L(*this, position, arguments...).
  template <class L, class... Args>
  Sequential& add(Args&&... arguments) {
    auto layer = std::make_unique<L>(*this, std::to_string(stages_.size()),
                                     std::forward<Args>(arguments)...);
    stages_.push_back([l = layer.get()](const Tensor& x) { return (*l)(x); });
    layers_.push_back(std::move(layer));
    return *this;
  }
  // Appends a function of one tensor, such as relu, or a lambda. UserError E0302 where it was never
  // assigned.
  Sequential& add(Tensor (*function)(Operand)) {
    if (!function) return add(Stage());
    return add(Stage([function](const Tensor& x) { return function(x); }));
  }
  Sequential& add(Stage stage) {
    if (!stage)
      throw UserError("E0302", label("a stage is a function that was never assigned"))
          .need("a function of one tensor, such as relu");
    stages_.push_back(std::move(stage));
    return *this;
  }

  // What the last stage gives; x itself where there is none.
  Tensor operator()(Operand x) const {
    return call(x, [&](Tensor t) {
      for (const Stage& stage : stages_) t = stage(t);
      return t;
    });
  }

 private:
  std::vector<std::unique_ptr<Module>> layers_;
  std::vector<Stage> stages_;
};

}  // namespace aloft::nn
