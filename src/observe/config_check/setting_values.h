// Whether two values of settings say the same, however each of them is written.
#pragma once

#include <string>
#include <string_view>

#include "observe/config_check/side.h"

namespace aloft::config_check {

// Whether two values say the same: numbers as numbers (1e-4 and 0.0001, 0x10 and 16; whole ones
// exactly, of any length), lists item by item in any notation ([0.9, 0.95]; 0.9,0.95; 0.9 0.95; a
// quoted text with blanks is a list of numbers or none), types of numbers by any of their names
// (bf16, bfloat16, torch.bfloat16), true and false in any case and, beside one of these, also as
// yes, on, 1 and no, off, 0. Of settings named after a type (`--bf16`) true stands for that type.
// Two texts of files that have numbers, too ("1.0" and "1" in JSON), names of files and versions
// are texts: they are one where they are written alike. Of optimizers the name counts that programs
// have for one formula: adamw, AdamW, adamw_torch_fused; of schedules likewise
// (schedule_names.inc).
bool same_value(const Setting& a, const Setting& b);

// The same of two texts that may stand for numbers, types, true and false; none of them is a list.
bool same_text(std::string_view a, std::string_view b);

// A type of numbers as it is called here, "bf16" of "torch.bfloat16"; "" of other words.
std::string plain_type(std::string_view text);

// Whether a setting of that key names a file or a folder.
bool names_a_place(std::string_view key);

// Whether one of that key names a version: 1.10 is not 1.1.
bool names_a_version(std::string_view key);

// A value for people: a text without quotes.
std::string value_text(const Setting& setting);

}  // namespace aloft::config_check
