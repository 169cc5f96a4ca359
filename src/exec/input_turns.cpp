#include "exec/input_turns.h"

#include <algorithm>
#include <utility>

namespace aloft {

InputTurns::InputTurns(Device& device, int homes)
    : device_(device), read_(static_cast<std::size_t>(homes)) {}

Buffer InputTurns::next(const Buffer& all, std::size_t bytes) const {
  return all ? all.part(turn_ * (all.bytes() / read_.size()), bytes) : all;
}

Buffer InputTurns::open(const Buffer& all, std::size_t bytes) {
  device_.stream().wait(loaded_);
  is_open_ = true;
  return next(all, bytes);
}

void InputTurns::load(const Buffer& all, std::span<const std::byte> values) {
  if (values.empty()) return;
  Stream& stream = device_.stream(std::min(1, device_.features().streams - 1));
  stream.wait(read_[turn_]);
  if (is_open_) stream.wait(device_.stream().record());
  stream.upload(next(all, values.size()), values.data());
  loaded_ = stream.record();
}

int InputTurns::begin_run() {
  device_.stream().wait(std::exchange(loaded_, {}));
  return static_cast<int>(turn_);
}

void InputTurns::end_run() {
  read_[turn_] = device_.stream().record();
  turn_ = (turn_ + 1) % read_.size();
  is_open_ = false;
}

}  // namespace aloft
