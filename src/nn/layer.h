// What library layers have in common: parameters with an Init, checked extents.
#pragma once

#include "nn/init.h"

namespace aloft::nn {

// The base of the layers here, and of your own: new_parameter() gives a layer a parameter that
// starts as an Init says.
class Layer : public Module {
 public:
  using Module::Module;

 protected:
  VariablePtr new_parameter(std::string_view name, const Shape& shape, const Init& init,
                            bool is_norm = false) {
    const std::string full = full_name(name);
    return add_parameter(
        name, shape, [&](float* values, std::int64_t count) { fill(init, full, values, count); },
        is_norm);
  }
  // "Linear 'up': in", for messages.
  std::string label(std::string_view what) const {
    return std::string(kind()) + " '" + path() + "': " + std::string(what);
  }
  // The value of a parameter that may be left out.
  static Tensor use_if(const VariablePtr& variable) { return variable ? use(variable) : Tensor(); }
};

}  // namespace aloft::nn
