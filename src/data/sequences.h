// Sequences of tokens, each of its own length, held in memory: four bytes a token and twelve a
// sequence.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace aloft {

// Set in a token that the model is to learn to write; the rest is the id.
inline constexpr std::uint32_t kLearntToken = std::uint32_t{1} << 31;

class Sequences {
 public:
  // Takes one: ids, with kLearntToken where they are learnt. UserError E0532 for fewer than two
  // tokens, or more than there may be in one.
  void add(std::span<const std::uint32_t> tokens);
  // Hands memory back that adding took ahead.
  void finish();

  std::size_t size() const { return targets_.size(); }
  // Token k of sequence i, as it was added.
  std::uint32_t token(std::size_t i, std::size_t k) const { return tokens_[begins_[i] + k]; }
  // Inputs that it makes: each token but the last; and those of them whose next token is learnt.
  std::int64_t inputs(std::size_t i) const {
    return static_cast<std::int64_t>(begins_[i + 1] - begins_[i]) - 1;
  }
  std::int64_t targets(std::size_t i) const { return targets_[i]; }

  // XXH3 of these sequences, where each of them ends and what is learnt included.
  std::uint64_t hash_of(std::span<const std::uint32_t> which) const;

  // How many bytes it holds.
  std::uint64_t bytes() const;

 private:
  std::vector<std::uint32_t> tokens_;
  std::vector<std::uint64_t> begins_ = {0};
  std::vector<std::uint32_t> targets_;
};

// How many targets a sequence of such tokens has: learnt ones but the first, which nothing
// precedes.
std::uint32_t targets_in(std::span<const std::uint32_t> tokens);

}  // namespace aloft
