// Kernels that are one class: prepared by its constructor.
#pragma once

#include <memory>

#include "runtime/kernel.h"

namespace aloft::cpu {

// Kernel::prepare of a kernel whose prepared form is a K, made from the call.
template <class K>
std::unique_ptr<Prepared> prepare_as(const CallSpec& call) {
  return std::make_unique<K>(call);
}

}  // namespace aloft::cpu
