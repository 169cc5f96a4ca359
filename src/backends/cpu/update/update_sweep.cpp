#include "backends/cpu/update/update_sweep.h"

#include <algorithm>
#include <memory>

#include "backends/cpu/parallel.h"
#include "backends/cpu/update/piece_statistics.h"
#include "backends/cpu/update/update_memory.h"
#include "ops/update_layout.h"

namespace aloft::cpu {
namespace {

using L = UpdateLayout;
using optim::FormulaRecord;

// What the kernels of a formula share: where its operands lie, and the numbers of a step.
class Sweep {
 public:
  Sweep(const FormulaRecord& formula, const UpdateVectors& vectors, const CallSpec& call,
        bool is_sums)
      : attrs_(update_attrs(call.attrs)),
        memory_(formula, attrs_,
                is_sums ? sums_layout(attrs_, formula) : update_layout(attrs_, formula), call),
        formula_(formula.bind(call.attrs)),
        vectors_(vectors) {}

  static bool applies(const RunArgs& args) {
    return *static_cast<const std::int32_t*>(args.in[L::kFinite]) != 0;
  }

  const UpdateMemory& memory() const { return memory_; }
  const UpdateLayout& layout() const { return memory_.layout(); }
  const optim::BoundFormula& formula() const { return *formula_; }
  const UpdateVectors& vectors() const { return vectors_; }
  const Pieces& pieces() const { return memory_.pieces(); }

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

 private:
  UpdateAttrs attrs_;
  UpdateMemory memory_;
  std::unique_ptr<const optim::BoundFormula> formula_;
  UpdateVectors vectors_;
};

class Update : public Prepared {
 public:
  Update(const FormulaRecord& formula, const UpdateVectors& vectors, const CallSpec& call)
      : sweep_(formula, vectors, call, false), sums_(formula.sums) {}

  void run(const RunArgs& args) const override {
    const bool applies = Sweep::applies(args);
    const optim::StepNumbers step = sweep_.step(args);
    const UpdateNumbers in_fp32 = sweep_.numbers(step, args);
    const Pieces& pieces = sweep_.pieces();
    auto* seen =
        sweep_.layout().has_statistics ? static_cast<PieceStatistics*>(args.scratch) : nullptr;
    // Before any piece: a tensor's states may be overwritten by the new ones.
    if (applies)
      take_tensors(args, step);
    else
      keep_tensors(args);
    for_each_chunk(pieces.chunks(), [&](std::int64_t chunk) {
      for (std::size_t i = pieces.first(chunk); i < pieces.first(chunk + 1); ++i) {
        if (seen) seen[i] = {};
        if (applies)
          update(pieces.all()[i], args, in_fp32, seen ? seen + i : nullptr);
        else
          keep(pieces.all()[i], args, seen ? seen + i : nullptr);
      }
    });
    if (seen) put_statistics(seen, args);
  }

  std::size_t scratch_bytes() const override {
    return statistics_bytes() +
           (sums_ > 0 ? static_cast<std::size_t>(sweep_.layout().count) * sizeof(OfTensor) : 0);
  }

 private:
  using OfTensor = float[optim::kMostNumbers];

  std::size_t statistics_bytes() const {
    return sweep_.layout().has_statistics ? sweep_.pieces().all().size() * sizeof(PieceStatistics)
                                          : 0;
  }
  // Of each tensor what follows from its sums, behind the pieces' statistics.
  OfTensor* of_tensors(const RunArgs& args) const {
    return reinterpret_cast<OfTensor*>(static_cast<std::byte*>(args.scratch) + statistics_bytes());
  }

