// Aloft, the installed interface: include this and link aloft::aloft (find_package(aloft)).
#pragma once

#include "base/error.h"
#include "graph/tensor.h"
#include "types/shape.h"
