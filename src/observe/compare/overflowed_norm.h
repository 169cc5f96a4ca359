// Norms that are others because of how msprobe takes them.
#pragma once

#include <optional>

#include "observe/compare/dump_file.h"

namespace aloft::compare {

// Two records to be compared. msprobe takes a norm in the tensor's type: of float16 it is infinite
// beyond 65504, although all elements are finite, which says no more than that the norm is beyond.
// Beside one that is, it counts as the same. Of a tensor without axes it writes the value itself as
// norm, with its sign. The records outlive it.
class InRange {
 public:
  InRange(const Record& npu, const Record& bench);
  const Record& npu() const { return other_npu_ ? *other_npu_ : npu_; }
  const Record& bench() const { return other_bench_ ? *other_bench_ : bench_; }

 private:
  const Record &npu_, &bench_;
  std::optional<Record> other_npu_, other_bench_;
};

}  // namespace aloft::compare
