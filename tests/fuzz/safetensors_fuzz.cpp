// The safetensors reader on arbitrary bytes; every byte of every tensor it accepts is touched.
#include <cstdint>

#include "base/error.h"
#include "files/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace aloft;
  try {
    const Safetensors file = Safetensors::parse(std::as_bytes(std::span(data, size)), "fuzz");
    unsigned sum = 0;
    for (const TensorView& tensor : file.tensors()) {
      ensure(tensor.bytes.size() == tensor.type.max_bytes(), "a tensor has the bytes of its type");
      for (std::byte b : tensor.bytes) sum += static_cast<unsigned>(b);
      ensure(&file.at(tensor.name) == &tensor, "a tensor is found by its name");
    }
    volatile unsigned keep = sum;
    static_cast<void>(keep);
  } catch (const DataError&) {
  }
  return 0;
}
