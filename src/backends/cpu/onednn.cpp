#include "backends/cpu/onednn.h"

#include <omp.h>

#include <algorithm>
#include <memory>
#include <string>

#include "backends/cpu/isa.h"
#include "base/error.h"

namespace aloft::cpu {
using dnnl::memory;

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

}  // namespace aloft::cpu
