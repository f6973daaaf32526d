#include "CSIMDJSON.h"
#include <simdjson.h>
const char *perennial_simdjson_version(void) { return "0"; }
