// The weight gradient of a convolution: a fixed grid of output channels x groups of images, each
// cell one single-threaded oneDNN primitive that leaves its sums in the library's layout; the
// groups are added in order, then brought into the caller's layout. Wide layers are cut along
// their channels, so that no weight is held many times. Same inputs, same bits, on any number of
// threads.
#pragma once

#include <memory>

#include "backends/cpu/conv/conv_way.h"

namespace aloft::cpu {

// `spec.kind` is GradWeight. Throws EnvironmentError E0411 where oneDNN refuses.
std::unique_ptr<ConvWay> conv_weight_grid(const ConvSpec& spec);

}  // namespace aloft::cpu
