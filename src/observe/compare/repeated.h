// A value that one run has once for all rows of a batch, such as positions, and the other for each.
#pragma once

#include <cstdint>
#include <optional>
#include <set>

#include "observe/compare/pairing.h"

namespace aloft::compare {

// The sizes of what both runs' calls take and give in the forward pass, where they are the same.
// What lies in a run once for all rows can be told from a batch of another size by them: there the
// rows of something else are as many in both.
std::set<double> common_sizes(const Pairs& pairs);

// The smaller of two records of other sizes as if it lay there once for each place of the larger,
// as sums of the two are computed: with that one's shape, and the norm of its elements that often.
// Nothing where the shapes are not so, or `common` does not have the larger size.
std::optional<Record> as_repeated(const RecordPair& pair, const std::set<double>& common);

}  // namespace aloft::compare
