#include "chip/harness.h"
