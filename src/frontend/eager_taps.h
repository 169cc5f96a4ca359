// Taps in eager mode: what a step's ops give, as they are called, by the names that the values have
// in a compiled program (passes/tap_pattern.h). Statistics are taken by the op `statistics`, as
// soon as their value is there and before anything is written in its place; nothing of it is
// recorded, and no random number drawn, so that no bit of the step changes.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "autodiff/differentiate.h"
#include "frontend/asked_taps.h"
#include "frontend/call_taps.h"
#include "frontend/eager_emitter.h"
#include "frontend/tracing.h"
#include "graph/tap.h"
#include "passes/attention_taps.h"
#include "passes/tap_pattern.h"

namespace aloft {

struct UpdateLayout;

class EagerTaps {
 public:
  // A pattern that means nothing shows nothing: a step meets its values one by one.
  explicit EagerTaps(const AskedTaps& asked);

  // While one lives, this thread's eager calls are looked at, from nothing on. One at a time.
  class Looking {
   public:
    explicit Looking(EagerTaps& taps);
    ~Looking();
    Looking(const Looking&) = delete;
    Looking& operator=(const Looking&) = delete;

   private:
    EagerEmitter& emitter_;
    CallTaps calls_;
  };

  // Whether one lives on this thread.
  static bool are_looking();

  // A call of an op.
  struct Call {
    int number = 0;         // in the step, from 0 on
    std::string name = {};  // as a node's identity: "h.0.mlp/gelu_tanh#0"
    Name op = {}, path = {};
    bool has_operands = false;
    // The taps that show its operands, "" of those that are not shown.
    std::vector<std::string> operands = {};
    std::vector<std::string> unseen = {};  // what these are that are floats: "f32[2,3] of moment.w"
  };
  struct Shown {
    std::string name;  // the tap's: "statistics:h.0.mlp/gelu_tanh#0"
    TensorType type;   // of the value that is looked at, with the lengths that it has
    Phase phase = Phase::Forward;
    std::string file = {};  // of the call that computed it, where the user's program says
    int line = 0;
    // What the tap shows: the value, or its statistics.
    std::shared_ptr<const EagerCell> cell = {};
    // What made the value, and which of its results it is; null: it comes from outside.
    std::shared_ptr<const Call> made_by = {};
    int result = 0;
    int call = 0;  // of what updates add: which update of the parameter in the step
  };
  // What the last step showed, in the order of a compiled program's taps.
  std::vector<Shown> shown() const;
  // Of the modules that were called, what their classes are called, by path.
  const std::map<std::string, std::string>& classes() const { return classes_; }
  // Gradients of what was shown that the step's backward passes did not show, and why.
  std::vector<RefusedTap> missing() const;
  // Gradients of parameters of which the last alone is shown, behind an update that took another.
  const std::set<std::string>& replaced() const { return replaced_; }

 private:
  friend class EagerEmitter;
  using CellPtr = std::shared_ptr<EagerCell>;
  // In a compiled program the taps of each kind stand behind those of the one before.
  enum class Kind : std::uint8_t { Call, Value, Update, Gradient, Backward, Inside };
  struct Entry {
    Shown shown;
    Kind kind = Kind::Value;
    std::size_t place = 0;             // among those of its kind
    std::weak_ptr<EagerCell> of = {};  // the value
  };
  // Nothing is looked at while one lives.
  class Aside {
   public:
    explicit Aside(EagerEmitter& e) : e_(e), saved_(std::exchange(e.taps_, nullptr)) {}
    ~Aside() { e_.taps_ = saved_; }
    Aside(const Aside&) = delete;
    Aside& operator=(const Aside&) = delete;

   private:
    EagerEmitter& e_;
    EagerTaps* saved_;
  };

