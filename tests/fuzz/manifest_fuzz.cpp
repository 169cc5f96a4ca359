// The reader of a checkpoint's manifest on arbitrary bytes: what it accepts is in range, and writes
// and reads back as it was.
#include <cstdint>

#include "base/error.h"
#include "train/manifest.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace aloft;
  try {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    Manifest manifest = parse_manifest(text, "fuzz");
    const CheckpointMeta& meta = manifest.meta;
    ensure(meta.step >= 0 && meta.tokens >= 0 && meta.time_s >= 0, "nothing counts below 0");
    ensure(meta.data_position <= std::uint64_t{1} << 53, "a position is exact");
    const std::string again = manifest_text(manifest);
    ensure(manifest_text(parse_manifest(again, "again")) == again, "it reads back as it was");
  } catch (const DataError&) {
  }
  return 0;
}
