// The weight of a convolution on its way into the library's layout, in pieces of its output
// channels that threads share out.
#pragma once

#include <vector>

#include "backends/cpu/conv/conv_spec.h"
#include "backends/cpu/onednn.h"

namespace aloft::cpu {

// The library's view of `images` images of a convolution.
OneDnnConvShape conv_shape(const ConvSpec& spec, std::int64_t images);

class ConvWeight {
 public:
  // Takes its places in `layout`, which the pointer `shared` below begins.
  ConvWeight(const ConvSpec& spec, const dnnl::memory::desc& plain,
             const dnnl::memory::desc& packed, ScratchLayout* layout);
  std::int64_t pieces() const { return static_cast<std::int64_t>(pieces_.size()); }
  std::size_t library_bytes() const;  // of scratch that a piece needs
  // Piece i of the caller's weight.
  void bring_in(std::int64_t i, const void* from, char* shared, char* library) const;
  // Where the library finds the whole, after all pieces.
  const void* packed(const void* from, const char* shared) const;

 private:
  ConvSpec spec_;
  bool widened_ = false, reordered_ = false;
  std::size_t staged_at_ = 0, packed_at_ = 0;
  std::vector<OneDnnReorder> pieces_;
};

}  // namespace aloft::cpu
