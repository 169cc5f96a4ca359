// random_uniform and random_normal.
#include "ops/random.h"

#include <array>

#include "backends/cpu/elements/normal_pairs.h"
#include "backends/cpu/elements/random_words.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/prepare_as.h"
#include "backends/cpu/rows/axis_view.h"
#include "backends/cpu/vectors/tiles.h"

namespace aloft::cpu {
namespace {

// Calls body(begin, n, words) on tiles of [0, numel).
template <class Body>
void for_random_tiles(std::int64_t numel, std::int64_t cost, const scalar::RandomKey& key,
                      const Body& body) {
  parallel_for(numel, cost, [&](std::int64_t begin, std::int64_t end) {
    alignas(64) std::uint32_t words[kTile];
    // Chunks are ranges of whole tiles only where they begin at a multiple of 4; a cost above 1
    // may give others, so a tile starts at the multiple of 4 below.
    while (begin < end) {
      const std::int64_t first = begin / 4 * 4;
      const std::int64_t n = std::min(end - begin, kTile - (begin - first));
      random_words(key, static_cast<std::uint64_t>(first), begin - first + n, words);
      body(begin, n, words + (begin - first));
      begin += n;
    }
  });
}

class Uniform : public Prepared {
 public:
  explicit Uniform(const CallSpec& call)
      : attrs_(from_attrs<RandomUniformAttrs>(call.attrs)),
        numel_(extent_of(call.out[0].shape.numel(), call)) {}

  void run(const RunArgs& args) const override {
    const auto key = random_key(args.in[0], attrs_.key);
    for_random_tiles(numel_.at(args.symbols), 4, key,
                     [&](std::int64_t begin, std::int64_t n, const std::uint32_t* words) {
                       alignas(64) double tile[kTile];
                       for (std::int64_t i = 0; i < n; ++i)
                         tile[i] = attrs_.low +
                                   (attrs_.high - attrs_.low) * scalar::uniform_of_bits(words[i]);
                       close_f64(attrs_.dtype, tile, at(args.out[0], begin, attrs_.dtype), n);
                     });
  }

 private:
  RandomUniformAttrs attrs_;
  Extent numel_;
};

class Normal : public Prepared {
 public:
  explicit Normal(const CallSpec& call)
      : attrs_(from_attrs<RandomNormalAttrs>(call.attrs)),
        numel_(extent_of(call.out[0].shape.numel(), call)) {}

  void run(const RunArgs& args) const override {
    const auto key = random_key(args.in[0], attrs_.key);
    const std::int64_t numel = numel_.at(args.symbols);
    // Pairs share two words: tiles of whole blocks of 4.
    parallel_for((numel + 3) / 4, 100, [&](std::int64_t begin, std::int64_t end) {
      alignas(64) std::uint32_t words[kTile];
      alignas(64) double tile[kTile];
      for (std::int64_t b = begin; b < end; b += kTile / 4) {
        const std::int64_t n = std::min(4 * std::min(kTile / 4, end - b), numel - 4 * b);
        random_words(key, static_cast<std::uint64_t>(4 * b), n, words);
        normal_pairs(words, n, tile);
        for (std::int64_t i = 0; i < n; ++i) tile[i] = attrs_.mean + attrs_.deviation * tile[i];
        close_f64(attrs_.dtype, tile, at(args.out[0], 4 * b, attrs_.dtype), n);
      }
    });
  }

 private:
  RandomNormalAttrs attrs_;
  Extent numel_;
};

}  // namespace

std::vector<Kernel> random_kernels() {
  return {{"cpu.random_uniform", "random_uniform", always, prepare_as<Uniform>},
          {"cpu.random_normal", "random_normal", always, prepare_as<Normal>}};
}

}  // namespace aloft::cpu
