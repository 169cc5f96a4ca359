#include "backends/cpu/update/update_memory.h"

#include <cstring>

#include "backends/cpu/elements/random_words.h"
#include "backends/cpu/update/rounded_tiles.h"
#include "scalar/stochastic_rounding.h"

namespace aloft::cpu {
namespace {

// Some 0.5 MB of operands a chunk: large enough for the prefetchers, small enough to share out.
constexpr std::int64_t kChunk = 16384;
// Weights that the next step would not find in a cache.
constexpr std::int64_t kStreamed = std::int64_t{8} << 20;

}  // namespace

UpdateMemory::UpdateMemory(const optim::FormulaRecord& formula, const UpdateAttrs& attrs,
                           const UpdateLayout& layout, const CallSpec& call)
    : layout_(layout),
      keys_(attrs.keys),
      rounds_at_random_(attrs.rounding == name_of(Rounding::Stochastic)) {
  for (std::size_t k = 0; k < formula.states.size(); ++k)
    forms_.push_back({!formula.is_not_negative(k)});
  std::int64_t total = 0;
  for (int i = 0; i < layout_.count; ++i) {
    const TensorType &p = call.in[layout_.parameter(i)], &g = call.in[layout_.gradient(i)];
    sizes_.push_back(p.shape.max_numel());
    types_.push_back({p.dtype, g.dtype});
    total += sizes_.back();
  }
  pieces_ = Pieces(sizes_, kChunk);
  streams_ = total > kStreamed && layout_.master == StateFormat::F32;
}

UpdateTile UpdateMemory::opened(const Piece& part, const RunArgs& args, bool writes,
                                Buffers& buffers) const {
  const int i = part.tensor;
  const auto [parameter, gradient] = types_[i];
  const bool has_own_master = layout_.master == StateFormat::F32;
  UpdateTile tile;
  tile.n = part.count;
  tile.gradient_type = gradient;
  tile.gradient = at(args.in[layout_.gradient(i)], part.begin, gradient);
  tile.from_type = has_own_master ? DType::F32 : parameter;
  const int from = has_own_master ? layout_.master_of(i) : layout_.parameter(i);
  tile.from = at(args.in[from], part.begin, tile.from_type);
  if (layout_.is_split()) {
    const scalar::ConstRests old = rests(part, args);
    tile.words = old.words, tile.bits = old.bits;
  }
  if (writes) open_values(part, args, buffers, tile);
  open_states(part, args, writes, buffers, tile);
  return tile;
}

UpdateTile UpdateMemory::behind(const Piece& part, const RunArgs& args) const {
  const int i = part.tensor;
  const bool has_own_master = layout_.master == StateFormat::F32;
  UpdateTile tile;
  tile.n = part.count;
  tile.from_type = has_own_master ? DType::F32 : types_[i].parameter;
  const int from = has_own_master ? layout_.new_master(i) : layout_.new_parameter(i);
  tile.from = at(static_cast<const void*>(args.out[from]), part.begin, tile.from_type);
  if (layout_.is_split()) {
    const scalar::Rests fresh = new_rests(part, args);
    tile.words = fresh.words, tile.bits = fresh.bits;
  }
  return tile;
}

// Where the new values go.
void UpdateMemory::open_values(const Piece& part, const RunArgs& args, Buffers& buffers,
                               UpdateTile& tile) const {
  const int i = part.tensor;
  const DType parameter = types_[i].parameter;
  void* own = at(args.out[layout_.new_parameter(i)], part.begin, parameter);
  tile.to = own, tile.to_type = parameter;
  if (layout_.is_split()) {
    const scalar::Rests fresh = new_rests(part, args);
    tile.new_words = fresh.words, tile.new_bits = fresh.bits;
  } else if (layout_.has_master()) {
    tile.to = static_cast<float*>(args.out[layout_.new_master(i)]) + part.begin;
    tile.to_type = DType::F32;
    tile.low = own, tile.low_type = parameter;
    tile.streams = streams_;
  } else if (is_rounded_at_random(i)) {
    tile.to = buffers.value, tile.to_type = DType::F32;
  }
}

void UpdateMemory::open_states(const Piece& part, const RunArgs& args, bool writes,
                               Buffers& buffers, UpdateTile& tile) const {
  for (int w = 0; w < layout_.element_states(); ++w) {
    tile.new_state[w] = buffers.state[w];
    if (layout_.state_format == StateFormat::Block8) {
      const scalar::ConstBlocks kept = blocks(w, part, args);
      tile.state[w] = kept.codes, tile.scales[w] = kept.scales;
      tile.form[w] = forms_[static_cast<std::size_t>(w)];
      continue;
    }
    tile.state[w] = state(w, part, args);
    tile.state_type = layout_.state_type();
    if (writes && layout_.state_format == StateFormat::F32)
      tile.new_state[w] = static_cast<float*>(new_state(w, part, args));
  }
}

// What the tile has in buffers.
void UpdateMemory::close(const Piece& part, const RunArgs& args, const UpdateTile& tile,
                         Buffers& buffers) const {
  const int i = part.tensor;
  if (is_rounded_at_random(i)) {
    void* own = at(args.out[layout_.new_parameter(i)], part.begin, DType::BF16);
    round_tile_at_random(buffers.value, words(scalar::kParameterSlot, part, args, buffers),
                         scalar::kParameterSlot, static_cast<scalar::Bf16*>(own), part.count);
  }
  for (int w = 0; w < layout_.element_states() && layout_.state_format != StateFormat::F32; ++w)
    close_state(w, part, args, tile.new_state[w], buffers);
}

void UpdateMemory::close_state(int which, const Piece& part, const RunArgs& args, const float* tile,
                               Buffers& buffers) const {
  const std::uint32_t* random = words(which, part, args, buffers);
  if (layout_.state_format == StateFormat::Block8)
    write_blocks(tile, random, which, forms_[which], new_blocks(which, part, args), part.count);
  else
    round_tile_at_random(tile, random, which,
                         static_cast<scalar::Bf16*>(new_state(which, part, args)), part.count);
}

// What two slots share is drawn once.
const std::uint32_t* UpdateMemory::words(int slot, const Piece& part, const RunArgs& args,
                                         Buffers& buffers) const {
  if (buffers.stream == slot / 2) return buffers.words;
  buffers.stream = slot / 2;
  const auto tensor = static_cast<std::uint64_t>(keys_[static_cast<std::size_t>(part.tensor)]);
  const auto identity = static_cast<std::int64_t>(scalar::rounding_stream(tensor, slot));
  random_words(random_key(args.in[layout_.random()], identity),
               static_cast<std::uint64_t>(part.begin), part.count, buffers.words);
  return buffers.words;
}

void UpdateMemory::keep(const Piece& piece, const RunArgs& args) const {
  const int i = piece.tensor;
  const auto copy = [&](int in, int out, DType type) {
    const void* from = at(args.in[in], piece.begin, type);
    void* to = at(args.out[out], piece.begin, type);
    if (from != to) std::memcpy(to, from, static_cast<std::size_t>(piece.count) * size_of(type));
  };
  copy(layout_.parameter(i), layout_.new_parameter(i), types_[i].parameter);
  if (layout_.is_split()) {
    const scalar::ConstRests from = rests(piece, args);
    const scalar::Rests to = new_rests(piece, args);
    if (from.words != to.words) {
      std::memcpy(to.words, from.words, static_cast<std::size_t>(piece.count) * 2);
      std::memcpy(to.bits, from.bits, static_cast<std::size_t>(piece.count + 7) / 8);
    }
  } else if (layout_.has_master()) {
    copy(layout_.master_of(i), layout_.new_master(i), DType::F32);
  }
  for (int w = 0; w < layout_.element_states(); ++w) {
    if (layout_.state_format != StateFormat::Block8) {
      copy(layout_.state(w, i), layout_.new_state(w, i), layout_.state_type());
      continue;
    }
    const scalar::ConstBlocks from = blocks(w, piece, args);
    const scalar::Blocks to = new_blocks(w, piece, args);
    if (from.codes == to.codes) continue;
    std::copy_n(from.scales, scalar::block_count(piece.count), to.scales);
    std::copy_n(from.codes, piece.count, to.codes);
  }
}

const void* UpdateMemory::state(int which, const Piece& part, const RunArgs& args) const {
  return at(args.in[layout_.state(which, part.tensor)], part.begin, layout_.state_type());
}
void* UpdateMemory::new_state(int which, const Piece& part, const RunArgs& args) const {
  return at(args.out[layout_.new_state(which, part.tensor)], part.begin, layout_.state_type());
}

scalar::ConstBlocks UpdateMemory::blocks(int which, const Piece& part, const RunArgs& args) const {
  const int i = part.tensor;
  const auto* memory = static_cast<const std::uint8_t*>(args.in[layout_.state(which, i)]);
  return scalar::ConstBlocks(memory, sizes_[i]).from(part.begin);
}
scalar::Blocks UpdateMemory::new_blocks(int which, const Piece& part, const RunArgs& args) const {
  const int i = part.tensor;
  auto* memory = static_cast<std::uint8_t*>(args.out[layout_.new_state(which, i)]);
  return scalar::Blocks(memory, sizes_[i]).from(part.begin);
}

scalar::ConstRests UpdateMemory::rests(const Piece& part, const RunArgs& args) const {
  const int i = part.tensor;
  const scalar::ConstRests r(static_cast<const std::uint8_t*>(args.in[layout_.master_of(i)]),
                             sizes_[i]);
  return {r.words + part.begin, r.bits + part.begin / 8};
}
scalar::Rests UpdateMemory::new_rests(const Piece& part, const RunArgs& args) const {
  const int i = part.tensor;
  const scalar::Rests r(static_cast<std::uint8_t*>(args.out[layout_.new_master(i)]), sizes_[i]);
  return {r.words + part.begin, r.bits + part.begin / 8};
}

}  // namespace aloft::cpu
