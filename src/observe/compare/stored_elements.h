// Elements of tensors as torch.save and numpy.save keep them, as numbers.
#pragma once

#include <cstddef>
#include <span>
#include <stdexcept>
#include <string>

#include "files/torch_file.h"
#include "observe/compare/elements.h"

namespace aloft::compare {

// What is there instead of them, for a message: "no dense tensor".
struct NoElements : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Of a tensor in a zip file that torch.save wrote; `file` is its name. DataError E0832 where the
// zip file is damaged; NoElements.
Elements torch_elements(const TorchFile& saved, TorchFile::Value value,
                        std::span<const std::byte> bytes, const std::string& file);
// Of a file that numpy.save wrote. NoElements.
Elements numpy_elements(std::span<const std::byte> bytes);

}  // namespace aloft::compare
