// Convolutions and their input gradients where the weight is more memory than the images: cut along
// the channels that they produce, each cut one single-threaded oneDNN primitive over all images,
// which reads its share of the weight once, from the cache. Same inputs, same bits, on any number
// of threads.
#pragma once

#include <memory>

#include "backends/cpu/conv/conv_way.h"

namespace aloft::cpu {

// Whether this is the faster way; a function of the shape alone.
bool suits_cut_grid(const ConvSpec& spec);
// `spec.kind` is Forward or GradInput, and suits_cut_grid(spec). Throws EnvironmentError E0411
// where oneDNN refuses.
std::unique_ptr<ConvWay> conv_cut_grid(const ConvSpec& spec);

}  // namespace aloft::cpu
