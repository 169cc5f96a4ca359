// Inside: which loss scale the gradients that accumulate() has summed are multiplied with. The step
// that takes them divides all by one.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "frontend/optimizer.h"
#include "types/variable.h"

namespace aloft {

// Each call holds in both modes, as accumulate() does: at once, or before each run of the program.
class SumsScale {
 public:
  // Gradients multiplied with `by`, or where it is null with no loss scale, are added. UserError
  // E0808 where those before were multiplied with another.
  void add(const VariablePtr& by) const;
  // A step divides the sums by `by`, which has had one value since its version `since`. UserError
  // E0808 where they are multiplied with another, or with an older value. Of sums that a checkpoint
  // holds nothing is known, and nothing refused.
  void check(const VariablePtr& by, std::uint64_t since = 0) const;
  // There are no sums any more.
  void forget() const;
  // The same, not as a part of the program that is traced.
  void forget_now() const { *which_ = 0; }

 private:
  std::int32_t number_of(const VariablePtr& by) const;

  // 0: nothing is known; 1: no scale; else one of the list, and the oldest version that was read.
  std::shared_ptr<std::int32_t> which_ = std::make_shared<std::int32_t>(0);
  std::shared_ptr<std::int32_t> version_ = std::make_shared<std::int32_t>(0);
  std::shared_ptr<std::vector<std::weak_ptr<Variable>>> known_ =
      std::make_shared<std::vector<std::weak_ptr<Variable>>>();
};

// Of an optimizer's sums; it has some, by set_accumulation().
const SumsScale& sums_scale(const Optimizer& optimizer);

// The loss scale by which a whole step of the optimizer divides; null where it has none.
VariablePtr own_scale(const Optimizer& optimizer);

}  // namespace aloft
