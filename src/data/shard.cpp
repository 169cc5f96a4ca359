#include "data/shard.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "base/error.h"

namespace aloft {
namespace {

static_assert(std::endian::native == std::endian::little, "shards are little endian");

constexpr char kMagic[8] = {'A', 'L', 'O', 'F', 'T', 'S', 'H', 'D'};
constexpr std::uint32_t kVersion = 1;

struct Header {
  char magic[8];
  std::uint32_t version, token_bytes;
  std::uint64_t tokens, fingerprint, payload_hash;
  std::uint32_t vocab, reserved[3];
  std::uint64_t header_hash;
};
static_assert(sizeof(Header) == 64);

std::uint64_t hash_of_fields(const Header& header) {
  return hash64(std::as_bytes(std::span(&header, 1)).first(offsetof(Header, header_hash)));
}

[[noreturn]] void not_a_shard(const std::string& name, const std::string& saw,
                              const std::string& need) {
  throw DataError("E0520", "not a usable token shard")
      .at(name)
      .saw(saw)
      .need(need)
      .advice("remove the file; `aloft data build` writes it anew");
}

[[noreturn]] void damaged(const std::string& name, const std::string& saw) {
  throw DataError("E0521", "a token shard is damaged")
      .at(name)
      .saw(saw)
      .advice("remove the file; `aloft data build` writes it anew");
}

}  // namespace

ShardWriter::ShardWriter(const Path& path, std::int32_t vocab, std::uint64_t tokenizer_fingerprint)
    : file_(path) {
  if (vocab < 1)
    throw UserError("E0502", "a token shard without a vocabulary")
        .saw(std::to_string(vocab) + " tokens")
        .need("1 to 2147483647");
  info_.vocab = vocab;
  info_.fingerprint = tokenizer_fingerprint;
  info_.token_bytes = vocab <= 65536 ? 2 : 4;
  file_.write(std::string_view(std::array<char, sizeof(Header)>{}.data(), sizeof(Header)));
}

void ShardWriter::write(std::span<const std::int32_t> ids) {
  const std::size_t width = static_cast<std::size_t>(info_.token_bytes);
  constexpr std::size_t kPiece = 1 << 16;
  while (!ids.empty()) {
    const auto piece = ids.first(std::min(ids.size(), kPiece));
    staging_.resize(piece.size() * width);
    for (std::size_t i = 0; i < piece.size(); ++i) {
      if (piece[i] < 0 || piece[i] >= info_.vocab)
        throw UserError("E0502", "no such token")
            .saw("id " + std::to_string(piece[i]))
            .need("0 to " + std::to_string(info_.vocab - 1));
      std::memcpy(staging_.data() + i * width, &piece[i], width);  // little endian: the low bytes
    }
    hasher_.update(staging_);
    file_.write(staging_);
    info_.tokens += piece.size();
    ids = ids.subspan(piece.size());
  }
}

ShardInfo ShardWriter::finish() {
  info_.payload_hash = hasher_.digest();
  Header header{};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  header.version = kVersion;
  header.token_bytes = static_cast<std::uint32_t>(info_.token_bytes);
  header.tokens = info_.tokens;
  header.fingerprint = info_.fingerprint;
  header.payload_hash = info_.payload_hash;
  header.vocab = static_cast<std::uint32_t>(info_.vocab);
  header.header_hash = hash_of_fields(header);
  file_.write_at(0, std::as_bytes(std::span(&header, 1)));
  file_.commit();
  return info_;
}

ShardInfo parse_shard_header(std::span<const std::byte> file, const std::string& name) {
  Header header;
  const auto start = file.first(std::min(file.size(), sizeof kMagic));
  const bool is_ours = start.empty() || std::memcmp(start.data(), kMagic, start.size()) == 0;
  if (is_ours && file.size() < sizeof header)
    not_a_shard(name, std::to_string(file.size()) + " bytes", "a header of 64 bytes");
  if (is_ours) std::memcpy(&header, file.data(), sizeof header);
  if (!is_ours)
    throw DataError("E0520", "this is no token shard")
        .at(name)
        .saw("a file that begins otherwise")
        .need("\"ALOFTSHD\" at its start, or a token file *.bin of llm.c or nanoGPT")
        .advice("`aloft data build RECIPE` makes shards of text");
  if (header.version != kVersion)
    not_a_shard(name, "version " + std::to_string(header.version), "version 1");
  if (header.header_hash != hash_of_fields(header)) damaged(name, "a header whose hash differs");
  const std::uint64_t payload = file.size() - sizeof header;
  if (header.token_bytes != 2 && header.token_bytes != 4)
    not_a_shard(name, std::to_string(header.token_bytes) + " bytes a token", "2 or 4");
  // Division instead of multiplication: the count is not trusted.
  if (payload % header.token_bytes != 0 || payload / header.token_bytes != header.tokens)
    not_a_shard(name, std::to_string(payload) + " bytes of tokens",
                std::to_string(header.tokens) + " tokens of " + std::to_string(header.token_bytes) +
                    " bytes");
  if (header.vocab == 0 || header.vocab > 0x7FFFFFFF)
    not_a_shard(name, "vocabulary of " + std::to_string(header.vocab), "1 to 2147483647");
  return {header.tokens, header.fingerprint, header.payload_hash,
          static_cast<std::int32_t>(header.vocab), static_cast<int>(header.token_bytes)};
}

Shard Shard::open(const Path& path, Verify verify) {
  auto file = std::make_shared<const MappedFile>(path);
  const auto bytes = file->bytes();
  Shard shard = parse(std::move(file), bytes, path.string(), verify);
  const ShardInfo& info = shard.info_;
  shard.tokens_ =
      TokenSource::from_file(path, sizeof(Header), info.tokens, info.token_bytes, info.vocab)
          .made_by(info.fingerprint);
  return shard;
}

Shard Shard::parse(std::shared_ptr<const void> owner, std::span<const std::byte> file,
                   const std::string& name, Verify verify) {
  const ShardInfo info = parse_shard_header(file, name);
  const auto payload = file.subspan(sizeof(Header));
  TokenSource tokens(std::move(owner), payload, info.token_bytes, info.vocab, name);
  if (verify == Verify::Payload) {
    if (hash64(payload) != info.payload_hash) damaged(name, "tokens whose hash differs");
    std::array<std::int32_t, 4096> piece;
    for (std::uint64_t at = 0; at < info.tokens; at += piece.size())
      tokens.read(at,
                  std::span(piece).first(std::min<std::uint64_t>(piece.size(), info.tokens - at)));
  }
  return Shard(info, tokens.made_by(info.fingerprint));
}

}  // namespace aloft
