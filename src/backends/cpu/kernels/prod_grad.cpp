// prod_grad: products of the elements before and of those behind, in double, met at each element.
#include "ops/prod_grad.h"

#include <algorithm>
#include <array>

#include "backends/cpu/parallel.h"
#include "backends/cpu/prepare_as.h"
#include "backends/cpu/rows/axis_view.h"
#include "backends/cpu/rows/grouped_axes.h"
#include "backends/cpu/vectors/tiles.h"

namespace aloft::cpu {
namespace {

constexpr std::int64_t kMostChunks = 16;
constexpr std::int64_t kMostSets = std::int64_t{1} << kMostProdDirections;

class ProdGrad : public Prepared {
 public:
  explicit ProdGrad(const CallSpec& call)
      : axes_(call.in[0].shape,
              named_axes(from_attrs<ProdGradAttrs>(call.attrs).axes, call.in[0].shape.rank()),
              call),
        dtype_(call.in[0].dtype),
        directions_(static_cast<int>(call.in.size()) - 1),
        sets_(std::int64_t{1} << directions_) {
    for (int g = 0; g < axes_.count(); ++g)
      (axes_.is_marked(g) ? most_reduced_ : most_kept_) *= axes_.bound(g);
  }

  // For each chunk the products behind every element of one group.
  std::size_t scratch_bytes() const override {
    return std::min(kMostChunks, most_kept_) * stride() * sizeof(double);
  }

  void run(const RunArgs& args) const override {
    Extents n{};
    std::int64_t kept = 1, reduced = 1;
    for (int g = 0; g < axes_.count(); ++g) {
      n[g] = axes_.extent(g, args.symbols);
      (axes_.is_marked(g) ? reduced : kept) *= n[g];
    }
    if (reduced == 0) return;
    const Chunks c = chunks_of(kept, 8 * reduced * sets_ * (1 + directions_), kMostChunks);
    for_each_chunk(c.count, [&](std::int64_t i) {
      double* behind = static_cast<double*>(args.scratch) + i * stride();
      for (std::int64_t k = c.begin(i); k < c.end(i); ++k) one_group(args, n, k, reduced, behind);
    });
  }

 private:
  using Extents = std::array<std::int64_t, kMaxAxes>;
  // The product of some elements, derived along each set of directions.
  using Products = std::array<double, kMostSets>;

  std::int64_t stride() const { return (most_reduced_ * sets_ + 7) / 8 * 8; }

  // Where element r of group k lies.
  std::int64_t place(const Extents& n, std::int64_t k, std::int64_t r) const {
    std::int64_t at = 0;
    for (int g = axes_.count() - 1; g >= 0; --g) {
      std::int64_t& rest = axes_.is_marked(g) ? r : k;
      at += rest % n[g] * axes_.stride(g);
      rest /= n[g];
    }
    return at;
  }

  double read(const RunArgs& args, int operand, std::int64_t i) const {
    double buffer;
    const void* p = args.in[operand];
    return *open_f64(dtype_, at(p, i, dtype_), &buffer, 1);
  }

  // p times element i: each direction may take the element's place. From the largest set down, so
  // that subsets are still those without the element.
  void multiply(const RunArgs& args, std::int64_t i, Products& p) const {
    std::array<double, kMostProdDirections + 1> factor{};
    for (int k = 0; k <= directions_; ++k) factor[k] = read(args, k, i);
    for (std::int64_t s = sets_ - 1; s >= 0; --s) {
      double next = p[s] * factor[0];
      for (int k = 0; k < directions_; ++k)
        if (const std::int64_t bit = std::int64_t{1} << k; s & bit)
          next += p[s ^ bit] * factor[k + 1];
      p[s] = next;
    }
  }

  void one_group(const RunArgs& args, const Extents& n, std::int64_t k, std::int64_t count,
                 double* behind) const {
    Products p{};
    p[0] = 1;
    for (std::int64_t r = count - 1; r >= 0; --r) {
      std::copy_n(p.data(), sets_, behind + r * sets_);
      multiply(args, place(n, k, r), p);
    }
    p.fill(0);
    p[0] = 1;
    for (std::int64_t r = 0; r < count; ++r) {
      const std::int64_t i = place(n, k, r);
      const double* rest = behind + r * sets_;
      double y = p[0] * rest[sets_ - 1];
      for (std::int64_t s = 1; s < sets_; ++s) y += p[s] * rest[sets_ - 1 - s];
      multiply(args, i, p);
      close_f64(dtype_, &y, at(args.out[0], i, dtype_), 1);
    }
  }

  GroupedAxes axes_;
  DType dtype_;
  int directions_;
  std::int64_t sets_;
  std::int64_t most_kept_ = 1, most_reduced_ = 1;
};

}  // namespace

std::vector<Kernel> prod_grad_kernels() {
  return {{"cpu.prod_grad", "prod_grad", at_most_max_axes, prepare_as<ProdGrad>}};
}

}  // namespace aloft::cpu
