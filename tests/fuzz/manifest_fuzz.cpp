// The reader of a checkpoint's manifest on arbitrary bytes: as they are, and with the manifest's
// hash of itself put right, which no fuzzer finds by itself. What it accepts is in range, and
// writes and reads back as it was.
#include <cstdint>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "checkpoint/manifest.h"
#include "models/model_json.h"

namespace {

using namespace aloft;

void read(std::string_view text) {
  try {
    const Manifest manifest = parse_manifest(text, "fuzz");
    const CheckpointMeta& meta = manifest.meta;
    ensure(meta.step >= 0 && meta.tokens >= 0 && meta.time_s >= 0, "nothing counts below 0");
    ensure(meta.data_position <= std::uint64_t{1} << 53, "a position is exact");
    const std::string again = manifest_text(manifest);
    ensure(manifest_text(parse_manifest(again, "again")) == again, "it reads back as it was");
    models::model_of_json(meta.model);
  } catch (const DataError&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  read(text);
  nlohmann::json mended = parse_json(text);
  if (!mended.is_object()) return 0;
  mended.erase("xxh3");
  mended["xxh3"] = hex16(hash64(mended.dump()));
  read(mended.dump());
  return 0;
}
