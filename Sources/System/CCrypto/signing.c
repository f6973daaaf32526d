// ECDSA signatures, with a random nonce or with the nonce of RFC 6979, which OpenSSL 3.0 lacks.
#define OPENSSL_SUPPRESS_DEPRECATED
#include "CCrypto.h"

#include <openssl/bn.h>
#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/ecdsa.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <string.h>

/// Size of the largest hash and of the largest number.
enum { LARGEST = 48 };

/// The two HMAC values of RFC 6979 3.2, here as a generator of candidates for the nonce.
typedef struct {
    const EVP_MD *hash;
    size_t count;
    uint8_t key[LARGEST], value[LARGEST];
} generator;

static bool hmac(const generator *g, const uint8_t *bytes, size_t count, uint8_t *out) {
    unsigned int written = 0;
    return HMAC(g->hash, g->key, (int)g->count, bytes, count, out, &written) && written == g->count;
}

/// K = HMAC(K, V || mark || material), V = HMAC(K, V): steps d and e, f and g, and the retry of h.
static bool stir(generator *g, uint8_t mark, const uint8_t *material, size_t count) {
    uint8_t bytes[LARGEST + 1 + 2 * LARGEST];
    memcpy(bytes, g->value, g->count);
    bytes[g->count] = mark;
    if (count > 0) memcpy(bytes + g->count + 1, material, count);
    uint8_t key[LARGEST];
    bool is_done = hmac(g, bytes, g->count + 1 + count, key);
    memcpy(g->key, key, g->count);
    OPENSSL_cleanse(bytes, sizeof bytes);
    OPENSSL_cleanse(key, sizeof key);
    uint8_t value[LARGEST];
    is_done = is_done && hmac(g, g->value, g->count, value);
    memcpy(g->value, value, g->count);
    return is_done;
}

/// The orders of both curves have exactly as many bits as their numbers have in bytes, so bits2int only drops the
/// excess of a hash.
static BIGNUM *number_of_bits(const uint8_t *bytes, size_t count, size_t number) {
    return BN_bin2bn(bytes, (int)(count < number ? count : number), NULL);
}

/// Steps b to g: makes the generator for this private number and this digest.
static bool seed(
    generator *g, const BIGNUM *private_number, const BIGNUM *order, size_t number, const uint8_t *digest,
    size_t digest_count) {
    g->hash = digest_count == LARGEST ? EVP_sha384() : EVP_sha256();
    g->count = digest_count;
    memset(g->value, 1, sizeof g->value);
    memset(g->key, 0, sizeof g->key);
    uint8_t material[2 * LARGEST];
    BIGNUM *reduced = number_of_bits(digest, digest_count, number);
    // bits2octets: one subtraction is enough, because the number has no more bits than the order.
    bool is_done = reduced && (BN_cmp(reduced, order) < 0 || BN_sub(reduced, reduced, order) == 1)
        && BN_bn2binpad(private_number, material, (int)number) == (int)number
        && BN_bn2binpad(reduced, material + number, (int)number) == (int)number
        && stir(g, 0, material, 2 * number) && stir(g, 1, material, 2 * number);
    BN_free(reduced);
    OPENSSL_cleanse(material, sizeof material);
    return is_done;
}

/// Step h: one candidate of `number` bytes.
static BIGNUM *candidate(generator *g, size_t number) {
    uint8_t bytes[2 * LARGEST];
    size_t count = 0;
    while (count < number) {
        uint8_t value[LARGEST];
        if (!hmac(g, g->value, g->count, value)) return NULL;
        memcpy(g->value, value, g->count);
        memcpy(bytes + count, value, g->count);
        count += g->count;
    }
    BIGNUM *result = number_of_bits(bytes, count, number);
    OPENSSL_cleanse(bytes, sizeof bytes);
    return result;
}

/// Computes r and the inverse of the nonce; false if this nonce cannot be used (r = 0) or something failed.
static bool prepare(const EC_GROUP *group, const BIGNUM *nonce, BIGNUM **inverse, BIGNUM *r) {
    const BIGNUM *order = EC_GROUP_get0_order(group);
    BN_CTX *context = BN_CTX_secure_new();
    EC_POINT *point = EC_POINT_new(group);
    bool is_done = context && point && EC_POINT_mul(group, point, nonce, NULL, NULL, context) == 1
        && EC_POINT_get_affine_coordinates(group, point, r, NULL, context) == 1
        && BN_nnmod(r, r, order, context) == 1 && !BN_is_zero(r)
        && (*inverse = BN_mod_inverse(NULL, nonce, order, context)) != NULL;
    EC_POINT_clear_free(point);
    BN_CTX_free(context);
    return is_done;
}

static ECDSA_SIG *sign_again_the_same(EC_KEY *key, size_t number, const uint8_t *digest, size_t digest_count) {
    const EC_GROUP *group = EC_KEY_get0_group(key);
    const BIGNUM *order = EC_GROUP_get0_order(group);
    generator g;
    if (!seed(&g, EC_KEY_get0_private_key(key), order, number, digest, digest_count)) return NULL;
    ECDSA_SIG *signature = NULL;
    // A candidate is refused with a probability of 2 to the -32 at most; after this many there is another reason.
    for (int attempt = 0; attempt < 16 && !signature; attempt++) {
        BIGNUM *nonce = candidate(&g, number), *inverse = NULL, *r = BN_new();
        if (nonce) BN_set_flags(nonce, BN_FLG_CONSTTIME);
        if (nonce && r && !BN_is_zero(nonce) && BN_cmp(nonce, order) < 0 && prepare(group, nonce, &inverse, r)) {
            signature = ECDSA_do_sign_ex(digest, (int)digest_count, inverse, r, key);
        }
        BN_clear_free(nonce);
        BN_clear_free(inverse);
        BN_free(r);
        if (!signature && !stir(&g, 0, NULL, 0)) break;
    }
    OPENSSL_cleanse(&g, sizeof g);
    return signature;
}

bool perennial_key_sign(
    const perennial_key *handle, int curve, const uint8_t *digest, size_t digest_count, bool is_deterministic,
    uint8_t *out) {
    EC_KEY *key = (EC_KEY *)handle;
    if (digest_count != 32 && digest_count != LARGEST) return false;
    ECDSA_SIG *signature = is_deterministic ? sign_again_the_same(key, (size_t)curve, digest, digest_count)
                                            : ECDSA_do_sign(digest, (int)digest_count, key);
    bool is_done = signature && BN_bn2binpad(ECDSA_SIG_get0_r(signature), out, curve) == curve
        && BN_bn2binpad(ECDSA_SIG_get0_s(signature), out + curve, curve) == curve;
    ECDSA_SIG_free(signature);
    ERR_clear_error();
    return is_done;
}
