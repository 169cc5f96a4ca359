#include "backends/cpu/isa.h"

#include <hwy/highway.h>
#include <oneapi/dnnl/dnnl.h>
#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include <cstdlib>
#include <string_view>

#include "base/error.h"

namespace aloft::cpu {
namespace {

#if defined(__x86_64__)

bool has_bits(int value, int bits) { return (value & bits) == bits; }

// Linux gives a process the 8 KiB of tile registers only on request.
bool request_tiles() {
  constexpr long kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr long kTileData = 18;               // XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

bool has_amx_bf16() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return false;
  return (d >> 22 & 1) && (d >> 24 & 1) && request_tiles();
}

void cap_libraries(std::string_view cap) {
  constexpr std::int64_t kBetterThanAvx2 = HWY_AVX2 - 1;  // Highway: a lower bit is a better target
  if (cap == "avx2") {
    hwy::DisableTargets(kBetterThanAvx2);
    dnnl_set_max_cpu_isa(dnnl_cpu_isa_avx2);
  } else if (cap == "avx512") {
    dnnl_set_max_cpu_isa(dnnl_cpu_isa_avx512_core_bf16);
  }
}

CpuFeatures detect() {
  __builtin_cpu_init();
  CpuFeatures f;
  f.avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (!f.avx2)
    throw EnvironmentError("E0410", "this processor has no AVX2").need("an x86-64-v3 processor");
  const char* text = std::getenv("ALOFT_MAX_ISA");
  const std::string_view cap = text && *text ? text : "amx";
  if (cap != "avx2" && cap != "avx512" && cap != "amx")
    throw EnvironmentError("E0410", "ALOFT_MAX_ISA names no instruction set")
        .saw(std::string(cap))
        .need("avx2, avx512 or amx");
  cap_libraries(cap);
  // oneDNN's own limit (ONEDNN_MAX_CPU_ISA) is obeyed too: what it may not use, we do not use.
  const int library = dnnl_get_effective_cpu_isa();
  f.avx512 = has_bits(library, dnnl_cpu_isa_avx512_core);
  f.avx512_bf16 = has_bits(library, dnnl_cpu_isa_avx512_core_bf16);
  f.amx_bf16 = has_bits(library, dnnl_cpu_isa_avx512_core_amx) && has_amx_bf16();
  return f;
}

#else
// Highway and oneDNN choose among the instruction sets of other processors by themselves.
CpuFeatures detect() { return {}; }
#endif

}  // namespace

const CpuFeatures& cpu_features() {
  static const CpuFeatures features = detect();
  return features;
}

std::string describe(const CpuFeatures& f) {
  std::string text;
  auto add = [&](bool has, const char* name) {
    if (has) text += text.empty() ? name : std::string(" ") + name;
  };
  add(f.avx2, "avx2");
  add(f.avx512, "avx512");
  add(f.avx512_bf16, "avx512_bf16");
  add(f.amx_bf16, "amx_bf16");
  return text;
}

}  // namespace aloft::cpu
