#include "frontend/loop_taps.h"

#include <utility>

#include "base/text.h"

namespace aloft {

namespace {

thread_local LoopTaps* innermost = nullptr;

constexpr std::string_view kPrefix = "loop:";

std::size_t number_in(std::string_view text) {
  return static_cast<std::size_t>(parse_int(text).value_or(0));
}

}  // namespace

LoopTaps::LoopTaps(Heard heard)
    : heard_(std::move(heard)), outer_(std::exchange(innermost, this)) {}

LoopTaps::~LoopTaps() { innermost = outer_; }

bool LoopTaps::is_there() { return innermost && innermost->heard_; }

void LoopTaps::tell(LoopWord word, const Tensor& value) {
  if (is_there()) innermost->heard_(word, value, nullptr);
}

void LoopTaps::tell(const StepResult& update, const Optimizer& by) {
  if (!is_there()) return;
  const UpdatedBy updated_by{by.spec(), by.accumulation()};
  const Heard& heard = innermost->heard_;
  heard(LoopWord::UpdateLoss, update.loss_tensor, &updated_by);
  heard(LoopWord::UpdateScale, update.loss_scale, nullptr);
  heard(LoopWord::Rate, update.learning_rate, nullptr);
  heard(LoopWord::Norm, update.grad_norm, nullptr);
  heard(LoopWord::Finite, update.finite, nullptr);
}

std::string loop_tap(std::size_t number, LoopWord word) {
  return std::string(kPrefix) + std::to_string(number) + "." +
         std::to_string(static_cast<int>(word));
}

bool is_loop_tap(std::string_view name) { return name.starts_with(kPrefix); }

LoopWord word_of_loop_tap(std::string_view name) {
  return static_cast<LoopWord>(number_in(name.substr(name.rfind('.') + 1)));
}

std::size_t number_of_loop_tap(std::string_view name) {
  name.remove_prefix(kPrefix.size());
  return number_in(name.substr(0, name.find('.')));
}

}  // namespace aloft
