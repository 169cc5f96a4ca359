#include "backends/cpu/attention/attention_amx.h"

#include <algorithm>

#include "backends/cpu/isa.h"

namespace aloft::cpu {
namespace {

MatrixView view(const HeadRows& h, std::int64_t first, bool transposed) {
  return {h.at_row(first), h.type, h.row, transposed};
}

}  // namespace

AmxOperands::AmxOperands(const AttentionShape& s)
    : width(s.width),
      depth(round_up(s.width, kAmxDepth)),
      planes(s.dtype == DType::F16 ? 2 : 1),
      to(planes == 2 ? PackedType::Bf16x2 : PackedType::Bf16) {}

AmxLeft AmxOperands::rows(const HeadRows& h, std::int64_t count, std::uint16_t* memory) const {
  pack_dense(view(h, 0, false), count, width, depth, to, memory, depth,
             round_up(count, kAmxPanel) * depth);
  return {memory, depth, round_up(count, kAmxPanel) * depth};
}

AmxLeft AmxOperands::turned(const HeadRows& h, std::int64_t count, std::uint16_t* memory) const {
  const std::int64_t ld = round_up(count, kAmxDepth);
  pack_dense(view(h, 0, true), width, count, ld, to, memory, ld, this->ld() * ld);
  return {memory, ld, this->ld() * ld};
}

AmxRight AmxOperands::turned_panels(const HeadRows& h, std::int64_t count,
                                    std::uint16_t* memory) const {
  const std::int64_t panel = depth * kAmxPanel, plane = depth * round_up(count, kAmxPanel);
  for (std::int64_t first = 0; first < count; first += kAmxPanel)
    pack_panel(view(h, first, true), width, std::min(kAmxPanel, count - first), depth, to,
               memory + first / kAmxPanel * panel, plane);
  return {memory, panel, plane};
}

AmxRight AmxOperands::row_panels(const HeadRows& h, std::int64_t count,
                                 std::uint16_t* memory) const {
  const std::int64_t deep = round_up(count, kAmxDepth), panel = deep * kAmxPanel;
  for (std::int64_t p = 0; p < panels(); ++p)
    pack_panel(view(h, 0, false).from(0, p * kAmxPanel), count,
               std::min(kAmxPanel, width - p * kAmxPanel), deep, to, memory + p * panel,
               panels() * panel);
  return {memory, panel, panels() * panel};
}

void AmxOperands::product(const AmxBlocks& blocks, std::int64_t m, std::int64_t n, std::int64_t k,
                          const AmxLeft& a, const AmxRight& b, float* c, std::int64_t ldc,
                          bool add) const {
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
  blocks.run(t);
}

bool attention_uses_amx(const AttentionShape& s) {
  return is_low(s.dtype) && s.scale >= 0 && cpu_features().amx_bf16;
}

}  // namespace aloft::cpu
