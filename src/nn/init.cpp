#include "nn/init.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/text.h"
#include "frontend/random.h"
#include "graph/graph.h"
#include "runtime/threads.h"
#include "scalar/philox.h"

namespace aloft::nn {
namespace {

// Elements 4 block .. 4 block + 3 of numbers uniform in [-bound, bound).
void fill_block(double bound, const scalar::RandomKey& key, std::int64_t block, float* to,
                std::int64_t count) {
  const scalar::Uint32x4 bits = scalar::random_block(key, static_cast<std::uint64_t>(block));
  for (std::int64_t i = 0; i < count; ++i)
    to[i] =
        static_cast<float>(bound * (2 * static_cast<double>(scalar::uniform_of_bits(bits[i])) - 1));
}

}  // namespace

Init Init::kaiming_uniform(std::int64_t fan_in) {
  return uniform(fan_in > 0 ? 1 / std::sqrt(static_cast<double>(fan_in)) : 0);
}

Init Init::gpt2_residual(std::int64_t layers, double deviation) {
  return normal(deviation /
                std::sqrt(2.0 * static_cast<double>(std::max<std::int64_t>(layers, 1))));
}

void fill(const Init& init, std::string_view full_name, float* values, std::int64_t count) {
  const bool is_spread = init.kind != Init::Kind::Constant;
  if (!std::isfinite(static_cast<float>(init.scale)) || (is_spread && init.scale < 0))
    throw UserError("E0210",
                    "the first values of '" + std::string(full_name) + "' are out of range")
        .saw(shortest(init.scale))
        .need("a finite constant, or a finite deviation or bound of 0 or more");
  if (init.kind == Init::Kind::Constant) {
    std::fill_n(values, count, static_cast<float>(init.scale));
    return;
  }
  if (init.kind == Init::Kind::Normal) return draw_normal(full_name, init.scale, values, count);
  const scalar::RandomKey key{current_seed(), 0, 0, identity_hash(full_name)};
  const std::int64_t blocks = (count + 3) / 4;
  constexpr std::int64_t kPiece = 1 << 12;
  host_threads().for_each((blocks + kPiece - 1) / kPiece, [&](std::int64_t piece) {
    for (std::int64_t b = kPiece * piece; b < std::min(blocks, kPiece * (piece + 1)); ++b)
      fill_block(init.scale, key, b, values + 4 * b, std::min<std::int64_t>(4, count - 4 * b));
  });
}

void need_positive(std::int64_t value, const std::string& what) {
  if (value < 1)
    throw UserError("E0210", what + " is out of range")
        .saw(std::to_string(value))
        .need("1 or more");
}

void need_depth(std::int64_t value, const std::string& what) {
  constexpr std::int64_t kMost = 65536;
  if (value < 1 || value > kMost)
    throw UserError("E0210", what + " is out of range")
        .saw(std::to_string(value))
        .need("1 to " + std::to_string(kMost));
}

}  // namespace aloft::nn
