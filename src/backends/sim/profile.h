// What a device profile says: how fast the processor is that is played, how much memory it has and
// which types it knows. TOML files in profiles/ are built in, others are read from disk.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "types/capability.h"

namespace aloft::sim {

struct Profile {
  std::string name;                // "910B3"; empty: plain sim, the cpu's types and no limit
  std::size_t memory = 0;          // bytes of its own; 0: no limit
  double low_flops = 1e12;         // a second, of products in bf16 and f16, at their peak
  double f32_flops = 5e11;         // a second, of everything else
  double memory_bandwidth = 1e11;  // bytes a second, of its own memory
  double host_bandwidth = 1e10;    // bytes a second, between the host and it
  double launch_seconds = 5e-6;    // that a kernel takes at least
  // Whether it says both rates of products, and all other numbers of the clock: what it leaves out
  // is as above, and no number of a device that anybody knows.
  bool says_products = false, says_moves = false;
  Capability capability;
  std::vector<std::string> f32_ops = {};  // ops that have no kernel in bf16 or f16
};

// The names of those that are built in, in order.
std::vector<std::string> profile_names();
// A built-in one by its name, or the file of a path (anything with a dot or slash in it). UserError
// E0332 where there is none of that name, or for every mistake in the file: a key that is not
// known, a value out of range.
Profile load_profile(const std::string& name);

}  // namespace aloft::sim
