// Finds members that occur twice: readers disagree about which one counts.
#pragma once

#include "CSIMDJSON.h"

namespace perennial {

/// `object` is the first token of the object. Returns the name of the first member whose name occurred before, or NULL.
/// Objects inside are not checked. Throws if there is no memory.
const perennial_json_token *repeated_name(const perennial_json_token *object);

} // namespace perennial
