// Looking at a program's steps: observe::Session writes what each held. In no other header:
//
//   #include <aloft/aloft.h>
//   #include <aloft/observe.h>
#pragma once

#include "train/observe_session.h"
