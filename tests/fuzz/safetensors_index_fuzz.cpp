// The index of a model in several files, on arbitrary bytes: what it names lies beside it.
#include <cstdint>

#include "base/error.h"
#include "files/sharded_safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace aloft;
  try {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const auto index = parse_safetensors_index(text, "fuzz");
    ensure(!index.empty(), "an index names tensors");
    for (const auto& [tensor, file] : index)
      ensure(!file.empty() && file.find('/') == std::string::npos && file != "..",
             "a file lies beside the index");
  } catch (const DataError& e) {
    ensure(e.code() == "E0615", "an index is refused as one");
  }
  return 0;
}
