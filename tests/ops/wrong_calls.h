// Calls that cannot be: inference refuses them with an error that names the op, the place in the
// user's program and what was needed.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "ops/op.h"

namespace aloft::testing {

struct Wrong {
  const char* op;
  Attrs attrs;
  std::vector<TensorType> in;
  const char* says;  // part of the message
};

inline void expect_refused(const std::vector<Wrong>& calls) {
  for (const Wrong& w : calls) {
    SCOPED_TRACE(w.op);
    try {
      infer_types(op_named(w.op), w.attrs, w.in, Where{.file = "model.cpp", .line = 12});
      ADD_FAILURE() << "taken: " << w.says;
    } catch (const UserError& e) {
      const std::string text = e.what();
      EXPECT_NE(text.find(w.op), std::string::npos) << text;
      EXPECT_NE(text.find("model.cpp:12"), std::string::npos) << text;
      EXPECT_NE(text.find(w.says), std::string::npos) << text;
    }
  }
}

}  // namespace aloft::testing
