// A Hugging Face folder of any family whose config.json holds any bytes: refused, or a description
// that can be built. Its tensors are none, so that what fits the rules is still refused in the end.
#include <cstdint>

#include "base/error.h"
#include "models/huggingface.h"
#include "temporary_folder.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace aloft;
  static const TemporaryFolder folder;
  static const bool once = [] {
    constexpr std::string_view kEmpty("\2\0\0\0\0\0\0\0{}", 10);
    TemporaryFolder::put(folder / "model.safetensors", kEmpty);
    return true;
  }();
  static_cast<void>(once);
  TemporaryFolder::put(folder / "config.json", {reinterpret_cast<const char*>(data), size});
  try {
    models::open_huggingface(folder.path());
    ensure(false, "a model without tensors is refused");
  } catch (const DataError&) {
  }
  return 0;
}
