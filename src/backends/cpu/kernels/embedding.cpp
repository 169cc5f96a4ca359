// embedding and its gradient, alone or added to another. The gradient lists each table row's ids
// first, so that every row is written once, by one thread, its parts added in f32 in the order of
// the ids.
#include "ops/embedding.h"

#include <cstring>
#include <limits>

#include "backends/cpu/integers.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/prepare_as.h"
#include "backends/cpu/vectors/tiles.h"
#include "runtime/kernel.h"

namespace aloft::cpu {
namespace {

// Writes n NaNs.
void fill_nan(DType t, void* to, std::int64_t n) {
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  for (std::int64_t i = 0; i < n; ++i) close_f64(t, &kNaN, at(to, i, t), 1);
}

class Embedding : public Prepared {
 public:
  explicit Embedding(const CallSpec& call)
      : type_(call.in[0].dtype),
        id_type_(call.in[1].dtype),
        rows_(call.in[0].shape[0].max()),
        width_(call.in[0].shape[1].max()),
        ids_(extent_of(call.in[1].shape.numel(), call)) {}

  void run(const RunArgs& args) const override {
    const std::size_t bytes = width_ * size_of(type_);
    parallel_for(ids_.at(args.symbols), width_ + 16, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t id = integer_at(id_type_, args.in[1], i);
        void* to = at(args.out[0], i * width_, type_);
        if (id < 0 || id >= rows_)
          fill_nan(type_, to, width_);
        else
          std::memcpy(to, at(static_cast<const void*>(args.in[0]), id * width_, type_), bytes);
      }
    });
  }

 private:
  DType type_, id_type_;
  std::int64_t rows_, width_;
  Extent ids_;
};

// Scratch: for each table row the index of its first id or -1, for each id the next of its row.
// kAdd: in = {x, dy, ids}, out = x + the sums, which are rounded to their type before they are
// added, as two ops would; rows without an id are left alone. Else in = {dy, ids}.
template <bool kAdd>
class EmbeddingGrad : public Prepared {
 public:
  explicit EmbeddingGrad(const CallSpec& call)
      : type_(call.out[0].dtype),
        id_type_(call.in[kIds].dtype),
        width_(call.out[0].shape[1].max()),
        rows_(call.out[0].shape[0].max()),
        most_ids_(call.in[kIds].shape.max_numel()),
        ids_(extent_of(call.in[kIds].shape.numel(), call)) {}

  std::size_t scratch_bytes() const override { return (rows_ + most_ids_) * sizeof(std::int32_t); }

  void run(const RunArgs& args) const override {
    auto* first = static_cast<std::int32_t*>(args.scratch);
    std::int32_t* next = first + rows_;
    std::fill_n(first, rows_, -1);
    for (std::int64_t i = ids_.at(args.symbols); i-- > 0;) {
      const std::int64_t id = integer_at(id_type_, args.in[kIds], i);
      if (id < 0 || id >= rows_) continue;
      next[i] = first[id];
      first[id] = static_cast<std::int32_t>(i);
    }
    const bool in_place = kAdd && args.in[0] == args.out[0];
    parallel_for(rows_, width_ / 4 + 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end;) {
        std::int64_t stop = row;  // a run of rows that no id names
        while (stop < end && first[stop] < 0) ++stop;
        if (!in_place) rest(args, row, stop);
        if (stop < end) one_row(args, stop, first[stop], next);
        row = stop + 1;
      }
    });
  }

 private:
  static constexpr int kDy = kAdd ? 1 : 0, kIds = kDy + 1;

  // Rows [row, stop) as they are without ids.
  void rest(const RunArgs& args, std::int64_t row, std::int64_t stop) const {
    const std::size_t bytes = (stop - row) * width_ * size_of(type_);
    if (bytes == 0) return;
    void* to = at(args.out[0], row * width_, type_);
    if constexpr (kAdd)
      std::memcpy(to, at(static_cast<const void*>(args.in[0]), row * width_, type_), bytes);
    else
      std::memset(to, 0, bytes);
  }

  void one_row(const RunArgs& args, std::int64_t row, std::int32_t i,
               const std::int32_t* next) const {
    if (!kAdd && next[i] < 0) {
      const void* dy = args.in[kDy];
      std::memcpy(at(args.out[0], row * width_, type_), at(dy, i * width_, type_),
                  width_ * size_of(type_));
      return;
    }
    for (std::int64_t j = 0; j < width_; j += kTile) {
      const std::int64_t n = std::min(kTile, width_ - j);
      if (type_ == DType::F64)
        add_up<double>(args, row * width_ + j, i * width_ + j, i, next, n, open_f64, close_f64);
      else
        add_up<float>(args, row * width_ + j, i * width_ + j, i, next, n, open_f32, close_f32);
    }
  }

  // Elements [place, place + n) of the output; `from` is where those of the row's first id i are.
  template <class T>
  void add_up(const RunArgs& args, std::int64_t place, std::int64_t from, std::int32_t i,
              const std::int32_t* next, std::int64_t n,
              const T* (*open)(DType, const void*, T*, std::int64_t),
              void (*close)(DType, const T*, void*, std::int64_t)) const {
    alignas(64) T sum[kTile] = {}, wide[kTile];
    const void* dy = args.in[kDy];
    const std::int64_t column = from - i * width_;
    const bool is_single = next[i] < 0;
    const T* total = sum;
    if (is_single) {
      total = open(type_, at(dy, from, type_), sum, n);
    } else {
      for (; i >= 0; i = next[i]) {
        const T* x = open(type_, at(dy, i * width_ + column, type_), wide, n);
        for (std::int64_t k = 0; k < n; ++k) sum[k] += x[k];
      }
    }
    void* to = at(args.out[0], place, type_);
    if constexpr (kAdd) {
      alignas(64) T rounded[kTile];
      if (!is_single) {
        close(type_, sum, wide, n);
        total = open(type_, wide, rounded, n);
      }
      alignas(64) T both[kTile];
      const void* into = args.in[0];
      const T* x = open(type_, at(into, place, type_), both, n);
      for (std::int64_t k = 0; k < n; ++k) both[k] = x[k] + total[k];
      close(type_, both, to, n);
    } else {
      close(type_, total, to, n);
    }
  }

  DType type_, id_type_;
  std::int64_t width_, rows_, most_ids_;
  Extent ids_;
};

std::optional<Refusal> accepts_grad(const CallSpec& call) {
  if (call.in.back().shape.max_numel() > std::numeric_limits<std::int32_t>::max())
    return Refusal{"more than 2^31 ids"};
  return std::nullopt;
}

std::vector<std::pair<int, int>> in_place(const CallSpec&) { return {{0, 0}}; }

}  // namespace

std::vector<Kernel> embedding_kernels() {
  return {{"cpu.embedding", "embedding", always, prepare_as<Embedding>},
          {"cpu.embedding_grad", "embedding_grad", accepts_grad, prepare_as<EmbeddingGrad<false>>},
          {"cpu.embedding_grad_add", "embedding_grad_add", accepts_grad,
           prepare_as<EmbeddingGrad<true>>, in_place}};
}

}  // namespace aloft::cpu
