// mindspore.amp's levels and lists: a network that computes in a low type, whose parameters stay
// what they are, f32, and are cast where an op reads them.
//
//   auto net = amp::auto_mixed_precision(network, "O2");  // f16, or a third argument
//   auto own = amp::custom_mixed_precision(
//       network, {.black_list = amp::List{amp::layer<nn::LayerNorm>(), amp::op("softmax")}});
//
// An optimizer is made of network.parameters() before or after. docs/from-mindspore.md says which
// op computes in which type at which level, and what differs from MindSpore.
#pragma once

#include <concepts>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "frontend/amp.h"
#include "frontend/module.h"
#include "frontend/nested.h"
#include "ops/cast.h"
#include "types/dtype.h"

namespace aloft::amp {

// An entry of a list: an op, or every layer of a kind.
struct Listed {
  std::string op = {};               // its name; empty: layers
  std::string_view layer_kind = {};  // Module::kind() of these
};
// The op of this name, as `aloft ops` lists it.
inline Listed op(std::string_view name) { return {std::string(name)}; }
// Modules of this class: those of the library, or one of your own that says its kind() as they do,
//   static constexpr std::string_view kKind = "Block";
//   std::string_view kind() const override { return kKind; }
template <std::derived_from<nn::Module> L>
Listed layer() {
  return {"", L::kKind};
}
using List = std::vector<Listed>;

// A copy of the white list of level O1: the ops here that MindSpore's list names.
List get_white_list();
// A copy of the black list of level O2: the norms here that MindSpore's list names.
List get_black_list();

// One of the two, not both.
struct CustomLists {
  std::optional<List> white_list = {};  // what computes in the low type; everything else is f32
  std::optional<List> black_list = {};  // what computes in f32; everything else is of the low type
};

// Inside: what the calls below do to a network. `is_f32`: whether its outputs are cast to f32.
struct MixedForm {
  bool is_f32 = false;
};
// `scale`: the loss scale of the step that the network is given its level for, which the policy
// keeps for other steps.
MixedForm mix(nn::Module& network, std::string_view level, DType type,
              const scalar::ScalerRule& scale = {});
MixedForm mix(nn::Module& network, const CustomLists& lists, DType type);

// Inside: casts what is of a low type to f32, at any depth.
struct ToF32 : nested::Quiet {
  void tensor(Tensor& t) const {
    if (is_low(t.dtype())) t = cast(t, DType::F32);
  }
};

template <class Result>
Result as_f32(Result result) {
  ToF32 to_f32;
  nested::visit(result, to_f32);
  return result;
}

// A network under a level or lists: call it like the network.
template <class M>
class MixedNet {
 public:
  MixedNet(M& network, MixedForm form) : net_(network), form_(form) {}  // as the calls below do
  // What the network gives for its arguments, outputs in f32 but for the levels O0 and auto. Of up
  // to two arguments the line of the call is recorded.
  template <class A>
  auto operator()(const A& a, SourceLocation at = SourceLocation::current()) const {
    return finished(net_(a, at));
  }
  template <class A, class B>
  requires(!std::is_same_v<B, SourceLocation>) auto operator()(
      const A& a, const B& b, SourceLocation at = SourceLocation::current()) const {
    return finished(net_(a, b, at));
  }
  template <class A, class B, class C, class... More>
  requires(!std::is_same_v<C, SourceLocation>) auto operator()(const A& a, const B& b, const C& c,
                                                               const More&... more) const {
    return finished(net_(a, b, c, more...));
  }

  // The network itself: parameters, train(), eval().
  M& model() const { return net_.model(); }
  M* operator->() const { return &net_.model(); }

 private:
  template <class Result>
  Result finished(Result result) const {
    return form_.is_f32 ? as_f32(std::move(result)) : result;
  }

  Net<M> net_;
  MixedForm form_;
};

// mindspore.amp.auto_mixed_precision: the network under a level.
//
//   O0    as it is
//   O1    the ops of get_white_list() in `type`, everything else in f32
//   O2    everything in `type`, norms computed in f32
//   O3    everything in `type`
//   auto  products in `type`, exponentials, sums and norms in f32, the rest in its inputs' types
//
// The network keeps that precision; it is changed in place, and has to live as long as what is
// returned. UserError E0840 for another level or a type that is not f16 or bf16, E0805 where it
// has a precision already.
template <std::derived_from<nn::Module> M>
MixedNet<M> auto_mixed_precision(M& network, std::string_view level = "O0",
                                 DType type = DType::F16) {
  return {network, mix(network, level, type)};
}

// mindspore.amp.custom_mixed_precision: the network with a white or a black list. UserError E0840
// where both lists are given or none, or for a type that is not f16 or bf16, E0809 for an op that
// there is not, E0805 where the network has a precision already.
template <std::derived_from<nn::Module> M>
MixedNet<M> custom_mixed_precision(M& network, const CustomLists& lists, DType type = DType::F16) {
  return {network, mix(network, lists, type)};
}

}  // namespace aloft::amp
