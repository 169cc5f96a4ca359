#include "data/order.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <string>

#include "base/error.h"

namespace aloft {
namespace {

// The finaliser of SplitMix64 (Steele, Lea, Flood 2014): a bijection whose output bits each depend
// on all input bits.
std::uint64_t mix(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15;
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9;
  x = (x ^ x >> 27) * 0x94D049BB133111EB;
  return x ^ x >> 31;
}

// Separates the streams drawn from one seed.
constexpr std::uint64_t kShuffleStream = 1, kOffsetStream = 2, kRandomStream = 3;

UserError beyond(const std::string& saw, const std::string& need) {
  return UserError("E0532", "a sample is asked for that there is not").saw(saw).need(need);
}

}  // namespace

std::uint64_t mix_keys(std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  return mix(mix(mix(a) ^ b) ^ c);
}

std::uint64_t scale_down(std::uint64_t random_bits, std::uint64_t n) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>(static_cast<Wide>(random_bits) * n >> 64);
}

Permutation::Permutation(std::uint64_t n, std::uint64_t key) : n_(n) {
  if (n < 1) throw beyond("a permutation of 0", "one of 1 or more");
  // The network works on the smallest domain of 2^(2 half_bits) >= n, which is below 4 n.
  half_bits_ = std::max(1, (static_cast<int>(std::bit_width(n - 1)) + 1) / 2);
  mask_ = (std::uint64_t{1} << half_bits_) - 1;
  for (int r = 0; r < kRounds; ++r) keys_[r] = mix_keys(key, static_cast<std::uint64_t>(r));
}

std::uint64_t Permutation::operator()(std::uint64_t i) const {
  if (i >= n_) throw beyond("index " + std::to_string(i), "below " + std::to_string(n_));
  // Walking the cycle from inside [0, n) until it is inside again keeps the map a bijection.
  do {
    std::uint64_t left = i >> half_bits_, right = i & mask_;
    for (std::uint64_t key : keys_) {
      const std::uint64_t next = left ^ (mix(right ^ key) & mask_);
      left = right;
      right = next;
    }
    i = left << half_bits_ | right;
  } while (i >= n_);
  return i;
}

BatchWalk::BatchWalk(std::uint64_t samples_per_epoch, std::uint64_t batch, LastBatch last,
                     std::uint64_t epochs)
    : used_(samples_per_epoch), batch_(batch), last_(last) {
  if (last == LastBatch::Drop && batch > 0) used_ -= used_ % batch;
  if (batch == 0 || used_ == 0)
    throw UserError("E0530", "an epoch has no batch")
        .saw(std::to_string(samples_per_epoch) + " samples, batch " + std::to_string(batch))
        .need("at least one sample, and a whole batch where the last partial one is dropped")
        .advice("a smaller batch, a shorter context, or more data");
  constexpr std::uint64_t top = std::numeric_limits<std::uint64_t>::max();
  end_ = epochs == 0 || epochs > top / used_ ? top : epochs * used_;
}

std::uint64_t BatchWalk::rows_at(std::uint64_t position) const {
  if (position >= end_) return 0;
  if (last_ == LastBatch::Keep) return std::min(batch_, used_ - position % used_);
  return std::min(batch_, end_ - position);
}

SampleIndex BatchWalk::sample(std::uint64_t position, std::uint64_t row) const {
  return {(position + row) / used_, (position + row) % used_};
}

std::uint64_t BatchWalk::batches_per_epoch() const {
  return used_ / batch_ + (used_ % batch_ != 0);
}

std::uint64_t BatchWalk::rounds_at(std::uint64_t position) const {
  if (last_ == LastBatch::Wrap) return position / batch_ / batches_per_epoch();
  return position / used_;
}

std::uint64_t BatchWalk::batches_left(std::uint64_t position) const {
  if (last_ == LastBatch::Wrap)
    return batches_per_epoch() - position / batch_ % batches_per_epoch();
  const std::uint64_t left = used_ - position % used_;
  return left / batch_ + (left % batch_ != 0);
}

WindowOrder::WindowOrder(std::uint64_t tokens, std::uint64_t context, OrderOptions options)
    : tokens_(tokens), context_(context), options_(options) {
  const bool partial_windows = options.sampling == Sampling::Windows && !options.shuffle;
  const std::uint64_t inputs = partial_windows ? 1 : context;  // and one target more
  if (context == 0 || tokens <= inputs)
    throw DataError("E0531", "the text is too short")
        .saw(std::to_string(tokens) + " tokens, context " + std::to_string(context))
        .need(context == 0      ? "a context of 1 or more"
              : partial_windows ? "at least 2 tokens"
                                : "more tokens than the context")
        .advice("more text, a shorter context, or another share for validation");
  samples_ = (tokens - 1) / context;
  if (partial_windows && (tokens - 1) % context != 0) ++samples_;
}

Window WindowOrder::at(SampleIndex sample) const {
  if (sample.index >= samples_)
    throw beyond("index " + std::to_string(sample.index), "below " + std::to_string(samples_));
  const auto draw = [&](std::uint64_t stream) {
    return mix_keys(options_.seed, stream, sample.epoch);
  };
  if (options_.sampling == Sampling::Random) {
    const std::uint64_t bits = mix_keys(draw(kRandomStream), sample.index);
    return {scale_down(bits, tokens_ - context_), context_};
  }
  if (!options_.shuffle) {
    const std::uint64_t first = sample.index * context_;
    return {first, std::min(context_, tokens_ - 1 - first)};
  }
  const std::uint64_t spare = (tokens_ - 1) % context_;
  const std::uint64_t shift = scale_down(draw(kOffsetStream), spare + 1);
  const Permutation shuffle(samples_, draw(kShuffleStream));
  return {shift + shuffle(sample.index) * context_, context_};
}

}  // namespace aloft
