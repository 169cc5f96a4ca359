// The IDX files of MNIST (LeCun, Cortes, Burges 1998; yann.lecun.com/exdb/mnist): a big-endian
// header of element type, rank and extents, then the elements.
#pragma once

#include "data/array_loader.h"

namespace aloft {

// Images of rank 3 [n, height, width] or 4 [n, channels, height, width] of any of the format's
// types, each element times `scale`, and labels of rank 1, whole numbers from 0 on, one an image.
// DataError E0533 where a file is none, is compressed, is shorter or longer than its header says,
// or the two do not belong together; nothing is allocated before that is known.
ArrayData read_idx(const Path& images, const Path& labels, float scale = 1);

}  // namespace aloft
