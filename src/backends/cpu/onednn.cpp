#include "backends/cpu/onednn.h"

#include <omp.h>

#include <algorithm>
#include <memory>
#include <string>

#include "backends/cpu/isa.h"
#include "base/error.h"

namespace aloft::cpu {
namespace {

using dnnl::memory;

memory::desc matrix(std::int64_t rows, std::int64_t cols, DType type, std::int64_t ld,
                    bool transposed) {
  return {{rows, cols}, onednn_type(type), transposed ? memory::dims{1, ld} : memory::dims{ld, 1}};
}

dnnl::matmul::primitive_desc describe_matmul(const memory::desc& a, const memory::desc& b,
                                             const memory::desc& bias, const memory::desc& c,
                                             bool has_bias, const dnnl::primitive_attr& attr) {
#if DNNL_VERSION_MAJOR >= 3
  return has_bias ? dnnl::matmul::primitive_desc(onednn_engine(), a, b, bias, c, attr)
                  : dnnl::matmul::primitive_desc(onednn_engine(), a, b, c, attr);
#else
  const auto desc = has_bias ? dnnl::matmul::desc(a, b, bias, c) : dnnl::matmul::desc(a, b, c);
  return {desc, attr, onednn_engine()};
#endif
}

}  // namespace

dnnl::memory::data_type onednn_type(DType type) {
  switch (type) {
    case DType::F32:
      return memory::data_type::f32;
    case DType::BF16:
      return memory::data_type::bf16;
    case DType::F16:
      return memory::data_type::f16;
    case DType::I32:
      return memory::data_type::s32;
    case DType::U8:
      return memory::data_type::u8;
    case DType::I8:
      return memory::data_type::s8;
    default:
      throw InternalError("oneDNN has no type " + std::string(name_of(type)));
  }
}

const dnnl::engine& onednn_engine() {
  static const dnnl::engine engine = [] {
    cpu_features();  // caps oneDNN's instruction set before its first use
    return dnnl::engine(dnnl::engine::kind::cpu, 0);
  }();
  return engine;
}

void throw_onednn(const char* what, const dnnl::error& error) {
  throw EnvironmentError("E0411", std::string("oneDNN refused ") + what).saw(error.what());
}

OneThread::OneThread() : before_(omp_get_max_threads()) { omp_set_num_threads(1); }
OneThread::~OneThread() { omp_set_num_threads(before_); }

OneDnnCall::OneDnnCall(const dnnl::primitive& primitive,
                       const std::vector<std::pair<int, memory::desc>>& args)
    : primitive_(primitive), stream_(onednn_engine()), count_(static_cast<int>(args.size())) {
  ensure(args.size() <= kMostArgs, "a oneDNN call has at most kMostArgs arguments");
  for (int i = 0; i < count_; ++i) {
    memory_[i] = memory(args[i].second, onednn_engine(), DNNL_MEMORY_NONE);
    args_[i] = {args[i].first, memory_[i].get()};
  }
}

void OneDnnCall::run(std::initializer_list<const void*> pointers) {
  int i = 0;
  bool ok = true;
  for (const void* p : pointers)
    ok &= dnnl_memory_set_data_handle(args_[i++].memory, const_cast<void*>(p)) == dnnl_success;
  ok =
      ok && i == count_ &&
      dnnl_primitive_execute(primitive_.get(), stream_.get(), count_, args_.data()) == dnnl_success;
  // The descriptors were accepted when the primitive was made: this cannot fail on valid pointers.
  ensure(ok, "a prepared oneDNN primitive executes");
}

OneDnnCalls::OneDnnCalls(const dnnl::primitive& primitive,
                         const std::vector<std::pair<int, memory::desc>>& args, int ready)
    : calls_([=] { return std::make_unique<OneDnnCall>(primitive, args); }, std::max(1, ready)) {}

void OneDnnCalls::run(std::initializer_list<const void*> pointers) const {
  calls_.take(omp_get_thread_num())->run(pointers);
}

OneDnnMatmul::OneDnnMatmul(const OneDnnMatmulShape& s, int threads) {
  OneThread one;
  try {
    const memory::desc a = matrix(s.m, s.k, s.in, s.lda, s.transpose_a),
                       b = matrix(s.k, s.n, s.in, s.ldb, s.transpose_b),
                       c = matrix(s.m, s.n, s.out, s.ldc, false),
                       bias = matrix(1, s.n, DType::F32, s.n, false);
    dnnl::primitive_attr attr;
    attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    if (s.accumulate) {
      dnnl::post_ops sum;
      sum.append_sum(1.0f);
      attr.set_post_ops(sum);
    }
    const auto desc = describe_matmul(a, b, bias, c, s.bias, attr);
    const memory::desc scratch = desc.scratchpad_desc();
    scratch_bytes_ = scratch.get_size();
    std::vector<std::pair<int, memory::desc>> args = {{DNNL_ARG_SRC, a},
                                                      {DNNL_ARG_WEIGHTS, b},
                                                      {DNNL_ARG_DST, c},
                                                      {DNNL_ARG_SCRATCHPAD, scratch}};
    if (s.bias) args.push_back({DNNL_ARG_BIAS, bias});
    calls_ = OneDnnCalls(dnnl::matmul(desc), args, threads);
  } catch (const dnnl::error& e) {
    throw_onednn("a matrix product", e);
  }
}

}  // namespace aloft::cpu
