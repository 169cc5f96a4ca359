#include "optim/advice.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"

namespace aloft::optim {

#define OPTIMIZER(stem, Options) Advice stem##_advice();
#include "optim/catalog.inc"
#undef OPTIMIZER

const Advice& advice_of(std::string_view kind) {
  static const std::vector<std::pair<std::string_view, Advice>> all = {
#define OPTIMIZER(stem, Options) {#stem, stem##_advice()},
#include "optim/catalog.inc"
#undef OPTIMIZER
  };
  const auto it = std::ranges::find(all, kind, &std::pair<std::string_view, Advice>::first);
  ensure(it != all.end(), "advice on an optimizer of the catalogue: " + std::string(kind));
  return it->second;
}

}  // namespace aloft::optim
