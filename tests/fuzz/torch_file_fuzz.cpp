// The reader of torch.save's files on arbitrary bytes: numbers of its dictionaries, its tensor, or
// a word on why not.
#include <cstdint>

#include "base/error.h"
#include "files/torch_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace aloft;
  try {
    const TorchFile file = TorchFile::parse(std::as_bytes(std::span(data, size)), "fuzz");
    const TorchFile::Value inside = file.find(file.root(), "amp").value_or(file.root());
    if (const auto first = file.find(inside, "loss_scaler0"))
      if (const auto scale = file.find(*first, "loss_scale"))
        static_cast<void>(file.number(*scale));
    if (const auto tensor = file.tensor(file.root()))
      ensure(tensor->shape.size() == tensor->strides.size(), "a dimension has a stride");
    ensure(file.size(inside) <= size, "an entry takes bytes");
  } catch (const DataError&) {
  }
  return 0;
}