  void take_tensors(const RunArgs& args, const optim::StepNumbers& step) const {
    if (sums_ == 0) return;
    const L& l = sweep_.layout();
    const auto* all = static_cast<const double*>(args.in[l.sums()]);
    for (int i = 0; i < l.count; ++i) {
      optim::TensorStates kept = {};
      for (int w = l.element_states(), k = 0; w < l.states; ++w, ++k)
        kept[k] = *static_cast<const float*>(args.in[l.state(w, i)]);
      const optim::TensorNumbers own = sweep_.formula().tensor_numbers(
          std::span(all + std::int64_t{i} * sums_, static_cast<std::size_t>(sums_)), step,
          sweep_.decays(i), kept);
      std::ranges::transform(own, of_tensors(args)[i],
                             [](double x) { return static_cast<float>(x); });
      for (int w = l.element_states(), k = 0; w < l.states; ++w, ++k)
        *static_cast<float*>(args.out[l.new_state(w, i)]) = static_cast<float>(kept[k]);
    }
  }
  void keep_tensors(const RunArgs& args) const {
    const L& l = sweep_.layout();
    for (int w = l.element_states(); w < l.states; ++w)
      for (int i = 0; i < l.count; ++i)
        *static_cast<float*>(args.out[l.new_state(w, i)]) =
            *static_cast<const float*>(args.in[l.state(w, i)]);
  }

  void update(const Piece& piece, const RunArgs& args, const UpdateNumbers& in_fp32,
              PieceStatistics* seen) const {
    UpdateNumbers numbers = in_fp32;
    numbers.flag[0] = sweep_.decays(piece.tensor);
    if (sums_ > 0) std::ranges::copy(of_tensors(args)[piece.tensor], numbers.tensor);
    const auto body = [&](const UpdateTile& tile) { sweep_.vectors().run(tile, numbers); };
    if (!seen) return sweep_.memory().update(piece, args, body);
    StatisticsInLanes lanes;
    sweep_.memory().update(piece, args, body, [&](const UpdateTile& after, const float* before) {
      add_changes(after, before, lanes);
    });
    *seen = together(lanes);
  }

  // Nothing is added to any element.
  void keep(const Piece& piece, const RunArgs& args, PieceStatistics* seen) const {
    sweep_.memory().keep(piece, args);
    if (!seen) return;
    seen->max = seen->min = 0;
    seen->zeros = piece.count;
  }

  // The pieces of a tensor in their order: the same bits for any number of threads.
  void put_statistics(const PieceStatistics* seen, const RunArgs& args) const {
    const std::vector<Piece>& pieces = sweep_.pieces().all();
    std::size_t next = 0;
    for (int i = 0; i < sweep_.layout().count; ++i) {
      PieceStatistics all;
      std::int64_t elements = 0;
      for (; next < pieces.size() && pieces[next].tensor == i; ++next) {
        add(all, seen[next]);
        elements += pieces[next].count;
      }
      numbers_of(all, elements).put(static_cast<double*>(args.out[sweep_.layout().statistics(i)]));
    }
  }

  Sweep sweep_;
  int sums_;
};

// Pieces are summed by themselves, then in their order: the same bits for any number of threads.
class Sums : public Prepared {
 public:
  Sums(const FormulaRecord& formula, const UpdateVectors& vectors, const CallSpec& call)
      : sweep_(formula, vectors, call, true), sums_(formula.sums) {}

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
    sweep_.memory().read(piece, args, [&](const UpdateTile& tile) {
      sweep_.vectors().add_squares(tile, numbers, to);
    });
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
  const UpdateAttrs attrs = update_attrs(call.attrs);
  if (attrs.master != name_of(StateFormat::Split)) return std::nullopt;
  for (int i = 0; i < static_cast<int>(attrs.count); ++i)
    if (call.in[static_cast<std::size_t>(L::kFirst + i)].dtype != DType::BF16)
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
  const UpdateLayout l = update_layout(update_attrs(call.attrs), formula);
  std::vector<std::pair<int, int>> pairs;
  for (int i = 0; i < l.count; ++i) {
    pairs.emplace_back(l.parameter(i), l.new_parameter(i));
    if (l.has_master()) pairs.emplace_back(l.master_of(i), l.new_master(i));
    for (int w = 0; w < l.states; ++w) pairs.emplace_back(l.state(w, i), l.new_state(w, i));
  }
  return pairs;
}

}  // namespace aloft::cpu
