// Memory in parts on several devices, which the host reads and writes as one; and copies between
// buffers of which any may be such.
#pragma once

#include <span>
#include <vector>

#include "runtime/buffer.h"
#include "runtime/stream.h"

namespace aloft {

// Of a variable whose parts programs of `device` bring together before they use it. No kernel is
// given its address.
class ShardedBlock : public Block {
 public:
  ShardedBlock(Device& device, std::vector<Buffer> parts);
  std::span<const Buffer> parts() const override { return parts_; }

 private:
  std::vector<Buffer> parts_;
};

// Whether kernels of its device can work on the buffer where it lies.
bool is_at_hand(const Buffer& buffer);

// As many bytes as `from` has, wherever they lie, behind what both devices were given to do before,
// on the stream of the memory that is written.
void copy_buffer(const Buffer& to, const Buffer& from, Before before = Before::Anything);

// The same between the host and a sharded buffer; waits.
void read_parts(void* to, const Buffer& from);
void write_parts(const Buffer& to, const void* from);

}  // namespace aloft
