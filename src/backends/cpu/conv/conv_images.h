// Images on their way between the caller's layout and the library's, one at a time, so that a
// batch may have fewer of them than a primitive takes.
#pragma once

#include <cstdint>

#include "backends/cpu/onednn.h"

namespace aloft::cpu {

class ConvImages {
 public:
  enum class Way { In, Out };
  // `all` describes `images` images in both layouts.
  ConvImages(Way way, const OneDnnConv::Images& all, std::int64_t images, int threads)
      : packed_bytes_(all.packed.get_size() / static_cast<std::size_t>(images)),
        reorder_(way == Way::In ? OneDnnReorder(first(all.plain), first(all.packed), threads)
                                : OneDnnReorder(first(all.packed), first(all.plain), threads)) {}
  std::size_t packed_bytes() const { return packed_bytes_; }  // of an image
  std::size_t library_bytes() const { return reorder_.scratch_bytes(); }
  // One image.
  void run(const void* from, void* to, void* library) const { reorder_.run({from, to, library}); }

 private:
  static dnnl::memory::desc first(const dnnl::memory::desc& all) {
    dnnl::memory::dims dims = all.dims();
    dims[0] = 1;
    return all.submemory_desc(dims, dnnl::memory::dims(dims.size(), 0));
  }
  std::size_t packed_bytes_;
  OneDnnReorder reorder_;
};

}  // namespace aloft::cpu
