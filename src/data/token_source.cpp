#include "data/token_source.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/hash.h"

namespace aloft {
namespace {

// Largest id, as unsigned so that a damaged 32-bit id above 2^31 is seen as large, not negative.
template <class Stored>
std::uint32_t widen(const std::byte* from, std::span<std::int32_t> out) {
  std::uint32_t largest = 0;
  for (std::size_t i = 0; i < out.size(); ++i) {
    Stored id;
    std::memcpy(&id, from + i * sizeof id, sizeof id);
    largest = std::max<std::uint32_t>(largest, id);
    out[i] = static_cast<std::int32_t>(id);
  }
  return largest;
}

constexpr std::size_t kPiece = 4096;  // ids read at once from a file

std::size_t checked_width(int width) {
  if (width == 2 || width == 4) return static_cast<std::size_t>(width);
  throw UserError("E0532", "tokens are stored in another number of bytes")
      .saw(std::to_string(width) + " bytes a token")
      .need("2 or 4");
}

}  // namespace

TokenSource::TokenSource(std::shared_ptr<const void> owner, std::span<const std::byte> bytes,
                         int width, std::int32_t vocab, std::string name)
    : owner_(std::move(owner)),
      data_(bytes.data()),
      count_(bytes.size() / checked_width(width)),
      width_(width),
      vocab_(vocab),
      name_(std::move(name)) {}

TokenSource TokenSource::from_file(const Path& path, std::uint64_t offset, std::uint64_t count,
                                   int width, std::int32_t vocab) {
  checked_width(width);
  TokenSource source;
  source.file_ = std::make_shared<const InputFile>(path);
  source.offset_ = offset;
  source.count_ = count;
  source.width_ = width;
  source.vocab_ = vocab;
  source.name_ = path.string();
  return source;
}

TokenSource TokenSource::from_ids(std::vector<std::int32_t> ids, std::int32_t vocab) {
  auto owner = std::make_shared<const std::vector<std::int32_t>>(std::move(ids));
  const auto bytes = std::as_bytes(std::span(*owner));
  return TokenSource(owner, bytes, 4, vocab, "tokens in memory");
}

std::uint64_t TokenSource::content_hash() const {
  Hasher hasher;
  char buffer[4 * kPiece];
  for (std::uint64_t at = 0; at < count_; at += kPiece) {
    const auto ids = static_cast<std::size_t>(std::min<std::uint64_t>(kPiece, count_ - at));
    hasher.update(std::span(stored(at, ids, buffer), ids * static_cast<std::size_t>(width_)));
  }
  return hasher.digest();
}

const std::byte* TokenSource::stored(std::uint64_t first, std::size_t count,
                                     std::span<char> buffer) const {
  const auto width = static_cast<std::uint64_t>(width_);
  if (!file_) return data_ + first * width;
  const auto bytes = buffer.first(count * static_cast<std::size_t>(width_));
  if (file_->read_at(offset_ + first * width, bytes) < bytes.size())
    throw EnvironmentError("E0608", "a file was cut short while it was in use")
        .line("file", name_)
        .advice("bring it back whole, and go on with --resume");
  return std::as_bytes(bytes).data();
}

std::uint32_t TokenSource::read_piece(std::uint64_t first, std::span<std::int32_t> out) const {
  char buffer[4 * kPiece];
  const std::byte* from = stored(first, out.size(), buffer);
  return width_ == 2 ? widen<std::uint16_t>(from, out) : widen<std::uint32_t>(from, out);
}

TokenSource TokenSource::made_by(std::uint64_t tokenizer) const {
  TokenSource source = *this;
  source.tokenizer_ = tokenizer;
  return source;
}

TokenSource TokenSource::with_vocab(std::int32_t vocab) const {
  TokenSource narrowed = *this;
  narrowed.vocab_ = std::min(vocab, vocab_);
  return narrowed;
}

void TokenSource::read(std::uint64_t first, std::span<std::int32_t> out) const {
  if (first > count_ || out.size() > count_ - first)
    throw UserError("E0532", "tokens are asked for that there are not")
        .at(name_)
        .saw(std::to_string(out.size()) + " from " + std::to_string(first) + " on")
        .need("at most " + std::to_string(count_) + " in all");
  std::uint32_t largest = 0;
  for (std::size_t at = 0; at < out.size(); at += kPiece)
    largest = std::max(largest,
                       read_piece(first + at, out.subspan(at, std::min(kPiece, out.size() - at))));
  if (!out.empty() && largest >= static_cast<std::uint32_t>(vocab_))
    throw DataError("E0522", "a token outside the vocabulary")
        .at(name_ + ", tokens " + std::to_string(first) + " to " +
            std::to_string(first + out.size() - 1))
        .saw("id " + std::to_string(largest))
        .need("ids below " + std::to_string(vocab_))
        .advice("rebuild the shard with this model's tokenizer, or enlarge the model's vocabulary");
}

}  // namespace aloft
