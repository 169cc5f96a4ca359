// Copies for variables that lie away from where kernels work: in the host's memory, or in parts on
// several devices.
#pragma once

#include "passes/lower_to_plan.h"
#include "passes/pass.h"

namespace aloft {

// Each instruction that uses such a variable gets activation memory in its place, which copies fill
// before it and carry back behind it:
//
//   %9 = adam_update(%4)     ->     %20 = copy(%4) stream 1 waits !0 signals !1
//                                   %20 = adam_update(%20) waits !1 signals !2
//                                   %4 = copy(%20) stream 1 waits !2 signals !3
//
// On a device with several streams copies go beside the kernels: those for an instruction run
// while the one before it does, those behind it while the next one does. Afterwards the program's
// buffers of such variables are their parts, where these lie (docs/decisions/0030).
void insert_copies(Lowered& lowered, const PassContext& context);

}  // namespace aloft
