// What the kernels of this back end are to its fused loops (elements/tile_program.h).
#pragma once

#include "runtime/kernel.h"

namespace aloft::cpu {

class ColumnReduction;  // rows/reduction.h
class TileOp;           // elements/elementwise.h

// Every LoopPart of a kernel of this back end is one of these.
class CpuLoopPart : public LoopPart {
 public:
  // Null where it is nothing of the kind.
  virtual const TileOp* tile_op() const { return nullptr; }
  virtual const ColumnReduction* column_reduction() const { return nullptr; }
};

// Of a prepared kernel of this back end; null where no fused loop takes it, or there is no kernel.
inline const CpuLoopPart* loop_part_of(const Prepared* prepared) {
  return prepared ? static_cast<const CpuLoopPart*>(prepared->loop_part()) : nullptr;
}

}  // namespace aloft::cpu
