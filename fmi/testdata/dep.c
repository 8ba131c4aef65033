#include "fmi2.h"
EXPORT int dep_answer(void) { return 42; }
