#include "backends/cpu/update/update_sweep.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "backends/cpu/parallel.h"
#include "backends/cpu/update/pieces.h"
#include "backends/cpu/vectors/tiles.h"
#include "ops/update_layout.h"
#include "scalar/split_float.h"

namespace aloft::cpu {
namespace {

using L = UpdateLayout;
using optim::FormulaRecord;

// Some 0.5 MB of operands a chunk: large enough for the prefetchers, small enough to share out.
constexpr std::int64_t kChunk = 16384;
// Weights that the next step would not find in a cache.
constexpr std::int64_t kStreamed = std::int64_t{8} << 20;

L layout_of(const FormulaRecord& formula, const CallSpec& call, bool has_sums) {
  return update_layout(update_attrs(call.attrs), static_cast<int>(formula.states.size()), has_sums);
}

// What the kernels of a formula share: where a piece of a tensor lies, and the numbers of a step.
class Sweep {
 public:
  Sweep(const FormulaRecord& formula, const UpdateVectors& vectors, const CallSpec& call,
        bool has_sums)
      : layout_(layout_of(formula, call, has_sums)),
        attrs_(update_attrs(call.attrs)),
        formula_(formula.bind(call.attrs)),
        vectors_(vectors) {
    for (int i = 0; i < layout_.count; ++i) {
      const TensorType &p = call.in[layout_.parameter(i)], &g = call.in[layout_.gradient(i)];
      sizes_.push_back(p.shape.max_numel());
      types_.push_back({p.dtype, g.dtype});
    }
    pieces_ = Pieces(sizes_, kChunk);
    std::int64_t total = 0;
    for (std::int64_t n : sizes_) total += n;
    streams_ = total > kStreamed;
  }

  static bool applies(const RunArgs& args) {
    return *static_cast<const std::int32_t*>(args.in[L::kFinite]) != 0;
  }

  const UpdateLayout& layout() const { return layout_; }
  const optim::BoundFormula& formula() const { return *formula_; }
  const UpdateVectors& vectors() const { return vectors_; }
  const Pieces& pieces() const { return pieces_; }

  optim::StepNumbers step(const RunArgs& args) const {
    return formula_->numbers({*static_cast<const float*>(args.in[L::kLr]),
                              *static_cast<const std::int64_t*>(args.in[L::kApplied]),
                              attrs_.weight_decay});
  }
  UpdateNumbers numbers(const optim::StepNumbers& step, const RunArgs& args) const {
    UpdateNumbers n;
    n.multiplier = *static_cast<const float*>(args.in[L::kMultiplier]);
    if (attrs_.clip_value > 0) n.limit = static_cast<float>(attrs_.clip_value);
    std::ranges::transform(step.number, n.number, [](double x) { return static_cast<float>(x); });
    std::ranges::copy(step.flag, n.flag);
    return n;
  }
  bool decays(int tensor) const {
    return attrs_.decay[static_cast<std::size_t>(tensor)] != 0 && attrs_.weight_decay != 0;
  }

  // What a run reads, but for the states.
  UpdateRun read(const Piece& piece, const RunArgs& args) const {
    const int i = piece.tensor;
    const auto [parameter, gradient] = types_[i];
    UpdateRun r;
    r.n = piece.count;
    r.gradient_type = gradient;
    r.gradient = at(args.in[layout_.gradient(i)], piece.begin, gradient);
    r.value_type = layout_.master == StateFormat::F32 ? DType::F32 : parameter;
    const int from =
        layout_.master == StateFormat::F32 ? layout_.master_of(i) : layout_.parameter(i);
    r.from = at(args.in[from], piece.begin, r.value_type);
    if (layout_.is_split()) {
      const auto [words, bits] = rests(args, piece);
      r.words = words;
      r.bits = bits;
    }
    return r;
  }
  // The same with what it writes.
  UpdateRun read_and_write(const Piece& piece, const RunArgs& args) const {
    const int i = piece.tensor;
    const DType parameter = types_[i].parameter;
    UpdateRun r = read(piece, args);
    r.streams = streams_;
    r.to = at(args.out[layout_.new_parameter(i)], piece.begin, parameter);
    if (layout_.master == StateFormat::F32) {
      r.low = r.to;
      r.low_type = parameter;
      r.to = at(args.out[layout_.new_master(i)], piece.begin, DType::F32);
    }
    if (layout_.is_split()) {
      const auto [new_words, new_bits] = new_rests(args, piece);
      r.new_words = new_words;
      r.new_bits = new_bits;
    }
    return r;
  }

