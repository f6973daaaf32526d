// Within this module only: times as ASN.1 writes them.
#pragma once

#include <openssl/asn1.h>
#include <stdbool.h>
#include <stdint.h>

/// Only the forms that RFC 5280 4.1.2.5 allows, which are those of RFC 6960 too: seconds are there, the zone is Z.
bool perennial_seconds_since_1970(const ASN1_TIME *time, int64_t *out);
