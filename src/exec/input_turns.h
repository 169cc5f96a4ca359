// Inputs with several homes: while a run reads one, the next run's values go into the other. Which
// one's turn it is, and the waits that keep a home for as long as it is read.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "runtime/device.h"

namespace aloft {

// Of a program. One thread at a time, as its runs.
class InputTurns {
 public:
  // Values are sent on the device's second stream, where it has one.
  InputTurns(Device& device, int homes);

  int homes() const { return static_cast<int>(read_.size()); }
  // The first `bytes` of the home that the next run reads, of the memory that holds all homes of an
  // input.
  Buffer next(const Buffer& all, std::size_t bytes) const;
  // The same, to be written or read on the device's first stream: behind what was loaded.
  Buffer open(const Buffer& all, std::size_t bytes);
  // Values for the next run, to the beginning of its home. They are the caller's again when this
  // returns; they arrive behind the run that read this home last.
  void load(const Buffer& all, std::span<const std::byte> values);

  // Around a run: it begins when its inputs are there, and then it is the next home's turn.
  int begin_run();
  void end_run();

 private:
  Device& device_;
  std::size_t turn_ = 0;
  std::vector<Event> read_;  // by home: behind the run that read it last
  Event loaded_;             // behind what was sent for the next run
  bool is_open_ = false;     // the first stream may be given writes to the next run's home
};

}  // namespace aloft
