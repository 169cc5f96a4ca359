#include "recipe/memory_need.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "runtime/current_device.h"

namespace aloft {
namespace {

// Bytes of a parameter with its gradient, master and moments.
double bytes_a_parameter(const Recipe& r) {
  const bool is_low = r.precision.is_resolved() && r.precision.level >= Level::O2;
  const double weight = is_low ? 2 : 4;
  const double master = !is_low || r.precision.level == Level::O3 ? 0
                        : r.optimizer.master == "split"           ? 2
                                                                  : 4;
  const bool is_adam = r.optimizer.kind == "adam" || r.optimizer.kind == "adamw";
  const double moments = is_adam ? 8 : r.optimizer.momentum != 0 ? 4 : 0;
  const double gradient = r.optimizer.update == "early" ? 0 : weight;
  return weight + gradient + master + moments;
}

// A block keeps its input, q, k and v, the attention's output, and the widened rows of its MLP:
// nine widths a token, of which at least eight live at once when the gradient begins.
double activation_bytes(const Recipe& r) {
  constexpr double kWidths = 8;
  const double tokens = static_cast<double>(r.train.batch) * static_cast<double>(r.model.context);
  const bool may_be_low = !r.precision.is_resolved() || r.precision.level != Level::O0;
  return tokens * static_cast<double>(r.model.dim) * static_cast<double>(r.model.layers) * kWidths *
         (may_be_low ? 2 : 4);
}

}  // namespace

double least_memory(const Recipe& r, std::int64_t vocab) {
  Recipe sized = r;
  sized.model.vocab = std::max<std::int64_t>({r.model.vocab, vocab, 1});
  const auto parameters = static_cast<double>(model_config(sized, 0).parameter_count());
  return parameters * bytes_a_parameter(r) + activation_bytes(r);
}

void need_memory_for(const Recipe& r, std::int64_t vocab) {
  current_device().need_memory(
      least_memory(r, vocab),
      fmt::format("{} layers of width {} on {} x {} tokens, at least", r.model.layers, r.model.dim,
                  r.train.batch, r.model.context),
      kLessMemory);
}

void need_memory_for(const Plan& plan, std::string_view advice) {
  const auto bytes = static_cast<double>(plan.peak_bytes());
  double state = 0;  // in use now where the model has its values; they move into the plan's memory
  for (const StateSlot& slot : plan.state) state += static_cast<double>(slot.type.max_bytes());
  current_device().need_memory(bytes, arenas_text(plan), advice, state);
  warn_of_memory(bytes, arenas_text(plan), advice);
}

void warn_of_memory_for(const Plan& plan, std::string_view advice) {
  try {
    need_memory_for(plan, advice);
  } catch (const EnvironmentError& e) {
    log_warning("this machine cannot run it: {}", e.what());
  }
}

}  // namespace aloft