  // body(run) for the piece, its states as f32: where they lie, or widened tile by tile and, where
  // `out` is given, rounded back into it.
  template <class Body>
  void with_states(UpdateRun run, const Piece& piece, const RunArgs& args, bool writes,
                   const Body& body) const {
    if (layout_.state_format == StateFormat::F32) {
      for (int w = 0; w < layout_.states; ++w) {
        run.state[w] = static_cast<const float*>(state(w, piece, 0, args));
        if (writes) run.new_state[w] = static_cast<float*>(new_state(w, piece, 0, args));
      }
      return body(run);
    }
    float tiles[optim::kMostStates][kTile];
    for (std::int64_t i = 0; i < piece.count; i += kTile) {
      UpdateRun part = part_of(run, i, std::min(kTile, piece.count - i));
      for (int w = 0; w < layout_.states; ++w) {
        widen(DType::BF16, state(w, piece, i, args), tiles[w], part.n);
        part.state[w] = part.new_state[w] = tiles[w];
      }
      body(part);
      for (int w = 0; w < layout_.states && writes; ++w)
        narrow(tiles[w], DType::BF16, new_state(w, piece, i, args), part.n);
    }
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
    if (layout_.is_split()) {
      const scalar::ConstRests from = rests(args, piece);
      const scalar::Rests to = new_rests(args, piece);
      if (from.words != to.words) {
        std::memcpy(to.words, from.words, static_cast<std::size_t>(piece.count) * 2);
        std::memcpy(to.bits, from.bits, static_cast<std::size_t>(piece.count + 7) / 8);
      }
    } else if (layout_.has_master()) {
      copy(layout_.master_of(i), layout_.new_master(i), DType::F32);
    }
    for (int w = 0; w < layout_.states; ++w)
      copy(layout_.state(w, i), layout_.new_state(w, i), layout_.state_type());
  }

 private:
  struct Types {
    DType parameter, gradient;
  };

  const void* state(int which, const Piece& piece, std::int64_t i, const RunArgs& args) const {
    return at(args.in[layout_.state(which, piece.tensor)], piece.begin + i, layout_.state_type());
  }
  void* new_state(int which, const Piece& piece, std::int64_t i, const RunArgs& args) const {
    return at(args.out[layout_.new_state(which, piece.tensor)], piece.begin + i,
              layout_.state_type());
  }

  // Elements [begin, begin + n) of a run; begin is a multiple of 8.
  static UpdateRun part_of(const UpdateRun& run, std::int64_t begin, std::int64_t n) {
    UpdateRun r = run;
    r.n = n;
    r.gradient = at(run.gradient, begin, run.gradient_type);
    r.from = at(run.from, begin, run.value_type);
    if (run.to) r.to = at(run.to, begin, run.value_type);
    if (run.low) r.low = at(run.low, begin, run.low_type);
    if (run.words) r.words += begin, r.bits += begin / 8;
    if (run.new_words) r.new_words += begin, r.new_bits += begin / 8;
    return r;
  }

  // The remainders of a piece. Pieces begin at whole bytes of bits.
  scalar::ConstRests rests(const RunArgs& args, const Piece& piece) const {
    const int i = piece.tensor;
    scalar::ConstRests r(static_cast<const std::uint8_t*>(args.in[layout_.master_of(i)]),
                         sizes_[i]);
    return {r.words + piece.begin, r.bits + piece.begin / 8};
  }
  scalar::Rests new_rests(const RunArgs& args, const Piece& piece) const {
    const int i = piece.tensor;
    scalar::Rests r(static_cast<std::uint8_t*>(args.out[layout_.new_master(i)]), sizes_[i]);
    return {r.words + piece.begin, r.bits + piece.begin / 8};
  }

  UpdateLayout layout_;
  UpdateAttrs attrs_;
  std::unique_ptr<const optim::BoundFormula> formula_;
  UpdateVectors vectors_;
  std::vector<Types> types_;
  std::vector<std::int64_t> sizes_;
  Pieces pieces_;
  bool streams_ = false;
};

class Update : public Prepared {
 public:
  Update(const FormulaRecord& formula, const UpdateVectors& vectors, const CallSpec& call)
      : sweep_(formula, vectors, call, formula.sums > 0), sums_(formula.sums) {}

  void run(const RunArgs& args) const override {
    const bool applies = Sweep::applies(args);
    const optim::StepNumbers step = sweep_.step(args);
    const UpdateNumbers in_fp32 = sweep_.numbers(step, args);
    for_each_chunk(sweep_.pieces().chunks(), [&](std::int64_t chunk) {
      for (const Piece& piece : sweep_.pieces().of(chunk)) {
        if (applies)
          update(piece, args, step, in_fp32);
        else
          sweep_.keep(piece, args);
      }
    });
  }

 private:
  void update(const Piece& piece, const RunArgs& args, const optim::StepNumbers& step,
              const UpdateNumbers& in_fp32) const {
    UpdateNumbers numbers = in_fp32;
    numbers.flag[0] = sweep_.decays(piece.tensor);
    if (sums_ > 0) {
      const auto* all = static_cast<const double*>(args.in[sweep_.layout().sums()]);
      const optim::TensorNumbers own = sweep_.formula().tensor_numbers(
          std::span(all + std::int64_t{piece.tensor} * sums_, static_cast<std::size_t>(sums_)),
          step, numbers.flag[0]);
      std::ranges::transform(own, numbers.tensor, [](double x) { return static_cast<float>(x); });
    }
    sweep_.with_states(sweep_.read_and_write(piece, args), piece, args, true,
                       [&](const UpdateRun& r) { sweep_.vectors().run(r, numbers); });
  }

