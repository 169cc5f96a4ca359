// Which values of a dump are written, of those that probe.list, probe.scope and probe.data_mode
// mean.
#pragma once

#include <vector>

#include "observe/probe/dump.h"
#include "recipe/recipe.h"

namespace aloft {

// Whether the section narrows what is written.
bool selects(const ProbeSection& probe);

// Which are meant, of all values and of what ops take (Dump::taken()).
struct Selected {
  std::vector<bool> values, taken;
  bool has_any = false;  // a value is among them, at the one place or the other
};

// UserError E0327 where probe.scope names no entry.
Selected selected(const ProbeSection& probe, const probe::Dump& dump);

// UserError E0327: none is meant. What is called nearly as the words of the list are is named, of
// the dump's entries and of `modules`: a list may have left all entries of these out.
[[noreturn]] void refuse_empty_selection(const ProbeSection& probe, const probe::Dump& dump,
                                         const std::vector<probe::DumpedModule>& modules = {});

}  // namespace aloft
