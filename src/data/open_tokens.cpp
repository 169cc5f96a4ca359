#include "data/open_tokens.h"

#include <limits>

#include "files/token_bin.h"

namespace aloft {

TokenSource open_tokens(const Path& path, Verify verify) {
  if (MappedFile(path).text().starts_with("ALOFTSHD")) return Shard::open(path, verify).tokens();
  const TokenBin bin = open_token_bin(path);
  const std::int32_t vocab =
      bin.token_bytes == 2 ? 65536 : std::numeric_limits<std::int32_t>::max();
  const auto offset = static_cast<std::uint64_t>(bin.tokens.data() - bin.file->bytes().data());
  const std::uint64_t count = bin.tokens.size() / static_cast<std::size_t>(bin.token_bytes);
  return TokenSource::from_file(path, offset, count, bin.token_bytes, vocab);
}

}  // namespace aloft
