#include "runtime/sharded_block.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "base/error.h"
#include "runtime/device.h"

namespace aloft {
namespace {

std::size_t bytes_of(const std::vector<Buffer>& parts) {
  std::size_t sum = 0;
  for (const Buffer& p : parts) sum += p.bytes();
  return sum;
}

// Calls f(piece, where it begins in `b`) for each piece of b that is one memory.
template <class F>
void each_piece(const Buffer& b, const F& f) {
  if (b.bytes() == 0) return;
  const std::span<const Buffer> parts = b.block()->parts();
  if (parts.empty()) return f(b, 0);
  const auto first = static_cast<std::size_t>(static_cast<std::byte*>(b.address()) -
                                              static_cast<std::byte*>(b.block()->address()));
  std::size_t begin = 0;  // of the part, in the block
  for (const Buffer& part : parts) {
    const std::size_t from = std::max(begin, first),
                      to = std::min(begin + part.bytes(), first + b.bytes());
    if (from < to) f(part.part(from - begin, to - from), from - first);
    begin += part.bytes();
  }
}

}  // namespace

// Its address is a mark to tell it from others by: nothing is there.
ShardedBlock::ShardedBlock(Device& device, std::vector<Buffer> parts)
    : Block(device, Space::Device, this, bytes_of(parts)), parts_(std::move(parts)) {}

bool is_at_hand(const Buffer& buffer) {
  if (!buffer.block()->parts().empty()) return false;
  return buffer.space() == Space::Device || buffer.device().features().shares_host_memory;
}

void copy_buffer(const Buffer& to, const Buffer& from, Before before) {
  ensure(to.bytes() == from.bytes(), "a copy has the size of what is copied");
  each_piece(to, [&](const Buffer& target, std::size_t at) {
    each_piece(from.part(at, target.bytes()), [&](const Buffer& source, std::size_t offset) {
      target.device().stream().copy(target.part(offset, source.bytes()), source, before);
    });
  });
}

void read_parts(void* to, const Buffer& from) {
  from.device().synchronize();
  each_piece(from, [&](const Buffer& piece, std::size_t at) {
    piece.read_into({static_cast<std::byte*>(to) + at, piece.bytes()});
  });
}

void write_parts(const Buffer& to, const void* from) {
  to.device().synchronize();
  each_piece(to, [&](const Buffer& piece, std::size_t at) {
    piece.write_from({static_cast<const std::byte*>(from) + at, piece.bytes()});
  });
}

}  // namespace aloft
