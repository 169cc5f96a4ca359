// Looking at a program's steps: observe::Session writes what each held; what a listener is told of
// trends (Listener::trends_seen). In no other header:
//
//   #include <aloft/aloft.h>
//   #include <aloft/observe.h>
#pragma once

#include "train/observe_session.h"
#include "types/trends.h"
