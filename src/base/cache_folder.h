// Where what can be made again is kept between runs.
#pragma once

#include "base/file.h"

namespace aloft {

// $XDG_CACHE_HOME/aloft, or else ~/.cache/aloft; /tmp stands in for a home that is not known.
Path default_cache();

}  // namespace aloft
