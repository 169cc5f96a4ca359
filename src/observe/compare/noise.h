// How far two runs of the same mathematics may be apart, by the types that they hold values in and
// by the lengths over which they sum.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "observe/compare/pairing.h"
#include "types/dtype.h"

namespace aloft::compare {

// By its name in any framework, of complex numbers that of their parts; nothing of types that are
// no floats, or not known.
std::optional<DType> float_type_of(std::string_view type);
// Half the distance of 1 to the next number of a type, by its name in any framework: 2^-24 of
// "torch.float32"; 0 of types that are exact or not known.
double unit_of(std::string_view type);
// A value of a type, with as many digits as tell it from the next: of float64 all that it has.
std::string number_text(double value, std::string_view type);

// Whether a value of a type, by its name, lies where the type ends, within 1 %, or beyond, as what
// masks of attention hold for what is not seen. What is added to it, or that it is another type's
// end (bfloat16's beside float32's), moves it by less.
bool is_at_end(double value, std::string_view type);

// What rounding adds to what a call gives, relative to its size. Values are stored in the coarsest
// type that either run has there, and summed in f32, or in f64 where both runs hold f64: with
// random signs the error of n summands grows with the root of n.
class Noise {
 public:
  // A call's own share, which is added to what came before: the two are independent, so that their
  // squares add.
  void add(const EntryPair& entry);
  // All that was seen so far is the same in both runs, to the type and the figure: what was added
  // has not come about. Of what is computed from here on the calls that are not seen count, too.
  void forget();
  // What parameters are apart before anything is computed from them.
  void add_drift(double relative);
  // What is computed from a difference of two nearly equal values is off by so much more.
  void add_cancelled(double relative);
  // No more than that, once it has been seen.
  void measure_cancelled(double relative);
  double cancelled() const { return cancelled_; }
  // Of the values so far, a typical relative error.
  double level() const;
  double coarsest() const { return coarsest_; }  // unit so far
  double drift() const { return drift_; }
  // However it adds up, a value that is further off is another one.
  double most() const;

 private:
  double squares_ = 0;  // of all calls
  double since_ = 0;    // of those behind the last forget()
  double coarsest_ = 0;
  double drift_ = 0;
  bool was_same_ = false;  // in both runs, and of low types, at some place
  double cancelled_ = 0;
  bool is_cancelled_since_ = false;  // behind the last forget()
};

// Over how many summands a call's results are sums, at most; 1 where nothing says it.
double summands_of(const Entry& entry);
// The coarsest unit among a call's floats, of both runs.
double unit_of(const EntryPair& entry);
// What the figures of a record may be off by the way in which they were taken.
double figure_noise(const Record& record);

}  // namespace aloft::compare
