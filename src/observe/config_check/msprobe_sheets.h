// The workbook that msprobe 26.2 makes of two packs: its sheets and columns, with a column more
// that says what to do, and rows of what is alike.
#pragma once

#include <vector>

#include "files/xlsx.h"
#include "observe/config_check/finding.h"

namespace aloft::config_check {

// The sheet "summary", then one a section. A is msprobe's bench, B its cmp.
std::vector<XlsxSheet> msprobe_sheets(const std::vector<Section>& sections);

}  // namespace aloft::config_check
