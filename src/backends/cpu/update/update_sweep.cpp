#include "backends/cpu/update/update_sweep.h"

#include <cstring>

#include "backends/cpu/parallel.h"
#include "backends/cpu/update/pieces.h"
#include "backends/cpu/vectors/tiles.h"
#include "scalar/split_float.h"

namespace aloft::cpu {
namespace {

// Some 0.5 MB of operands a chunk: large enough for the prefetchers, small enough to share out.
constexpr std::int64_t kChunk = 16384;
// Weights that the next step would not find in a cache.
constexpr std::int64_t kStreamed = std::int64_t{8} << 20;

class Update : public Prepared {
 public:
  Update(const CallSpec& call, const UpdateLayout& layout, std::vector<std::int64_t> decay,
         std::unique_ptr<UpdateCode> code)
      : layout_(layout), decay_(std::move(decay)), code_(std::move(code)) {
    std::vector<std::int64_t> sizes;
    for (int i = 0; i < layout_.count; ++i) {
      const TensorType &p = call.in[layout_.parameter(i)], &g = call.in[layout_.gradient(i)];
      sizes.push_back(p.shape.max_numel());
      types_.push_back({p.dtype, g.dtype});
    }
    sizes_ = sizes;
    pieces_ = Pieces(sizes, kChunk);
    std::int64_t total = 0;
    for (std::int64_t n : sizes) total += n;
    streams_ = total > kStreamed;
  }

  void run(const RunArgs& args) const override {
    using L = UpdateLayout;
    const bool applies = *static_cast<const std::int32_t*>(args.in[L::kFinite]) != 0;
    UpdateNumbers numbers = code_->numbers(*static_cast<const float*>(args.in[L::kLr]),
                                           *static_cast<const std::int64_t*>(args.in[L::kApplied]));
    numbers.multiplier = *static_cast<const float*>(args.in[L::kMultiplier]);
    for_each_chunk(pieces_.chunks(), [&](std::int64_t chunk) {
      for (const Piece& piece : pieces_.of(chunk)) {
        if (applies)
          code_->run(run_of(piece, args), numbers);
        else
          keep(piece, args);
      }
    });
  }

 private:
  struct Types {
    DType parameter, gradient;
  };

  UpdateRun run_of(const Piece& piece, const RunArgs& args) const {
    const int i = piece.tensor;
    const auto [parameter, gradient] = types_[i];
    UpdateRun r;
    r.n = piece.count;
    r.gradient_type = gradient;
    r.gradient = at(args.in[layout_.gradient(i)], piece.begin, gradient);
    r.decays = decay_[i] != 0;
    r.streams = streams_;
    void* p = at(args.out[layout_.new_parameter(i)], piece.begin, parameter);
    if (layout_.is_split) {
      r.value_type = parameter;
      r.from = at(args.in[layout_.parameter(i)], piece.begin, parameter);
      r.to = p;
      const auto [words, bits] = rests(args, piece);
      r.words = words;
      r.bits = bits;
      const auto [new_words, new_bits] = new_rests(args, piece);
      r.new_words = new_words;
      r.new_bits = new_bits;
    } else if (layout_.has_master) {
      r.value_type = DType::F32;
      r.from = at(args.in[layout_.master(i)], piece.begin, DType::F32);
      r.to = at(args.out[layout_.new_master(i)], piece.begin, DType::F32);
      r.low = p;
      r.low_type = parameter;
    } else {
      r.value_type = parameter;
      r.from = at(args.in[layout_.parameter(i)], piece.begin, parameter);
      r.to = p;
    }
    for (int w = 0; w < layout_.moments; ++w) {
      r.moment[w] = static_cast<const float*>(args.in[layout_.moment(w, i)]) + piece.begin;
      r.new_moment[w] = static_cast<float*>(args.out[layout_.new_moment(w, i)]) + piece.begin;
    }
    return r;
  }

  // The remainders of a piece. Pieces begin at whole bytes of bits.
  scalar::ConstRests rests(const RunArgs& args, const Piece& piece) const {
    const int i = piece.tensor;
    scalar::ConstRests r(static_cast<const std::uint8_t*>(args.in[layout_.master(i)]), sizes_[i]);
    return {r.words + piece.begin, r.bits + piece.begin / 8};
  }
  scalar::Rests new_rests(const RunArgs& args, const Piece& piece) const {
    const int i = piece.tensor;
    scalar::Rests r(static_cast<std::uint8_t*>(args.out[layout_.new_master(i)]), sizes_[i]);
    return {r.words + piece.begin, r.bits + piece.begin / 8};
  }

  // A skipped step: what lies in place stays, the rest is copied.
  void keep(const Piece& piece, const RunArgs& args) const {
    const int i = piece.tensor;
    const auto copy = [&](int in, int out, DType type) {
      const void* from = at(args.in[in], piece.begin, type);
      void* to = at(args.out[out], piece.begin, type);
      if (from != to) std::memcpy(to, from, static_cast<std::size_t>(piece.count) * size_of(type));
    };
    copy(layout_.parameter(i), layout_.new_parameter(i), types_[i].parameter);
    if (layout_.is_split) {
      const scalar::ConstRests from = rests(args, piece);
      const scalar::Rests to = new_rests(args, piece);
      if (from.words != to.words) {
        std::memcpy(to.words, from.words, static_cast<std::size_t>(piece.count) * 2);
        std::memcpy(to.bits, from.bits, static_cast<std::size_t>(piece.count + 7) / 8);
      }
    } else if (layout_.has_master) {
      copy(layout_.master(i), layout_.new_master(i), DType::F32);
    }
    for (int w = 0; w < layout_.moments; ++w)
      copy(layout_.moment(w, i), layout_.new_moment(w, i), DType::F32);
  }

  UpdateLayout layout_;
  std::vector<std::int64_t> decay_;
  std::unique_ptr<UpdateCode> code_;
  std::vector<Types> types_;
  std::vector<std::int64_t> sizes_;
  Pieces pieces_;
  bool streams_ = false;
};

}  // namespace

std::optional<Refusal> accepts_update(const CallSpec& call, const UpdateLayout& layout) {
  for (int i = 0; layout.is_split && i < layout.count; ++i)
    if (call.in[layout.parameter(i)].dtype != DType::BF16)
      return Refusal{"split masters stand beside bf16 parameters"};
  return std::nullopt;
}

std::unique_ptr<Prepared> prepare_update(const CallSpec& call, const UpdateLayout& layout,
                                         std::vector<std::int64_t> decay,
                                         std::unique_ptr<UpdateCode> code) {
  return std::make_unique<Update>(call, layout, std::move(decay), std::move(code));
}

std::vector<std::pair<int, int>> update_pairs(const UpdateLayout& l) {
  std::vector<std::pair<int, int>> pairs;
  for (int i = 0; i < l.count; ++i) {
    pairs.emplace_back(l.parameter(i), l.new_parameter(i));
    if (l.has_master) pairs.emplace_back(l.master(i), l.new_master(i));
    for (int w = 0; w < l.moments; ++w) pairs.emplace_back(l.moment(w, i), l.new_moment(w, i));
  }
  return pairs;
}

}  // namespace aloft::cpu
