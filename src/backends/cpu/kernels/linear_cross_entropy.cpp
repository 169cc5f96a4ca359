// The chunked head: linear_cross_entropy, its gradient and the sweep that does both. A chunk of
// rows' logits, in x's type, is the only thing as wide as the classes; its gradient overwrites it,
// row by row while a row is in the caches.
// The weight's gradient is written at once where one chunk holds all rows, else summed over the
// chunks in fp32 and rounded once.
#include "ops/linear_cross_entropy.h"

#include <algorithm>

#include "backends/cpu/carve.h"
#include "backends/cpu/matmul/matmul_call.h"
#include "backends/cpu/matmul/matmul_grid.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/rounding.h"
#include "backends/cpu/rows/cross_entropy_loss.h"
#include "backends/cpu/vectors/tiles.h"
#include "runtime/kernel.h"

namespace aloft::cpu {
namespace {

// Logits of a chunk, at most. Fewer, larger chunks read the weight less often, and one needs no
// sums beside its gradient (docs/decisions/0016-chunks-of-the-head.md).
constexpr std::int64_t kChunkBytes = std::int64_t{128} << 20;
// Rows of one of several: as deep as a product sums up in one pass.
constexpr std::int64_t kChunkRows = 1024;

std::optional<Refusal> accepts(const CallSpec& call) {
  if (!has_tiles(call.in[0].dtype)) return Refusal{"f64 is not supported"};
  for (std::size_t i = 3; i < call.in.size(); ++i)
    if (call.in[i].dtype != DType::F32) return Refusal{"statistics that are not f32"};
  return std::nullopt;
}

std::optional<Refusal> accepts_form(const CallSpec& call) {
  if (auto refusal = refuse_form(call)) return refusal;
  return accepts(call);
}

// Where the pieces of scratch lie.
struct Scratch {
  void *logits, *grid;
  double* losses;
  float* dweight;
};

class Head : public Prepared {
 public:
  enum class Does { Loss, Grad, Sweep };

  Head(const CallSpec& call, Does does)
      : does_(does),
        type_(call.in[0].dtype),
        rows_(extent_of(call.in[2].shape.numel(), call)),
        most_(call.in[2].shape.max_numel()),
        classes_(call.in[1].shape[0].max()),
        width_(call.in[1].shape[1].max()),
        loss_(from_attrs<CrossEntropyAttrs>(call.attrs), type_, call.in[2].dtype, classes_) {
    chunk_ = rows_of_chunk();
    make_grids(call.threads, call.form);
  }

  std::size_t scratch_bytes() const override {
    Carve carve(nullptr);
    take(carve);
    return carve.used();
  }

  // The weight's gradient is a sum over chunks.
  bool is_cut_by_bound() const override { return does_ != Does::Loss && chunk_ < most_; }

  void run(const RunArgs& args) const override {
    Carve carve(args.scratch);
    const Scratch s = take(carve);
    const std::int64_t rows = rows_.at(args.symbols);
    const double divisor = loss_.divisor(args.in[2], rows);
    for (std::int64_t first = 0; first == 0 || first < rows; first += chunk_) {
      const std::int64_t n = std::min(chunk_, rows - first);
      logits_->run({row_at(args.in[0], first, width_), args.in[1], nullptr, s.logits, s.grid},
                   {1, n, width_});
      each_row(args, s, first, n, divisor);
      if (does_ != Does::Loss) through_products(args, s, first, n);
    }
    if (does_ != Does::Grad) {
      double sum = 0;
      for (std::int64_t row = 0; row < rows; ++row) sum += s.losses[row];
      *static_cast<float*>(args.out[0]) = static_cast<float>(sum / divisor);
    }
    if (does_ != Does::Loss && sums_apart()) round_dweight(args, s);
  }

 private:
  void make_grids(int threads, ProductForm form) {
    MatmulSpec spec;
    spec.a = spec.b = spec.c = type_;
    spec.threads = threads;
    spec.form = form;
    spec.m = chunk_, spec.n = classes_, spec.k = width_;
    spec.transpose_b = true;
    logits_ = std::make_unique<MatmulGrid>(spec);
    if (does_ == Does::Loss) return;
    spec.transpose_b = false;
    spec.n = width_, spec.k = classes_;
    dx_ = std::make_unique<MatmulGrid>(spec);
    spec.transpose_a = true;
    spec.m = classes_, spec.k = chunk_;
    spec.k_varies = true;
    spec.c = sums_apart() ? DType::F32 : type_;
    dweight_ = std::make_unique<MatmulGrid>(spec);
    if (chunk_ >= most_) return;
    spec.accumulate = true;
    more_dweight_ = std::make_unique<MatmulGrid>(spec);
  }

