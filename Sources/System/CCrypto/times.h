// For this module only: times of ASN.1.
#pragma once

#include <openssl/asn1.h>
#include <stdbool.h>
#include <stdint.h>

/// Accepts only the forms that RFC 5280 4.1.2.5 allows, which are also those of RFC 6960: with seconds, and with zone
/// Z.
bool perennial_seconds_since_1970(const ASN1_TIME *time, int64_t *out);
