// The compiler on one screen: which passes run, in which order.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "passes/pass.h"
#include "passes/pipeline_options.h"

namespace aloft {

struct PassTime {
  std::string_view pass;
  double seconds = 0;
  PassReport report;
};

class Pipeline {
 public:
  explicit Pipeline(std::string_view name) : name_(name) {}
  // InternalError where `pass` comes before the form that it needs.
  Pipeline& then(const Pass& pass);
  // Runs the pass, and again as long as it and its neighbours change anything.
  Pipeline& until_stable(std::initializer_list<const Pass*> passes);

  std::vector<PassTime> run(Graph& graph, const PassContext& context,
                            const PipelineOptions& options = {}) const;
  std::vector<const Pass*> passes() const;
  // Names of those that a later one does not build on, each once: PipelineOptions::skip takes them.
  std::vector<std::string> optional_passes() const;
  // UserError E0317 where PipelineOptions::skip names none of these.
  void check(const PipelineOptions& options) const;
  std::string_view name() const { return name_; }

 private:
  struct Stage {
    std::vector<const Pass*> passes;
    bool repeat = false;
  };
  std::string_view name_;
  Form form_ = Form::Traced;
  std::vector<Stage> stages_;
};

// From a traced program (training step, evaluation, decoding) to one that lower_to_plan takes.
const Pipeline& compile_pipeline();

}  // namespace aloft
