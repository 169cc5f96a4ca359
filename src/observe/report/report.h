// report.html: a run on one page, self-contained: data, style, charts and the chart library are in
// the file, nothing is fetched when it is viewed. Made from the run directory alone (run.json,
// metrics.jsonl, the newest sample, profile.json), so that it can be made again for any run
// directory, at any time, finished or not.
#pragma once

#include <string>

#include "base/file.h"

namespace aloft {

// The page. DataError E0601 (no run.json), E0643 (not one that a training run wrote). A
// metrics.jsonl that is missing or cut short gives a page with the steps that are there.
std::string report_page_of(const Path& run);

// Writes RUN/report.html, whole or not at all. Also EnvironmentError E0603.
void write_report(const Path& run);

}  // namespace aloft
