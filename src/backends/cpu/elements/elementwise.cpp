#include "backends/cpu/elements/elementwise.h"

#include "backends/cpu/parallel.h"
#include "backends/cpu/vectors/integer_tiles.h"

namespace aloft::cpu {
namespace {

class Elementwise : public Prepared, public TileOp {
 public:
  Elementwise(const CallSpec& call, const ElementwiseCode& code)
      : operands_(call), code_(code), out_(call.out[0].dtype), narrow_(fits_f32(out_)) {
    for (const TensorType& t : call.in) narrow_ = narrow_ && fits_f32(t.dtype);
    whole_ = code_.i64 != nullptr && !is_float(out_) && operands_.count() > 0;
    for (const TensorType& t : call.in) whole_ = whole_ && is_integer(t.dtype);
    in_low_ = code_.low.has_low(out_);
    for (int i = 0; i < operands_.count(); ++i)
      in_low_ = in_low_ && call.in[i].dtype == out_ && operands_.is_dense(i);
  }

  void run(const RunArgs& args) const override {
    if (in_low_)
      return out_ == DType::BF16 ? in_type(code_.low.bf16, args) : in_type(code_.low.f16, args);
    parallel_for(operands_.numel(args), code_.cost, [&](std::int64_t begin, std::int64_t end) {
      Reader reader(operands_, args);
      if (whole_)
        chunk<std::int64_t>(reader, args.out[0], begin, end);
      else if (narrow_)
        chunk<float>(reader, args.out[0], begin, end);
      else
        chunk<double>(reader, args.out[0], begin, end);
    });
  }

  const LoopPart* loop_part() const override { return this; }
  ElementwiseCode tile_code() const override { return code_; }

 private:
  template <class T>
  void in_type(TileOf<T> tile, const RunArgs& args) const {
    parallel_for(operands_.numel(args), code_.cost, [&](std::int64_t begin, std::int64_t end) {
      const T* in[kMaxOperands];
      for (int i = 0; i < operands_.count(); ++i) in[i] = static_cast<const T*>(args.in[i]) + begin;
      tile(in, static_cast<T*>(args.out[0]) + begin, end - begin, code_.numbers.data());
    });
  }

  template <class T>
  void chunk(Reader& reader, void* out, std::int64_t begin, std::int64_t end) const {
    alignas(64) T buffer[kTile];
    const T* in[kMaxOperands];
    while (begin < end) {
      const std::int64_t n = operands_.tile_at(begin, end);
      void* place = at(out, begin, out_);
      if constexpr (std::is_same_v<T, float>) {
        for (int i = 0; i < operands_.count(); ++i) in[i] = reader.as_f32(i, begin, n);
        float* result = out_ == DType::F32 ? static_cast<float*>(place) : buffer;
        code_.f32(in, result, n, code_.numbers.data());
        close_f32(out_, result, place, n);
      } else if constexpr (std::is_same_v<T, std::int64_t>) {
        for (int i = 0; i < operands_.count(); ++i) in[i] = reader.as_i64(i, begin, n);
        auto* result = out_ == DType::I64 ? static_cast<std::int64_t*>(place) : buffer;
        code_.i64(in, result, n, code_.numbers.data());
        close_i64(out_, result, place, n);
      } else {
        for (int i = 0; i < operands_.count(); ++i) in[i] = reader.as_f64(i, begin, n);
        double* result = out_ == DType::F64 ? static_cast<double*>(place) : buffer;
        code_.f64(in, result, n, code_.numbers.data());
        close_f64(out_, result, place, n);
      }
      begin += n;
    }
  }

  Operands operands_;
  ElementwiseCode code_;
  DType out_;
  bool narrow_, whole_;
  bool in_low_;
};

template <class T>
void copy_tile(const T* const* in, T* out, std::int64_t n, const double*) {
  std::copy_n(in[0], n, out);
}

}  // namespace

ElementwiseCode copy_code() { return {copy_tile<float>, copy_tile<double>}; }

std::unique_ptr<Prepared> prepare_elementwise(const CallSpec& call, const ElementwiseCode& code) {
  return std::make_unique<Elementwise>(call, code);
}

}  // namespace aloft::cpu
