// where: elements are moved whole, whatever their type.
#include "backends/cpu/elementwise.h"
#include "backends/cpu/operands.h"
#include "backends/cpu/parallel.h"

namespace aloft::cpu {
namespace {

template <class T>
void choose(const void* condition, const void* a, const void* b, void* out, std::int64_t n) {
  const auto* c = static_cast<const std::uint8_t*>(condition);
  const T *x = static_cast<const T*>(a), *y = static_cast<const T*>(b);
  T* o = static_cast<T*>(out);
  for (std::int64_t i = 0; i < n; ++i) o[i] = c[i] ? x[i] : y[i];
}

template <class T>
void choose_tile(const T* const* in, T* out, std::int64_t n, const double*) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = in[0][i] != T{0} ? in[1][i] : in[2][i];
}

class Where : public Prepared, public TileOp {
 public:
  explicit Where(const CallSpec& call) : operands_(call), dtype_(call.out[0].dtype) {}

  void run(const RunArgs& args) override {
    parallel_for(operands_.numel(args), 1, [&](std::int64_t begin, std::int64_t end) {
      Reader reader(operands_, args);
      while (begin < end) {
        const std::int64_t n = operands_.tile_at(begin, end);
        const void *c = reader.raw(0, begin, n), *a = reader.raw(1, begin, n),
                   *b = reader.raw(2, begin, n);
        void* out = at(args.out[0], begin, dtype_);
        switch (size_of(dtype_)) {
          case 1:
            choose<std::uint8_t>(c, a, b, out, n);
            break;
          case 2:
            choose<std::uint16_t>(c, a, b, out, n);
            break;
          case 4:
            choose<std::uint32_t>(c, a, b, out, n);
            break;
          default:
            choose<std::uint64_t>(c, a, b, out, n);
            break;
        }
        begin += n;
      }
    });
  }

  ElementwiseCode tile_code() const override { return {choose_tile<float>, choose_tile<double>}; }

 private:
  Operands operands_;
  DType dtype_;
};

}  // namespace

std::vector<Kernel> where_kernels() {
  return {{"cpu.where", "where", always,
           [](const CallSpec& call) -> std::unique_ptr<Prepared> {
             return std::make_unique<Where>(call);
           },
           same_type_pairs}};
}

}  // namespace aloft::cpu
