// stochastic_round: a tile of random words beside a tile of elements.
#include "ops/stochastic_round.h"

#include "backends/cpu/elements/random_words.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/prepare_as.h"
#include "backends/cpu/update/rounded_tiles.h"
#include "backends/cpu/vectors/tiles.h"
#include "scalar/stochastic_rounding.h"

namespace aloft::cpu {
namespace {

class StochasticRound : public Prepared {
 public:
  explicit StochasticRound(const CallSpec& call)
      : attrs_(from_attrs<StochasticRoundAttrs>(call.attrs)),
        numel_(extent_of(call.out[0].shape.numel(), call)) {}

  void run(const RunArgs& args) const override {
    const int slot = static_cast<int>(attrs_.slot);
    const std::uint64_t stream =
        scalar::rounding_stream(static_cast<std::uint64_t>(attrs_.key), slot);
    const scalar::RandomKey key = random_key(args.in[1], static_cast<std::int64_t>(stream));
    const auto* x = static_cast<const float*>(args.in[0]);
    auto* y = static_cast<scalar::Bf16*>(args.out[0]);
    parallel_for(numel_.at(args.symbols), 4, [&](std::int64_t begin, std::int64_t end) {
      alignas(64) std::uint32_t words[kTile];
      for (std::int64_t i = begin; i < end; i += kTile) {
        const std::int64_t n = std::min(kTile, end - i);
        random_words(key, static_cast<std::uint64_t>(i), n, words);
        round_tile_at_random(x + i, words, slot, y + i, n);
      }
    });
  }

 private:
  StochasticRoundAttrs attrs_;
  Extent numel_;
};

}  // namespace

std::vector<Kernel> stochastic_round_kernels() {
  return {{"cpu.stochastic_round", "stochastic_round", always, prepare_as<StochasticRound>}};
}

}  // namespace aloft::cpu