  std::int64_t rows_of_chunk() const {
    const std::int64_t row = classes_ * static_cast<std::int64_t>(size_of(type_));
    const std::int64_t all = std::max<std::int64_t>(1, most_), fit = kChunkBytes / row;
    if (fit >= all) return all;
    // Several chunks would take their sums besides.
    const bool sums = does_ != Does::Loss && type_ != DType::F32;
    const std::int64_t beside =
        sums ? classes_ * width_ * static_cast<std::int64_t>(sizeof(float)) : 0;
    if (all <= kChunkRows && all * row <= kChunkBytes + beside) return all;
    const std::int64_t most = std::clamp(fit / 32 * 32, std::int64_t{64}, kChunkRows);
    return std::min(all, even_part(all, most, 32));
  }

  // The weight's gradient does not come out in its own type at once.
  bool sums_apart() const { return chunk_ < most_ && type_ != DType::F32; }

  Scratch take(Carve& carve) const {
    Scratch s{};
    s.logits = carve.take<char>(chunk_ * classes_ * static_cast<std::int64_t>(size_of(type_)));
    s.losses = carve.take<double>(does_ == Does::Grad ? 0 : most_);
    const bool sums = does_ != Does::Loss && sums_apart();
    s.dweight = carve.take<float>(sums ? classes_ * width_ : 0);
    std::size_t grid = 0;
    for (const MatmulGrid* g : {logits_.get(), dx_.get(), dweight_.get(), more_dweight_.get()})
      if (g) grid = std::max(grid, g->scratch_bytes());
    s.grid = carve.take<char>(static_cast<std::int64_t>(grid));
    return s;
  }

  void* row_at(void* p, std::int64_t row, std::int64_t columns) const {
    return at(p, row * columns, type_);
  }
  const void* row_at(const void* p, std::int64_t row, std::int64_t columns) const {
    return at(p, row * columns, type_);
  }
  // Losses of the rows of a chunk, and the logits' gradient in the logits' place.
  void each_row(const RunArgs& args, const Scratch& s, std::int64_t first, std::int64_t n,
                double divisor) const {
    const double dloss = does_ == Does::Loss ? 0 : *static_cast<const float*>(args.in[3]);
    const auto scale = static_cast<float>(dloss / divisor);
    parallel_for(n, 2 * classes_, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        void* logits = row_at(s.logits, i, classes_);
        const auto row = loss_.row(logits, args.in[2], first + i);
        if (does_ != Does::Grad) s.losses[first + i] = loss_.loss(row);
        if (does_ != Does::Loss) loss_.gradient(row, scale, logits);
      }
    });
  }

  void through_products(const RunArgs& args, const Scratch& s, std::int64_t first,
                        std::int64_t n) const {
    const bool sweep = does_ == Does::Sweep;
    void* dx = row_at(args.out[sweep ? 1 : 0], first, width_);
    dx_->run({s.logits, args.in[1], nullptr, dx, s.grid}, {1, n, classes_});
    void* dweight = sums_apart() ? s.dweight : args.out[sweep ? 2 : 1];
    (first == 0 ? dweight_ : more_dweight_)
        ->run({s.logits, row_at(args.in[0], first, width_), nullptr, dweight, s.grid},
              {1, classes_, n});
  }

  void round_dweight(const RunArgs& args, const Scratch& s) const {
    void* out = args.out[does_ == Does::Sweep ? 2 : 1];
    parallel_for(classes_ * width_, 1, [&](std::int64_t begin, std::int64_t end) {
      narrow(s.dweight + begin, type_, at(out, begin, type_), end - begin);
    });
  }

  Does does_;
  DType type_;
  Extent rows_;
  std::int64_t most_, classes_, width_, chunk_ = 1;
  CrossEntropyLoss loss_;
  std::unique_ptr<MatmulGrid> logits_, dx_, dweight_, more_dweight_;
};

template <Head::Does kDoes>
std::unique_ptr<Prepared> prepare(const CallSpec& call) {
  return std::make_unique<Head>(call, kDoes);
}

}  // namespace

std::vector<Kernel> linear_cross_entropy_kernels() {
  using Does = Head::Does;
  std::vector<Kernel> kernels;
  const auto add = [&](std::string_view split, std::string_view plain, const char* op, auto make) {
    kernels.push_back(
        {.name = split, .op = op, .accepts = accepts_form, .prepare = make, .forms = kFormsOfF32});
    kernels.push_back({plain, op, accepts, make});
  };
  add("cpu.linear_cross_entropy.split", "cpu.linear_cross_entropy", "linear_cross_entropy",
      prepare<Does::Loss>);
  add("cpu.linear_cross_entropy_grad.split", "cpu.linear_cross_entropy_grad",
      "linear_cross_entropy_grad", prepare<Does::Grad>);
  add("cpu.linear_cross_entropy_sweep.split", "cpu.linear_cross_entropy_sweep",
      "linear_cross_entropy_sweep", prepare<Does::Sweep>);
  return kernels;
}

}  // namespace aloft::cpu
