// The precision recipe that governs an op, carried by whatever is governed: a module, a scope, a
// node of a graph. A handle on one recipe that is kept for ever and shared by all that say the
// same, so that copies cost nothing and equal recipes are equal handles. It is text at the edges
// alone: a graph's text form, JSON.
#pragma once

#include <string>

namespace aloft {

struct PrecisionRecipe;

class Policy {
 public:
  // None: what is written is computed in the types that it is written in.
  Policy() = default;
  // Governed by the recipe. How an `auto` was resolved (auto_reason) is no part of a policy.
  explicit Policy(const PrecisionRecipe& recipe);

  // Whether a recipe governs.
  explicit operator bool() const { return kept_ != nullptr; }
  // Only where one does.
  const PrecisionRecipe& recipe() const;
  // print_precision() of it, "" where none does; kept as long as the process.
  const std::string& str() const;

  friend bool operator==(Policy, Policy) = default;

 private:
  struct Kept;
  const Kept* kept_ = nullptr;
};

}  // namespace aloft
