// One tensor in a file of its own, as programs of Python read it: torch.load, numpy.load. Each file
// is whole or not there, whatever ends the program; none is flushed to the disk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "types/dtype.h"

namespace aloft {

// Row-major, little endian; as many bytes as its shape and type have.
struct TensorBytes {
  DType type = DType::F32;
  std::vector<std::int64_t> shape;
  std::span<const std::byte> bytes;
};

// What torch.save(tensor) writes: a zip file whose pickle names nothing but torch's own ways to
// build a tensor, so that torch.load(path, weights_only=True) reads it. At most so many bytes: a
// zip file has 32 bits for a size, its own heads included. EnvironmentError E0603, here and below.
void write_torch_tensor(const Path& path, const TensorBytes& tensor);
inline constexpr std::uint64_t kMostOfTorchTensor = (std::uint64_t{1} << 32) - (1 << 20) - 1;

// numpy's own format. numpy has no bf16: such a tensor is written as the same numbers in f32.
void write_npy(const Path& path, const TensorBytes& tensor);

}  // namespace aloft
