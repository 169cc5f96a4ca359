// A way to compute a convolution or one of its gradients, prepared for one ConvSpec.
#pragma once

#include <omp.h>

#include <algorithm>

#include "backends/cpu/conv/conv_spec.h"
#include "backends/cpu/parallel.h"

namespace aloft::cpu {

class ConvWay {
 public:
  virtual ~ConvWay() = default;
  virtual std::size_t scratch_bytes() const = 0;
  // `images`: how many of the bound are there.
  virtual void run(const ConvPointers& pointers, std::int64_t images) const = 0;
  // Whether groups of images, or parts of all their pixels, follow from the bound.
  virtual bool is_cut_by_bound() const { return true; }
};

// One that a team of threads goes together. Scratch: what all share, then a part for each thread.
class TeamConv : public ConvWay {
 public:
  std::size_t scratch_bytes() const final { return shared_.bytes + thread_bytes_ * threads_; }
  void run(const ConvPointers& p, std::int64_t images) const final {
    on_team(threads_, [&] { run_thread(p, images); });
  }

 protected:
  explicit TeamConv(const ConvSpec& spec) : spec_(spec), threads_(std::max(1, spec.threads)) {}
  // Called by every thread of the team, which share the work out between them.
  virtual void run_thread(const ConvPointers& p, std::int64_t images) const = 0;

  static char* shared_base(const ConvPointers& p) { return static_cast<char*>(p.scratch); }
  char* own_base(const ConvPointers& p) const {  // of the calling thread
    return shared_base(p) + shared_.bytes + omp_get_thread_num() * thread_bytes_;
  }

  ConvSpec spec_;
  int threads_;
  ScratchLayout shared_;
  std::size_t thread_bytes_ = 0;
};

}  // namespace aloft::cpu
