// One prepared kernel on buffers: an eager call, a kernel that the host asks for by itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "runtime/device.h"

namespace aloft {

// Where an eager call stands.
struct LaunchPlace {
  std::string_view path;  // of the module
  Phase phase = Phase::Forward;
  LoopPlace (*loop)() = nullptr;  // asked where somebody looks on
};

// Hands the kernel over to the device's first stream, on operands and results that lie on it, with
// scratch of its own; observers of the device hear of it. `symbols` in the order of
// CallSpec::symbols(). Under ALOFT_CHECK_MEMORY it runs alone with them (runtime/isolated_run.h).
void launch(Device& device, const PreparedKernel& kernel, const CallSpec& call,
            std::span<const Buffer> in, std::span<const Buffer> out,
            std::span<const std::int64_t> symbols, const LaunchPlace& place);

// The same on the host's memory, unobserved: copied to the device and back where it cannot reach
// that. The spans have the bytes of the call's types.
void launch_on_host(Device& device, const PreparedKernel& kernel, const CallSpec& call,
                    std::span<const std::span<const std::byte>> in,
                    std::span<const std::span<std::byte>> out, std::string_view name);

}  // namespace aloft
