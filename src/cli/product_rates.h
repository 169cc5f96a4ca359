// How fast this machine multiplies in f32 and in bf16, measured once and remembered: what decides
// whether low precision pays here must not change from one start to the next.
#pragma once

#include <functional>

#include "backends/cpu/measure.h"
#include "base/cache_folder.h"
#include "base/file.h"
#include "observe/profile/rates.h"
#include "recipe/settle_precision.h"

namespace aloft::cli {

// The rates in `cache` (a folder; default: the user's), measured and written there if they are not
// those of this processor, library and number of threads. Those of a busy machine are kept too, and
// that is said: a start ten minutes later or more measures once more, and what it finds stays for
// good; if the machine is busy again, the better of each type, because that makes none faster.
// Where the second lies ten times or more below, the better is shown and stays in doubt until a
// third measurement, which drops the better one where it lies far below, too. A cache that cannot
// be read or written, or says what no processor does, costs a tenth of a second, nothing else.
MeasuredRates product_rates(
    const Path& cache = default_cache(),
    const std::function<cpu::MatmulRates()>& measure = [] { return cpu::measure_matmul_rates(); });

// Those of the current device: as it says (Features::f32_flops), or else as above.
MeasuredRates device_rates();
// What a profile is held against: those, and how fast the memory is, which is measured (a quarter
// of a second, a quarter of a GiB) where the device does not say it. Only products where there is
// not so much memory.
profile::Rates rates_of_device();
// The same as device_rates(), said in a line: for verbs that show no banner (train/banner.h).
MeasuredRates shown_product_rates();

}  // namespace aloft::cli
