#include "backends/cpu/attention/attention_bf16.h"

#include <algorithm>

#include "backends/cpu/isa.h"
#include "backends/cpu/matmul/bf16_strip.h"

namespace aloft::cpu {
namespace {

MatrixView view(const HeadRows& h, std::int64_t first, bool transposed) {
  return {h.at_row(first), h.type, h.row, transposed};
}

}  // namespace

UnitBlocks::UnitBlocks() {
  if (cpu_features().amx_bf16) amx.emplace();
}

Bf16Operands::Bf16Operands(const AttentionShape& s)
    : width(s.width),
      depth(round_up(s.width, kAmxDepth)),
      planes(s.dtype == DType::F16 ? 2 : 1),
      to(planes == 2 ? PackedType::Bf16x2 : PackedType::Bf16) {}

Bf16Left Bf16Operands::rows(const HeadRows& h, std::int64_t count, std::uint16_t* memory) const {
  pack_dense(view(h, 0, false), count, width, depth, to, memory, depth,
             round_up(count, kAmxPanel) * depth);
  return {memory, depth, round_up(count, kAmxPanel) * depth};
}

Bf16Left Bf16Operands::turned(const HeadRows& h, std::int64_t count, std::uint16_t* memory) const {
  const std::int64_t ld = round_up(count, kAmxDepth);
  pack_dense(view(h, 0, true), width, count, ld, to, memory, ld, this->ld() * ld);
  return {memory, ld, this->ld() * ld};
}

Bf16Right Bf16Operands::turned_panels(const HeadRows& h, std::int64_t count,
                                      std::uint16_t* memory) const {
  const std::int64_t panel = depth * kAmxPanel, plane = depth * round_up(count, kAmxPanel);
  for (std::int64_t first = 0; first < count; first += kAmxPanel)
    pack_panel(view(h, first, true), width, std::min(kAmxPanel, count - first), depth, to,
               memory + first / kAmxPanel * panel, plane);
  return {memory, panel, plane};
}

Bf16Right Bf16Operands::row_panels(const HeadRows& h, std::int64_t count,
                                   std::uint16_t* memory) const {
  const std::int64_t deep = round_up(count, kAmxDepth), panel = deep * kAmxPanel;
  for (std::int64_t p = 0; p < panels(); ++p)
    pack_panel(view(h, 0, false).from(0, p * kAmxPanel), count,
               std::min(kAmxPanel, width - p * kAmxPanel), deep, to, memory + p * panel,
               panels() * panel);
  return {memory, panel, panels() * panel};
}

void Bf16Operands::product_in_vectors(std::int64_t m, std::int64_t n, std::int64_t k,
                                      const Bf16Left& a, const Bf16Right& b, float* c,
                                      std::int64_t ldc, bool add) const {
  VectorStrip s;
  s.m = m, s.n = kStripPanel, s.k = k / 2;
  s.a = reinterpret_cast<const std::uint32_t*>(a.data);
  s.lda = a.ld / 2;
  s.ldp = ldc;
  for (std::int64_t column = 0; column < n; column += kStripPanel) {
    s.b = reinterpret_cast<const std::uint32_t*>(b.data + column / kStripPanel * b.panel);
    s.partial_in = add ? c + column : nullptr;
    s.partial_out = c + column;
    run_bf16_strip(s);
  }
}

void Bf16Operands::product(const UnitBlocks& blocks, std::int64_t m, std::int64_t n, std::int64_t k,
                           const Bf16Left& a, const Bf16Right& b, float* c, std::int64_t ldc,
                           bool add) const {
  if (!blocks.amx) return product_in_vectors(m, n, k, a, b, c, ldc, add);
  AmxTile t;
  t.m = round_up(m, kAmxPanel), t.n = n, t.k = k;
  t.a = a.data, t.lda = a.ld, t.a_plane = a.plane;
  t.b = b.data, t.panel_stride = b.panel, t.b_plane = b.plane;
  t.planes = planes;
  t.products = planes == 2 ? 3 : 1;
  t.partial_in = add ? c : nullptr;
  t.partial_out = c;
  t.ldp = ldc;
  t.c_type = planes == 2 ? DType::F16 : DType::BF16;
  blocks.amx->run(t);
}

bool attention_uses_bf16(const AttentionShape& s) {
  constexpr float kFarCap = 1000;  // 2^-23 of it is 1e-4, far below what bf16 keeps of a weight
  const CpuFeatures& cpu = cpu_features();
  return s.scale >= 0 && s.cap <= kFarCap &&
         ((is_low(s.dtype) && cpu.amx_bf16) || (s.dtype == DType::BF16 && cpu.avx512_bf16));
}

}  // namespace aloft::cpu
