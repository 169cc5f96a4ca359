// Named sizes of the GPT-2 family.
#include <array>

#include "base/error.h"
#include "models/gpt2.h"
#include "ops/extents.h"

namespace aloft::models {
namespace {

struct Size {
  const char *name, *alias;
  std::int64_t layers, heads, dim;
};
constexpr std::array<Size, 4> kSizes = {{{"gpt2-124m", "gpt2", 12, 12, 768},
                                         {"gpt2-355m", "gpt2-medium", 24, 16, 1024},
                                         {"gpt2-774m", "gpt2-large", 36, 20, 1280},
                                         {"gpt2-1558m", "gpt2-xl", 48, 25, 1600}}};

}  // namespace

std::int64_t Gpt2Config::parameter_count() const {
  const auto times = extent_product;
  const auto plus = extent_sum;
  const std::int64_t wide = feed_forward(), norm = times(dim, bias ? 2 : 1);
  const std::int64_t weights = plus(times(4, times(dim, dim)), times(2, times(dim, wide)));
  const std::int64_t biases = bias ? plus(times(5, dim), wide) : 0;
  const std::int64_t blocks = times(layers, plus(times(2, norm), plus(weights, biases)));
  const std::int64_t tables = times(plus(vocab, context), dim);
  return plus(plus(tables, blocks), plus(norm, tied ? 0 : times(vocab, dim)));
}

const std::vector<std::string>& gpt2_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const Size& s : kSizes) all.insert(all.end(), {s.name, s.alias});
    return all;
  }();
  return names;
}

Gpt2Config gpt2_config(std::string_view name) {
  for (const Size& s : kSizes)
    if (name == s.name || name == s.alias) {
      Gpt2Config c;
      c.layers = s.layers;
      c.heads = s.heads;
      c.dim = s.dim;
      return c;
    }
  const std::string near = nearest_name(name, gpt2_names());
  UserError e("E0712", "there is no GPT-2 of the size '" + std::string(name) + "'");
  e.add_line("need", "gpt2-124m, gpt2-355m, gpt2-774m or gpt2-1558m");
  if (!near.empty()) e.add_line("try", near);
  throw e;
}

}  // namespace aloft::models
