#include "data/open_tokens.h"

#include <limits>

#include "files/token_bin.h"

namespace aloft {

TokenSource open_tokens(const Path& path, Verify verify) {
  if (MappedFile(path).text().starts_with("ALOFTSHD")) return Shard::open(path, verify).tokens();
  const TokenBin bin = open_token_bin(path);
  const std::int32_t vocab =
      bin.token_bytes == 2 ? 65536 : std::numeric_limits<std::int32_t>::max();
  return TokenSource(bin.file, bin.tokens, bin.token_bytes, vocab, path.string());
}

}  // namespace aloft
