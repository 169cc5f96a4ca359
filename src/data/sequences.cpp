#include "data/sequences.h"

#include <algorithm>

#include "base/error.h"
#include "base/hash.h"

namespace aloft {

std::uint32_t targets_in(std::span<const std::uint32_t> tokens) {
  if (tokens.empty()) return 0;
  const auto learnt = [](std::uint32_t token) { return (token & kLearntToken) != 0; };
  return static_cast<std::uint32_t>(std::ranges::count_if(tokens.subspan(1), learnt));
}

void Sequences::add(std::span<const std::uint32_t> tokens) {
  constexpr std::size_t kLeast = 2, kMost = std::size_t{1} << 31;
  if (tokens.size() < kLeast || tokens.size() > kMost)
    throw UserError("E0532", "a sequence cannot be learnt from")
        .saw(std::to_string(tokens.size()) + " tokens")
        .need("2 or more, of which one is learnt");
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  begins_.push_back(tokens_.size());
  targets_.push_back(targets_in(tokens));
}

void Sequences::finish() {
  tokens_.shrink_to_fit();
  begins_.shrink_to_fit();
  targets_.shrink_to_fit();
}

std::uint64_t Sequences::bytes() const {
  return tokens_.capacity() * sizeof tokens_[0] + begins_.capacity() * sizeof begins_[0] +
         targets_.capacity() * sizeof targets_[0];
}

std::uint64_t Sequences::hash_of(std::span<const std::uint32_t> which) const {
  Hasher hasher;
  for (const std::uint32_t i : which) {
    const std::uint64_t count = begins_[i + 1] - begins_[i];
    hasher.update(std::as_bytes(std::span(&count, 1)))
        .update(std::as_bytes(std::span(tokens_).subspan(begins_[i], count)));
  }
  return hasher.digest();
}

}  // namespace aloft
