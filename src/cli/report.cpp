// aloft report RUN
#include "observe/report/report.h"

#include <memory>

#include "base/output.h"
#include "cli/shared_options.h"
#include "cli/verb.h"

namespace aloft::cli {

Action report_verb(CLI::App& app) {
  auto run = std::make_shared<std::string>();
  add_run(app, *run, "run directory, finished or not");
  return [run] {
    write_report(*run);
    print_result("{}\n", (Path(*run) / "report.html").string());
    return ExitCode::Ok;
  };
}

}  // namespace aloft::cli
