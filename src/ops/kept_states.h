// Inside: what the formats of an optimizer's states mean, for the ops' meaning in double.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "ops/host_array.h"
#include "optim/options.h"
#include "scalar/block_float.h"

namespace aloft {

// One of a tensor's states: its format, and which values it has.
struct KeptState {
  StateFormat format = StateFormat::F32;
  scalar::BlockForm form = {true};
  // The n elements that lie in `kept`, and back: rounded by the bits that element j draws.
  std::vector<double> read(const HostArray& kept, std::int64_t n) const;
  void write(const std::vector<double>& values,
             const std::function<std::uint16_t(std::int64_t)>& bits, HostArray& kept) const;
};

// Element j of a split master: its value, of the bf16 parameter `near` and the bytes of remainders.
double split_master(const HostArray& near, const HostArray& rests, std::int64_t j);

// A bf16 parameter or state, rounded at random; in any other type as it is.
double rounded_at_random(double value, DType type, std::uint16_t bits);

}  // namespace aloft
