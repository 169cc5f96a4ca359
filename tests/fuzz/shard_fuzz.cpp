// The shard reader on arbitrary bytes: as they are, and with the header's hash put right, which no
// fuzzer finds by itself.
#include <array>
#include <cstdint>
#include <cstring>

#include "base/error.h"
#include "data/shard.h"

namespace {

using namespace aloft;

void read_all(std::span<const std::byte> file) {
  for (Verify verify : {Verify::Payload, Verify::HeaderOnly}) {
    try {
      const Shard shard = Shard::parse(nullptr, file, "fuzz", verify);
      std::array<std::int32_t, 64> ids;
      for (std::uint64_t at = 0; at < shard.tokens().size(); at += ids.size()) {
        const std::uint64_t left = shard.tokens().size() - at;
        shard.tokens().read(at, std::span(ids).first(std::min<std::uint64_t>(ids.size(), left)));
      }
    } catch (const DataError&) {
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  read_all(bytes);
  if (size < 64) return 0;
  std::vector<std::byte> mended(bytes.begin(), bytes.end());
  const std::uint64_t payload = hash64(std::span<const std::byte>(mended).subspan(64));
  if (data[0] == 'A') std::memcpy(mended.data() + 32, &payload, 8);
  const std::uint64_t header = hash64(std::span<const std::byte>(mended).first(56));
  std::memcpy(mended.data() + 56, &header, 8);
  read_all(mended);
  return 0;
}
