#include "files/token_bin.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <iterator>

#include "base/error.h"

namespace aloft {
namespace {

constexpr std::size_t kHeaderBytes = 256 * 4;

struct Kind {
  std::int32_t magic, version;
  int token_bytes;
};
constexpr Kind kKinds[] = {{20240520, 1, 2}, {20240801, 7, 4}};
constexpr std::int32_t kEvaluationMagic = 20240522;  // llm.c's multiple-choice files

[[noreturn]] void refuse(const std::string& name, const std::string& saw, const std::string& need) {
  throw DataError("E0620", "not a usable .bin file of tokens")
      .at(name)
      .saw(saw)
      .need(need)
      .advice("write it again with the program that made it; a copy may have been cut short");
}

std::int32_t field(std::span<const std::byte> file, std::size_t i) {
  std::int32_t value;
  std::memcpy(&value, file.data() + 4 * i, 4);
  return value;
}

TokenBin with_header(std::span<const std::byte> file, const Kind& kind, const std::string& name) {
  if (file.size() < kHeaderBytes)
    refuse(name, fmt::format("{} bytes", file.size()), "a header of 1024 bytes");
  const std::int32_t version = field(file, 1), count = field(file, 2);
  if (version != kind.version)
    refuse(name, fmt::format("version {}", version), fmt::format("version {}", kind.version));
  const std::uint64_t bytes = file.size() - kHeaderBytes;
  if (count < 0 ||
      bytes != static_cast<std::uint64_t>(count) * static_cast<std::uint64_t>(kind.token_bytes))
    refuse(name, fmt::format("a header that says {} tokens and {} bytes after it", count, bytes),
           fmt::format("{} bytes for each token", kind.token_bytes));
  return {nullptr, file.subspan(kHeaderBytes), static_cast<std::uint64_t>(count), kind.token_bytes,
          true};
}

}  // namespace

bool has_token_bin_magic(std::span<const std::byte> file) {
  if (file.size() < 4) return false;
  const std::int32_t magic = field(file, 0);
  return magic == kEvaluationMagic || std::any_of(std::begin(kKinds), std::end(kKinds),
                                                  [&](const Kind& k) { return k.magic == magic; });
}

TokenBin parse_token_bin(std::span<const std::byte> file, const std::string& name) {
  if (file.size() >= 4) {
    const std::int32_t magic = field(file, 0);
    for (const Kind& kind : kKinds)
      if (magic == kind.magic) return with_header(file, kind, name);
    if (magic == kEvaluationMagic)
      refuse(name, "llm.c's multiple-choice questions", "a stream of training tokens");
  }
  if (file.size() % 2 != 0)
    refuse(name, fmt::format("no header and {} bytes, an odd number", file.size()),
           "uint16 tokens, or a header of llm.c");
  return {nullptr, file, file.size() / 2, 2, false};
}

TokenBin open_token_bin(const Path& path) {
  auto file = std::make_shared<const MappedFile>(path);
  TokenBin bin = parse_token_bin(file->bytes(), path.string());
  bin.file = std::move(file);
  return bin;
}

}  // namespace aloft
