// Convolutions and their input gradients: images in fixed groups, each group one single-threaded
// oneDNN primitive, shared out by the OpenMP pool. Operands are brought into the library's layouts,
// group by group, in planned scratch; weights once a run. f32, and bf16 where the processor
// multiplies it; other types are widened to f32. Same inputs, same bits, on any number of threads.
#pragma once

#include <memory>

#include "backends/cpu/conv/conv_way.h"

namespace aloft::cpu {

// `spec.kind` is Forward or GradInput. Throws EnvironmentError E0411 where oneDNN refuses.
std::unique_ptr<ConvWay> conv_grid(const ConvSpec& spec);

}  // namespace aloft::cpu
