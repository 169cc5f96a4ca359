// The call of a step at which it stops to be finite, found by who looks at every operand and every
// result of every instruction, of all micro-batches: what statistics of results cannot, which miss
// what a fused op takes from another one.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "ops/evaluate.h"
#include "runtime/observer.h"

namespace aloft {

// Whether all elements are; whole numbers are.
bool is_finite(const HostArray& a);

// Attached to a device while a step is made once, by compiled programs.
class OverflowOrigin : public Observer {
 public:
  struct Call {
    std::string program;
    int instruction = 0;
    std::int64_t micro_batch = 0;
    Name op;
    Attrs attrs;
    std::vector<HostArray> in, out;
    std::size_t result = 0;  // the first one that is not finite
  };
  // The first call that took finite values and gave others; nothing: what came in was not finite.
  const std::optional<Call>& found() const { return found_; }

  void before(const OpEvent& e) override;
  void after(const OpEvent& e) override;

 private:
  bool is_of_finite_ = false;  // what the call took that is under way
  std::vector<HostArray> in_;
  std::optional<Call> found_;
};

}  // namespace aloft
