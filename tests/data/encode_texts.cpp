// Ids of many texts, for a judge: encode_texts TOKENIZER TEXTS IDS [DECODED]
//
// TEXTS holds each text's bytes behind their number (uint32, little endian); IDS gets each text's
// ids behind theirs (both int32), DECODED what they are as text, in the form of TEXTS. What it
// took of the processor is printed, the second time over the same texts, too.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <exception>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "data/tokenizer.h"

int main(int argc, char** argv) {
  using namespace aloft;
  if (argc != 4 && argc != 5) return 2;
  try {
    const auto since = [](std::clock_t then) {
      return static_cast<double>(std::clock() - then) / CLOCKS_PER_SEC;
    };
    const std::clock_t start = std::clock();
    const auto tokenizer = load_tokenizer(argv[1]);
    const double loading = since(start);
    const std::string file = read_file(argv[2]);
    std::vector<std::string_view> texts;
    std::size_t bytes = 0;
    for (std::size_t at = 0; at + 4 <= file.size();) {
      std::uint32_t size;
      std::memcpy(&size, file.data() + at, 4);
      texts.push_back(std::string_view(file).substr(at + 4, size));
      at += 4 + size;
      bytes += size;
    }
    double seconds[2];
    std::vector<std::int32_t> all, ids;
    for (double& took : seconds) {
      all.clear();
      const std::clock_t begin = std::clock();
      for (std::string_view text : texts) {
        ids.clear();
        tokenizer->encode_to(text, ids);
        all.push_back(static_cast<std::int32_t>(ids.size()));
        all.insert(all.end(), ids.begin(), ids.end());
      }
      took = since(begin);
    }
    write_file_atomic(argv[3], std::as_bytes(std::span(all)));
    std::string decoded;
    for (std::size_t at = 0; argc == 5 && at < all.size();) {
      const auto count = static_cast<std::size_t>(all[at++]);
      const std::string text = tokenizer->decode(std::span(all).subspan(at, count));
      const auto size = static_cast<std::uint32_t>(text.size());
      decoded.append(reinterpret_cast<const char*>(&size), 4).append(text);
      at += count;
    }
    if (argc == 5) write_file_atomic(argv[4], decoded);
    std::printf("loaded in %.3f s; %zu bytes, %.2f MB/s, again %.2f MB/s\n", loading, bytes,
                static_cast<double>(bytes) / seconds[0] / 1e6,
                static_cast<double>(bytes) / seconds[1] / 1e6);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
