// Where the operands of an update op lie, and how tiles of them are read and written.
#pragma once

#include <hwy/cache_control.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "backends/cpu/update/float_tiles.h"
#include "backends/cpu/update/pieces.h"
#include "backends/cpu/update/update_tile.h"
#include "backends/cpu/vectors/tiles.h"
#include "ops/update_layout.h"
#include "runtime/kernel.h"
#include "scalar/block_float.h"
#include "scalar/split_float.h"

namespace aloft::cpu {

// Elements of a tile of which some are in buffers: all that is read and written of them, and what
// is fetched for the next ones, fits into a first cache of 32 KiB.
inline constexpr std::int64_t kShortTile = 512;

class UpdateMemory {
 public:
  UpdateMemory(const optim::FormulaRecord& formula, const UpdateAttrs& attrs,
               const UpdateLayout& layout, const CallSpec& call);

  const UpdateLayout& layout() const { return layout_; }
  const Pieces& pieces() const { return pieces_; }

  // body(tile) for the piece, from its first elements on: what of it is not in f32 is put into
  // buffers. States only where they are read.
  template <class Body>
  void read(const Piece& piece, const RunArgs& args, bool reads_states, const Body& body) const {
    for_tiles(piece, kTile, [&](const Piece& part, Buffers& buffers) {
      body(floats_of(opened(part, args, false), part, args, reads_states, buffers));
    });
  }
  // The same, and what the body wrote into buffers is rounded to where it is kept.
  template <class Body>
  void update(const Piece& piece, const RunArgs& args, const Body& body) const {
    for_tiles(piece, needs_buffers(piece.tensor) ? kShortTile : piece.count,
              [&](const Piece& part, Buffers& buffers) {
                const UpdateTile tile = opened(part, args, true);
                const FloatTile floats = floats_of(tile, part, args, true, buffers);
                body(floats);
                close(part, args, tile, floats, buffers);
              });
    if (streams_) hwy::FlushStream();  // waits: not after every tile
  }
  // The same, and look(after, before) at each run of elements, in their order: a tile of their new
  // values, of the masters where there are any, and what those were before the step, as f32.
  template <class Body, class Look>
  void update(const Piece& piece, const RunArgs& args, const Body& body, const Look& look) const {
    alignas(64) float before[kTile];
    for_tiles(piece, kTile, [&](const Piece& part, Buffers& buffers) {
      const UpdateTile tile = opened(part, args, true);
      read_values(tile, before);
      const FloatTile floats = floats_of(tile, part, args, true, buffers);
      body(floats);
      close(part, args, tile, floats, buffers);
      look(behind(part, args), static_cast<const float*>(before));
    });
    if (streams_) hwy::FlushStream();
  }
  // A skipped step: what lies in place stays, the rest is copied.
  void keep(const Piece& piece, const RunArgs& args) const;

 private:
  struct Types {
    DType parameter, gradient;
  };
  struct Buffers {
    alignas(64) float gradient[kTile];
    alignas(64) float value[kTile];
    alignas(64) float state[optim::kMostStates][kTile];
    alignas(64) std::uint32_t words[kTile];
    int stream = -1;  // of `words`; -1: none yet
  };

  template <class Body>
  static void for_tiles(const Piece& piece, std::int64_t most, const Body& body) {
    Buffers buffers;  // not cleared
    for (std::int64_t i = 0; i < piece.count; i += most, buffers.stream = -1)
      body(Piece{piece.tensor, piece.begin + i, std::min(most, piece.count - i)}, buffers);
  }

  bool is_rounded_at_random(int tensor) const {
    return rounds_at_random_ && !layout_.has_master() && types_[tensor].parameter == DType::BF16;
  }
  bool needs_buffers(int tensor) const {
    return types_[tensor].gradient != DType::F32 || types_[tensor].parameter != DType::F32 ||
           layout_.state_format != StateFormat::F32;
  }
  UpdateTile opened(const Piece& part, const RunArgs& args, bool writes) const;
  FloatTile floats_of(const UpdateTile& tile, const Piece& part, const RunArgs& args,
                      bool reads_states, Buffers& buffers) const;
  // The new values, as a tile's `from`.
  UpdateTile behind(const Piece& part, const RunArgs& args) const;
  void open_values(const Piece& part, const RunArgs& args, UpdateTile& tile) const;
  void open_states(const Piece& part, const RunArgs& args, UpdateTile& tile) const;
  void close(const Piece& part, const RunArgs& args, const UpdateTile& tile,
             const FloatTile& floats, Buffers& buffers) const;
  void close_state(int which, const Piece& part, const RunArgs& args, const float* tile,
                   Buffers& buffers) const;
  const std::uint32_t* words(int slot, const Piece& part, const RunArgs& args,
                             Buffers& buffers) const;

  const void* state(int which, const Piece& part, const RunArgs& args) const;
  void* new_state(int which, const Piece& part, const RunArgs& args) const;
  // Of the state's elements from the part's first on.
  scalar::ConstBlocks blocks(int which, const Piece& part, const RunArgs& args) const;
  scalar::Blocks new_blocks(int which, const Piece& part, const RunArgs& args) const;
  // The remainders of a part, which begins at a whole byte of bits.
  scalar::ConstRests rests(const Piece& part, const RunArgs& args) const;
  scalar::Rests new_rests(const Piece& part, const RunArgs& args) const;

  UpdateLayout layout_;
  Ints keys_;
  bool rounds_at_random_;                 // parameters
  std::vector<scalar::BlockForm> forms_;  // of each state
  std::vector<Types> types_;
  std::vector<std::int64_t> sizes_;
  Pieces pieces_;
  bool streams_ = false;  // there are more low copies than caches hold
};

}  // namespace aloft::cpu
