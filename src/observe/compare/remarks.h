// What a sentence about the first divergence adds where the other differences say more about it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "observe/compare/difference.h"

namespace aloft::compare {

// Whether its figures are what was compared, and not its elements or a checksum.
bool is_by_statistics(const Compared& c);

// Of an update, or of a parameter that earlier ones have made: where all that are off are of one
// group (matrices, which decay by the usual rule, or what is none; or modules of one class) and all
// others agree, which it is: "; only ...". Else "".
std::string group_remark(const std::vector<Compared>& all, const Compared& first,
                         const Training& training);

// Of what a product gives that takes the same as in the other run, as far as statistics see it:
// they see no order. So of what a call takes that is made of what a table before it gives: tokens
// in another order have its rows in another one. "" where elements were compared, the order of what
// is taken makes no difference to what is given, or what agreed before would not have agreed so.
std::string order_remark(const std::vector<Compared>& all, const Compared& first);

// Of what a module gives by a square matrix that lies transposed in the other run: that it may be
// the layout that is wrong.
std::string layout_remark(const std::vector<Compared>& all, const Compared& first);

// By what the figures of a pair are those of the second run, where it is the same for all of them,
// as of a tensor that is multiplied by it; nothing where they are not, or where it is 1.
std::optional<double> common_ratio(const Compared& c);

// Of what a table gives, such as an embedding, whose parameters are the same in both runs: that it
// reads other data, or, where statistics alone say so, that its rows may lie otherwise.
std::string data_remark(const std::vector<Compared>& all, const Compared& first);

}  // namespace aloft::compare
