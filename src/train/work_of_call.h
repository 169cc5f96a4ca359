// What there is to do in a call that an observer is told of, for a profile.
#pragma once

#include "observe/profile/recorder.h"

namespace aloft {

// By the op's record, with the lengths that the call has; of moving bytes, the bytes.
profile::Work work_of_call(const OpEvent& e);

}  // namespace aloft