  Sweep sweep_;
  int sums_;
};

// Pieces are summed by themselves, then in their order: the same bits for any number of threads.
class Sums : public Prepared {
 public:
  Sums(const FormulaRecord& formula, const UpdateVectors& vectors, const CallSpec& call)
      : sweep_(formula, vectors, call, false), sums_(formula.sums) {}

  std::size_t scratch_bytes() const override {
    return sweep_.pieces().all().size() * static_cast<std::size_t>(sums_) * sizeof(double);
  }
  void run(const RunArgs& args) const override {
    auto* out = static_cast<double*>(args.out[0]);
    std::fill_n(out, std::int64_t{sweep_.layout().count} * sums_, 0.0);
    if (!Sweep::applies(args)) return;
    auto* partial = static_cast<double*>(args.scratch);
    const Pieces& pieces = sweep_.pieces();
    const UpdateNumbers step = sweep_.numbers(sweep_.step(args), args);
    for_each_chunk(pieces.chunks(), [&](std::int64_t chunk) {
      for (std::size_t i = pieces.first(chunk); i < pieces.first(chunk + 1); ++i)
        sum(pieces.all()[i], args, step, partial + i * static_cast<std::size_t>(sums_));
    });
    for (std::size_t i = 0; i < pieces.all().size(); ++i)
      for (int k = 0; k < sums_; ++k)
        out[std::int64_t{pieces.all()[i].tensor} * sums_ + k] +=
            partial[i * static_cast<std::size_t>(sums_) + static_cast<std::size_t>(k)];
  }

 private:
  void sum(const Piece& piece, const RunArgs& args, const UpdateNumbers& step, double* to) const {
    UpdateNumbers numbers = step;
    numbers.flag[0] = sweep_.decays(piece.tensor);
    std::fill_n(to, sums_, 0.0);
    sweep_.with_states(sweep_.read(piece, args), piece, args, false,
                       [&](const UpdateRun& r) { sweep_.vectors().add_squares(r, numbers, to); });
  }

  Sweep sweep_;
  int sums_;
};

// The numbers of a formula of tensors.
class Numbers : public Prepared {
 public:
  Numbers(const FormulaRecord& formula, const CallSpec& call)
      : formula_(formula.bind(call.attrs)),
        weight_decay_(update_attrs(call.attrs).weight_decay),
        count_(formula.numbers_of_step.size()) {}
  void run(const RunArgs& args) const override {
    const optim::StepNumbers step =
        formula_->numbers({*static_cast<const float*>(args.in[0]),
                           *static_cast<const std::int64_t*>(args.in[1]), weight_decay_});
    std::transform(step.number.begin(), step.number.begin() + static_cast<std::ptrdiff_t>(count_),
                   static_cast<float*>(args.out[0]),
                   [](double x) { return static_cast<float>(x); });
  }

 private:
  std::unique_ptr<const optim::BoundFormula> formula_;
  double weight_decay_;
  std::size_t count_;
};

}  // namespace

std::optional<Refusal> accepts_update(const CallSpec& call) {
  const UpdateLayout layout = update_layout(update_attrs(call.attrs), 0, false);
  for (int i = 0; layout.is_split() && i < layout.count; ++i)
    if (call.in[layout.parameter(i)].dtype != DType::BF16)
      return Refusal{"split masters stand beside bf16 parameters"};
  return std::nullopt;
}

std::unique_ptr<Prepared> prepare_update(const FormulaRecord& formula, const UpdateVectors& vectors,
                                         const CallSpec& call) {
  return std::make_unique<Update>(formula, vectors, call);
}

std::unique_ptr<Prepared> prepare_sums(const FormulaRecord& formula, const UpdateVectors& vectors,
                                       const CallSpec& call) {
  return std::make_unique<Sums>(formula, vectors, call);
}

std::unique_ptr<Prepared> prepare_numbers(const FormulaRecord& formula, const CallSpec& call) {
  return std::make_unique<Numbers>(formula, call);
}

std::vector<std::pair<int, int>> update_pairs(const FormulaRecord& formula, const CallSpec& call) {
  const UpdateLayout l = layout_of(formula, call, formula.sums > 0);
  std::vector<std::pair<int, int>> pairs;
  for (int i = 0; i < l.count; ++i) {
    pairs.emplace_back(l.parameter(i), l.new_parameter(i));
    if (l.has_master()) pairs.emplace_back(l.master_of(i), l.new_master(i));
    for (int w = 0; w < l.states; ++w) pairs.emplace_back(l.state(w, i), l.new_state(w, i));
  }
  return pairs;
}

}  // namespace aloft::cpu
