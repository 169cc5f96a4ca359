#include "runtime/buffer.h"

#include <cstring>
#include <string>
#include <utility>

#include "base/error.h"
#include "runtime/device.h"
#include "runtime/sharded_block.h"

namespace aloft {
namespace {

void download(void* to, const Buffer& from) {
  if (from.block()->parts().empty()) return from.device().stream().download(to, from);
  read_parts(to, from);
}

void upload(const Buffer& to, const void* from) {
  if (to.block()->parts().empty()) return to.device().stream().upload(to, from);
  write_parts(to, from);
}

// What is written for a device whose memory the host cannot reach.
class Staged {
 public:
  Staged(Buffer to) : to_(std::move(to)), bytes_(new std::byte[to_.bytes()]) {
    // What a writer leaves out must not pass for what was there before.
    std::memset(bytes_.get(), 0xff, to_.bytes());
  }
  ~Staged() { upload(to_, bytes_.get()); }
  Staged(const Staged&) = delete;
  Staged& operator=(const Staged&) = delete;
  void* data() const { return bytes_.get(); }

 private:
  Buffer to_;
  std::unique_ptr<std::byte[]> bytes_;
};

}  // namespace

Buffer::Buffer(std::shared_ptr<Block> block) : block_(std::move(block)), bytes_(block_->bytes()) {}

void Buffer::check(std::size_t offset, std::size_t bytes) const {
  if (block_ && offset <= bytes_ && bytes <= bytes_ - offset) return;
  throw InternalError("bytes outside a buffer are asked for")
      .saw(std::to_string(bytes) + " from byte " + std::to_string(offset) + " on")
      .need("a part of its " + std::to_string(bytes_));
}

Buffer Buffer::part(std::size_t offset, std::size_t bytes) const {
  check(offset, bytes);
  Buffer part = *this;
  part.offset_ += offset;
  part.bytes_ = bytes;
  return part;
}

std::byte* Buffer::mapped(std::size_t offset) const {
  std::byte* const whole = block_->parts().empty() ? device().map(*block_) : nullptr;
  return whole ? whole + offset_ + offset : nullptr;
}

std::pair<const void*, std::shared_ptr<const void>> Buffer::read_bytes(std::size_t offset,
                                                                       std::size_t bytes) const {
  check(offset, bytes);
  if (const void* at = mapped(offset)) return {at, block_};
  const std::shared_ptr<std::byte[]> copy(new std::byte[bytes]);
  download(copy.get(), part(offset, bytes));
  return {copy.get(), copy};
}

std::pair<void*, std::shared_ptr<void>> Buffer::write_bytes(std::size_t offset, std::size_t bytes,
                                                            bool with_values) const {
  check(offset, bytes);
  if (void* at = mapped(offset)) return {at, block_};
  const auto staged = std::make_shared<Staged>(part(offset, bytes));
  if (with_values) download(staged->data(), part(offset, bytes));
  return {staged->data(), staged};
}

void Buffer::read_into(std::span<std::byte> to, std::size_t offset) const {
  check(offset, to.size());
  if (to.empty()) return;
  if (const void* at = mapped(offset))
    std::memcpy(to.data(), at, to.size());
  else
    download(to.data(), part(offset, to.size()));
}

void Buffer::write_from(std::span<const std::byte> from, std::size_t offset) const {
  check(offset, from.size());
  if (from.empty()) return;
  if (void* at = mapped(offset))
    std::memcpy(at, from.data(), from.size());
  else
    upload(part(offset, from.size()), from.data());
}

void Buffer::zero() const {
  if (bytes_ > 0) std::memset(write<std::byte>().data(), 0, bytes_);
}

}  // namespace aloft
