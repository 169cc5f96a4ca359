// A long sequence of token ids with random access, wherever it lies: in a memory-mapped shard, in
// one of llm.c's or nanoGPT's files, in memory. A value: copies share the same bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"

namespace aloft {

// Ids of one vocabulary, by position.
class TokenSource {
 public:
  // `bytes` holds ids of `width` bytes each (2 or 4, unsigned, little endian) and stays valid while
  // `owner` lives. Ids from `vocab` on are refused when they are read. UserError E0532 for another
  // width.
  TokenSource(std::shared_ptr<const void> owner, std::span<const std::byte> bytes, int width,
              std::int32_t vocab, std::string name);
  // `count` ids that begin at byte `offset` of a file. They are read as they are needed, not
  // mapped: a file that somebody cuts short meanwhile is then an error, not the end of the program.
  // EnvironmentError E0606, DataError E0601.
  static TokenSource from_file(const Path& path, std::uint64_t offset, std::uint64_t count,
                               int width, std::int32_t vocab);
  // In memory, for tests and small data.
  static TokenSource from_ids(std::vector<std::int32_t> ids, std::int32_t vocab);

  // How many ids there are; every id is below vocab().
  std::uint64_t size() const { return count_; }
  std::int32_t vocab() const { return vocab_; }
  const std::string& name() const { return name_; }  // for messages: the file's path
  // The fingerprint of the tokenizer that made them; nothing where nobody wrote it down.
  std::optional<std::uint64_t> tokenizer() const { return tokenizer_; }
  TokenSource made_by(std::uint64_t tokenizer) const;

  // XXH3 of the ids as they are stored: reads everything.
  std::uint64_t content_hash() const;

  // The same tokens, checked against a smaller vocabulary: the model's.
  TokenSource with_vocab(std::int32_t vocab) const;

  // Copies ids `first` ... into `out`. Allocates nothing. UserError E0532 unless
  // first + out.size() <= size(); DataError E0522 where an id is not below the vocabulary;
  // EnvironmentError E0608 where the file has become shorter, E0606.
  void read(std::uint64_t first, std::span<std::int32_t> out) const;

 private:
  TokenSource() = default;
  // The stored bytes of `count` ids from `first` on; in `buffer` where they lie in a file.
  const std::byte* stored(std::uint64_t first, std::size_t count, std::span<char> buffer) const;
  std::uint32_t read_piece(std::uint64_t first, std::span<std::int32_t> out) const;

  std::shared_ptr<const InputFile> file_;  // null: in memory
  std::uint64_t offset_ = 0;
  std::shared_ptr<const void> owner_;
  const std::byte* data_ = nullptr;
  std::uint64_t count_ = 0;
  int width_ = 2;
  std::int32_t vocab_ = 0;
  std::optional<std::uint64_t> tokenizer_;
  std::string name_;
};

}  // namespace aloft
