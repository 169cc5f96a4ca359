#include "data/open_tokens.h"

#include <limits>

#include "base/error.h"
#include "base/text.h"
#include "data/text_kind.h"
#include "files/token_bin.h"

namespace aloft {

namespace {

// Without a header a file of tokens is any bytes: what is plainly something else is refused.
void refuse_what_is_no_token_file(const Path& path, std::string_view bytes) {
  constexpr std::size_t kLooked = std::size_t{64} << 10;
  const std::string_view start = bytes.substr(0, kLooked);
  const auto kind = foreign_kind(path, start);
  if (!kind && !is_likely_text(start)) return;
  throw DataError("E0620", "not a usable .bin file of tokens")
      .at(path.string())
      .saw(kind ? kind->name : "text: " + in_quotes(start.substr(0, 40)))
      .need("a shard of `aloft data build`, a file of llm.c, or uint16 ids as nanoGPT writes them")
      .advice(kind ? kind->advice : "name it as data.text, with a tokenizer");
}

}  // namespace

TokenSource open_tokens(const Path& path, Verify verify) {
  {
    const MappedFile file(path);
    if (file.text().starts_with("ALOFTSHD")) return Shard::open(path, verify).tokens();
    if (!has_token_bin_magic(file.bytes())) refuse_what_is_no_token_file(path, file.text());
  }
  const TokenBin bin = open_token_bin(path);
  const std::int32_t vocab =
      bin.token_bytes == 2 ? 65536 : std::numeric_limits<std::int32_t>::max();
  const auto offset = static_cast<std::uint64_t>(bin.tokens.data() - bin.file->bytes().data());
  const std::uint64_t count = bin.tokens.size() / static_cast<std::size_t>(bin.token_bytes);
  return TokenSource::from_file(path, offset, count, bin.token_bytes, vocab);
}

}  // namespace aloft