  // What the emitter tells: an op is called; a variable is read; it gets a value; a value is in a
  // cell of its own from here on; gradients that are asked for of what was shown, and those that a
  // backward pass found.
  std::vector<Tensor> emit(EagerEmitter& e, const OpCall& call, std::span<const Tensor> in,
                           const Where& where);
  void called(EagerEmitter& e, const nn::Module& module, const std::string& name,
              const Tensor& value);
  void read(EagerEmitter& e, const VariablePtr& variable, const Tensor& value);
  void changes(EagerEmitter& e, const VariablePtr& variable, const Tensor& value);
  void copied(const Tensor& value, const CellPtr& to);
  std::vector<GradientView> asked_gradients(EagerEmitter& e);
  void show_gradients(EagerEmitter& e, const std::vector<GradientView>& views);

  void begin();
  bool is_asked(const std::string& name) const;
  std::vector<const Entry*> in_order() const;
  void show(EagerEmitter& e, const std::string& name, Kind kind, const Tensor& value,
            const Where& where);
  void show_all(EagerEmitter& e, const std::string& value_name, Kind kind, const Tensor& value,
                const Where& where);
  void show_inputs(EagerEmitter& e, std::span<const Tensor> in);
  CellPtr cell_to_show(EagerEmitter& e, std::string_view tap, const CellPtr& of);
  void put(Entry entry);
  void note_call(const EagerEmitter& e, const Node& node, std::span<const Tensor> in,
                 const std::vector<Tensor>& results);
  void note_maker(Shown& shown, const CellPtr& value) const;
  void show_inside(EagerEmitter& e, const Node& node, const OpCall& call,
                   std::span<const Tensor> in);
  void show_sum(EagerEmitter& e, const std::string& parameter, const Tensor& sum,
                const Where& where);
  // backward() has added to the gradient that it had left for a parameter.
  void added_up(EagerEmitter& e, const VariablePtr& variable, const Tensor& sum);
  void note_updates(const UpdateLayout& layout, const std::vector<Tensor>& results,
                    const Where& where);
  // `is_again`: of the update that was shown last, known better.
  void show_update(const VariablePtr& variable, const CellPtr& value, const CellPtr& statistics,
                   const Where& where, bool is_again = false);
  void note_replaced(const std::string& gradient);
  CellPtr statistics_of_change(EagerEmitter& e, const Tensor& after, const VariablePtr& variable);

  template <class T>
  using ByCell = std::map<std::weak_ptr<EagerCell>, T, std::owner_less<>>;

  AskedTaps asked_;
  std::vector<TapPattern> patterns_;
  bool asks_updates_ = false, asks_attention_ = false, asks_inputs_ = false;
  // Of the step.
  std::map<std::string, std::string> classes_;
  StateTable variables_;
  std::map<std::tuple<Name, Name, Phase>, int> occurrences_;
  AttentionNumbers attentions_;
  std::vector<Entry> entries_;
  std::map<std::string, std::size_t> entry_of_;  // by name
  std::set<const Variable*> read_;
  std::map<std::string, ByCell<CellPtr>> taken_;  // statistics, by prefix and value
  std::vector<std::string> asked_gradients_;
  std::vector<RefusedTap> missing_;  // that a backward pass so far did not show
  std::set<std::string> replaced_;
  std::map<std::string, int> updates_of_;  // so far in the step, by the tap of the parameter
  struct Ready {                           // what an update op said of one parameter
    CellPtr statistics;
    Where where;
  };
  struct Made {
    std::shared_ptr<const Call> by;
    int result = 0;
  };
  int calls_ = 0, inputs_ = 0;
  ByCell<Made> made_;                         // what ops gave
  ByCell<std::string> shown_as_;              // the tap that showed the value first
  ByCell<Ready> updates_;                     // by the new value
  ByCell<std::weak_ptr<EagerCell>> casts_;    // of new values: what each is rounded from
  ByCell<VariablePtr> rounded_from_masters_;  // whose new value is rounded from this one
};

}  // namespace aloft
