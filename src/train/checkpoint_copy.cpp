#include "train/checkpoint_copy.h"

#include "checkpoint/state_copy.h"
#include "recipe/memory_need.h"
#include "runtime/current_device.h"

namespace aloft {

std::size_t checkpoint_copy_bytes(const Recipe& recipe, const nn::Layer& model,
                                  const Optimizer& optimizer, const Plan& plan) {
  if (!recipe.train.checkpoint_copy) return 0;
  const Features& f = current_device().features();
  if (f.is_asynchronous || !f.shares_host_memory) return 0;  // as Runner::hold_updates()
  const std::size_t bytes = StateCopy::bytes_of(model, optimizer);
  return is_room_for_copy(plan, bytes) ? bytes : 0;
}

}  // namespace aloft
