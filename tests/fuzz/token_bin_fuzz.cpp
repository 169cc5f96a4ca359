// The reader of llm.c's and nanoGPT's token files on arbitrary bytes.
#include <cstdint>

#include "base/error.h"
#include "files/token_bin.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace aloft;
  try {
    const TokenBin bin = parse_token_bin(std::as_bytes(std::span(data, size)), "fuzz");
    ensure(bin.tokens.size() == bin.count * static_cast<std::uint64_t>(bin.token_bytes),
           "every token has its bytes");
    unsigned sum = 0;
    for (std::byte b : bin.tokens) sum += static_cast<unsigned>(b);
    volatile unsigned keep = sum;
    static_cast<void>(keep);
  } catch (const DataError&) {
  }
  return 0;
}
