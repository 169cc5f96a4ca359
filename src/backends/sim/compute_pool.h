// The one pool that computes for all software devices of the process: a thread of its own, which
// runs kernel after kernel with the number of threads that each was prepared for.
#pragma once

#include <functional>

namespace aloft::sim {

// Runs `work` there, with so many of the host's threads, and waits. What it throws comes out.
void compute(int threads, const std::function<void()>& work);

}  // namespace aloft::sim
