// Aloft's token shard: a header of 64 bytes, then the ids, to be memory-mapped.
//
//   offset  bytes  field (little endian)
//        0      8  "ALOFTSHD"
//        8      4  version, 1
//       12      4  bytes a token, 2 or 4
//       16      8  number of tokens
//       24      8  tokenizer fingerprint
//       32      8  XXH3 of the payload
//       40      4  vocabulary size; every id is below it
//       44     12  zero, reserved
//       56      8  XXH3 of bytes 0 to 55
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/file.h"
#include "base/hash.h"
#include "data/token_source.h"

namespace aloft {

struct ShardInfo {
  std::uint64_t tokens = 0;
  std::uint64_t fingerprint = 0;  // of the tokenizer
  std::uint64_t payload_hash = 0;
  std::int32_t vocab = 0;
  int token_bytes = 2;
};

// Written piece by piece; nothing appears at `path` before finish().
class ShardWriter {
 public:
  // `vocab` in 1 .. 2^31-1, else UserError E0502, chooses the width: 2 bytes up to 65,536.
  ShardWriter(const Path& path, std::int32_t vocab, std::uint64_t tokenizer_fingerprint);
  void write(std::span<const std::int32_t> ids);  // each in [0, vocab); UserError E0502 otherwise
  ShardInfo finish();

 private:
  AtomicFile file_;
  Hasher hasher_;
  ShardInfo info_;
  std::vector<std::byte> staging_;
};

enum class Verify {
  Payload,     // reads everything once: hash and range of every id
  HeaderOnly,  // for shards too large to read at every start; ids are still checked as they are
               // used
};

class Shard {
 public:
  // DataError E0520 (not a shard, other version, wrong size), E0521 (damaged). No memory is
  // allocated from the header's numbers.
  static Shard open(const Path& path, Verify verify = Verify::Payload);
  // The same checks on bytes that `owner` keeps. `name` is for messages.
  static Shard parse(std::shared_ptr<const void> owner, std::span<const std::byte> file,
                     const std::string& name, Verify verify = Verify::Payload);

  const ShardInfo& info() const { return info_; }
  const TokenSource& tokens() const { return tokens_; }

 private:
  Shard(ShardInfo info, TokenSource tokens) : info_(info), tokens_(std::move(tokens)) {}
  ShardInfo info_;
  TokenSource tokens_;
};

// The header's fields, checked against the size of the file; for listings.
ShardInfo parse_shard_header(std::span<const std::byte> file, const std::string& name);

}  // namespace aloft
