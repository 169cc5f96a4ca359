// A second memory for what a checkpoint holds, so that training goes on while it is written.
//
// Between one update and the next, parameters and the optimizer's state are constant: they are
// copied piece by piece beside the forward and backward pass, and whoever is about to update them
// takes what is left. All else (running statistics, counters, random state) may move in a forward
// pass: it is small, and copied at once.
#pragma once

#include <atomic>
#include <cstddef>
#include <map>
#include <span>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "runtime/buffer.h"

namespace aloft {

class StateCopy {
 public:
  // Bytes that a copy of what belongs to these takes; they may be described only.
  static std::size_t bytes_of(const nn::Module& model, const Optimizer& optimizer);

  // Takes what cannot wait into `memory`, of so many bytes, which the host shares with a device.
  StateCopy(const CheckpointParts& parts, const Buffer& memory);
  StateCopy(const StateCopy&) = delete;
  StateCopy& operator=(const StateCopy&) = delete;

  // Takes piece after piece until none is left, and returns when the copy is whole; several threads
  // may do so at once.
  void finish();

  // The parts with the copies in the variables' place, to be written once the copy is whole.
  const CheckpointParts& copied() const { return copied_; }

 private:
  struct Piece {
    std::span<const std::byte> from;
    std::span<std::byte> to;
  };
  VariablePtr twin_of(const VariablePtr& v);
  void add(const VariablePtr& v);
  void copy(const Variable& from, Variable& to);

  Buffer memory_;
  std::size_t used_ = 0;
  std::map<const Variable*, VariablePtr> twins_;
  CheckpointParts copied_;
  std::vector<Piece> pieces_;
  std::vector<HostRead<std::byte>> read_;      // what pieces point into
  std::vector<HostWrite<std::byte>> written_;  // likewise
  std::atomic<std::size_t> next_ = 0, taken_ = 0;
};

}  // namespace aloft
