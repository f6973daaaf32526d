// SHA-2 with OpenSSL's plain structures. They are deprecated in favour of contexts on the heap, which need an
// allocation for each hash and another one for each copy.
#define OPENSSL_SUPPRESS_DEPRECATED
#include "CCrypto.h"

#include <openssl/sha.h>
#include <string.h>

// The state is copied to and from OpenSSL's type, so that neither side accesses the other's type.
_Static_assert(sizeof(perennial_sha256) == sizeof(SHA256_CTX), "perennial_sha256 holds a SHA256_CTX");

void perennial_sha256_begin(perennial_sha256 *state) {
    SHA256_CTX context;
    SHA256_Init(&context);
    memcpy(state, &context, sizeof context);
}

void perennial_sha256_add(perennial_sha256 *state, const uint8_t *bytes, size_t count) {
    SHA256_CTX context;
    memcpy(&context, state, sizeof context);
    SHA256_Update(&context, bytes, count);
    memcpy(state, &context, sizeof context);
}

void perennial_sha256_end(const perennial_sha256 *state, uint8_t *out) {
    SHA256_CTX context;
    memcpy(&context, state, sizeof context);
    SHA256_Final(out, &context);
}

void perennial_sha256_of(const uint8_t *bytes, size_t count, uint8_t *out) {
    SHA256_CTX context;
    SHA256_Init(&context);
    SHA256_Update(&context, bytes, count);
    SHA256_Final(out, &context);
}

void perennial_sha384(const uint8_t *bytes, size_t count, uint8_t *out) { SHA384(bytes, count, out); }
