// The elements of tensors that others saved: a pickle of any bytes beside two storages, in a zip
// file with right checksums, as weights (each tensor hashed) and as a dump's file; and numpy's file
// of any bytes. Numbers of the shape that is said, or a word on why not.
#include <cstdint>

#include "base/error.h"
#include "observe/compare/stored_elements.h"
#include "observe/config_check/weights_file.h"
#include "stored_zip.h"
#include "temporary_folder.h"

namespace {

using namespace aloft;
using namespace aloft::compare;

void check(const Elements& e) {
  std::size_t count = 1;
  for (const std::int64_t n : e.shape) {
    ensure(n >= 0, "extents are 0 or more");
    count *= static_cast<std::size_t>(n);
  }
  ensure(count == e.values.size(), "as many elements as the shape says");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const TemporaryFolder folder;
  static const std::string storage(256, '\x3f');
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    check(numpy_elements(std::as_bytes(std::span(data, size))));
  } catch (const NoElements&) {
  }
  const std::string zip = stored_zip({{"a/data.pkl", text},
                                      {"a/data/0", storage},
                                      {"a/data/1", std::string_view(storage).substr(0, 7)}});
  const auto bytes = std::as_bytes(std::span(zip));
  try {
    const TorchFile saved = TorchFile::parse(bytes, "fuzz");
    check(torch_elements(saved, saved.root(), bytes, "fuzz"));
  } catch (const NoElements&) {
  } catch (const DataError&) {
  }
  const Path file = folder / "weights.pt";
  TemporaryFolder::put(file, zip);
  try {
    const auto weights = config_check::read_weights(file);
    ensure(weights && !weights->tensors.empty(), "there are tensors, or it is refused");
  } catch (const DataError&) {
  }
  return 0;
}
