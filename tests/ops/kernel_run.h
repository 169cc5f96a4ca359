// Runs one kernel call in guarded memory: poisoned outputs and scratch, canaries around every
// buffer, any number of threads, symbols at less than their bounds.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ops/host_array.h"
#include "ops/samples.h"
#include "runtime/backend.h"

namespace aloft::testing {

// A 64-byte aligned buffer between two canaries.
class GuardedBuffer {
 public:
  explicit GuardedBuffer(std::size_t bytes);
  void* data() { return memory_.data() + offset_; }
  std::size_t size() const { return bytes_; }
  bool is_intact() const;

 private:
  std::size_t bytes_, offset_;
  std::vector<unsigned char> memory_;
};

struct RunOptions {
  int threads = 1;
  std::optional<std::pair<int, int>> share;            // input, output in one buffer
  std::vector<std::int64_t> symbols;                   // in the order of call.symbols()
  std::vector<std::vector<std::int64_t>> out_extents;  // actual shapes; empty: the call's
};

struct RunResult {
  std::vector<HostArray> out;
  std::vector<std::vector<unsigned char>> bits;
  std::string problem;  // "" or what was damaged
};

RunResult run_kernel(const Kernel& kernel, const CallSpec& call, const std::vector<HostArray>& in,
                     const RunOptions& options);

// "" or the first element that differs by more than the tolerance table allows, with the sample's
// own factor and inner roundings, which happen in the operands' type.
std::string compare(const HostArray& got, const HostArray& want, std::int64_t length, double scale,
                    const Sample& sample, DType operands);

}  // namespace aloft::testing
