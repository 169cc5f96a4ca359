// A long sequence of token ids with random access, wherever it lies: in a memory-mapped shard, in
// one of llm.c's or nanoGPT's files, in memory. A value: copies share the same bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace aloft {

class TokenSource {
 public:
  // `bytes` holds ids of `width` bytes each (2 or 4, unsigned, little endian) and stays valid while
  // `owner` lives. Ids from `vocab` on are refused when they are read.
  TokenSource(std::shared_ptr<const void> owner, std::span<const std::byte> bytes, int width,
              std::int32_t vocab, std::string name);
  // In memory, for tests and small data.
  static TokenSource from_ids(std::vector<std::int32_t> ids, std::int32_t vocab);

  std::uint64_t size() const { return count_; }
  std::int32_t vocab() const { return vocab_; }
  const std::string& name() const { return name_; }  // for messages: the file's path

  // The same tokens, checked against a smaller vocabulary: the model's.
  TokenSource with_vocab(std::int32_t vocab) const;

  // Copies ids `first` ... into `out`; first + out.size() <= size(). Allocates nothing.
  // DataError E0522 where an id is not below the vocabulary.
  void read(std::uint64_t first, std::span<std::int32_t> out) const;

 private:
  std::shared_ptr<const void> owner_;
  const std::byte* data_;
  std::uint64_t count_;
  int width_;
  std::int32_t vocab_;
  std::string name_;
};

}  // namespace aloft
