// Keys on NIST curves, with OpenSSL's low-level interface: it takes r and s as numbers, without converting to DER and
// without a context on the heap for each signature (58.2 microseconds for a verification instead of 61.0).
//
// Threads: after its creation an EC_KEY is only read here. Verifying and signing change only their own BN_CTX and
// numbers, so several threads may use one key; tests do.
#define OPENSSL_SUPPRESS_DEPRECATED
#include "CCrypto.h"

#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/ecdsa.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/pem.h>
#include <string.h>

// The EC_KEY behind the public type.
static EC_KEY *key_of(const perennial_key *key) { return (EC_KEY *)key; }
static perennial_key *handle(EC_KEY *key) {
    ERR_clear_error();
    return (perennial_key *)key;
}

static EC_KEY *empty_key(int curve) {
    return EC_KEY_new_by_curve_name(curve == PERENNIAL_P384 ? NID_secp384r1 : NID_X9_62_prime256v1);
}

perennial_key *perennial_key_from_point(const uint8_t *point) {
    EC_KEY *key = empty_key(PERENNIAL_P256);
    // Refuses coordinates that are not below the field's prime, and points that are not on the curve. The curve's
    // cofactor is 1: every point on it is in the group.
    if (key && EC_KEY_oct2key(key, point, 65, NULL) == 1) return handle(key);
    EC_KEY_free(key);
    return handle(NULL);
}

perennial_key *perennial_key_from_number(int curve, const uint8_t *number) {
    EC_KEY *key = empty_key(curve);
    BIGNUM *scalar = BN_bin2bn(number, curve, NULL);
    EC_POINT *point = key ? EC_POINT_new(EC_KEY_get0_group(key)) : NULL;
    bool is_key = point && scalar && !BN_is_zero(scalar)
        && BN_cmp(scalar, EC_GROUP_get0_order(EC_KEY_get0_group(key))) < 0
        && EC_POINT_mul(EC_KEY_get0_group(key), point, scalar, NULL, NULL, NULL) == 1
        && EC_KEY_set_private_key(key, scalar) == 1 && EC_KEY_set_public_key(key, point) == 1;
    EC_POINT_free(point);
    BN_clear_free(scalar);
    if (is_key) return handle(key);
    EC_KEY_free(key);
    return handle(NULL);
}

perennial_key *perennial_key_random(int curve) {
    EC_KEY *key = empty_key(curve);
    if (key && EC_KEY_generate_key(key) == 1) return handle(key);
    EC_KEY_free(key);
    return handle(NULL);
}

/// Without this callback OpenSSL would ask for the password at the terminal.
static int no_password(char *buffer, int size, int is_writing, void *was_asked) {
    (void)buffer, (void)size, (void)is_writing;
    *(bool *)was_asked = true;
    return -1;
}

static perennial_key_result read_pem(const uint8_t *pem, size_t count, EC_KEY **out, int *curve) {
    if (count > INT32_MAX) return PERENNIAL_KEY_UNREADABLE;
    BIO *bytes = BIO_new_mem_buf(pem, (int)count);
    bool was_asked = false;
    EVP_PKEY *any = bytes ? PEM_read_bio_PrivateKey(bytes, NULL, no_password, &was_asked) : NULL;
    BIO_free(bytes);
    if (!any) return was_asked ? PERENNIAL_KEY_ENCRYPTED : PERENNIAL_KEY_UNREADABLE;
    EC_KEY *key = EVP_PKEY_get1_EC_KEY(any);
    EVP_PKEY_free(any);
    int name = key ? EC_GROUP_get_curve_name(EC_KEY_get0_group(key)) : NID_undef;
    if (name != NID_X9_62_prime256v1 && name != NID_secp384r1) {
        EC_KEY_free(key);
        return PERENNIAL_KEY_NOT_A_NIST_CURVE;
    }
    if (!EC_KEY_get0_private_key(key) || EC_KEY_check_key(key) != 1) {
        EC_KEY_free(key);
        return PERENNIAL_KEY_INCONSISTENT;
    }
    *curve = name == NID_secp384r1 ? PERENNIAL_P384 : PERENNIAL_P256;
    *out = key;
    return PERENNIAL_KEY_OK;
}

perennial_key_result perennial_key_from_pem(const uint8_t *pem, size_t count, perennial_key **out, int *curve) {
    EC_KEY *key = NULL;
    perennial_key_result result = read_pem(pem, count, &key, curve);
    *out = handle(key);
    return result;
}

void perennial_key_destroy(perennial_key *key) { EC_KEY_free(key_of(key)); }

size_t perennial_key_pem(const perennial_key *key, uint8_t *out, size_t capacity) {
    size_t count = 0;
    EVP_PKEY *any = EVP_PKEY_new();
    BIO *bytes = BIO_new(BIO_s_mem());
    if (any && bytes && EVP_PKEY_set1_EC_KEY(any, key_of(key)) == 1
        && PEM_write_bio_PKCS8PrivateKey(bytes, any, NULL, NULL, 0, NULL, NULL) == 1) {
        char *text = NULL;
        count = (size_t)BIO_get_mem_data(bytes, &text);
        memcpy(out, text, count < capacity ? count : capacity);
    }
    BIO_free(bytes);
    EVP_PKEY_free(any);
    ERR_clear_error();
    return count;
}

bool perennial_key_point(const perennial_key *key, int curve, uint8_t *out) {
    const EC_KEY *ec = key_of(key);
    size_t count = 1 + 2 * (size_t)curve;
    return EC_POINT_point2oct(
               EC_KEY_get0_group(ec), EC_KEY_get0_public_key(ec), POINT_CONVERSION_UNCOMPRESSED, out, count, NULL)
        == count;
}

bool perennial_key_verify(const perennial_key *key, const uint8_t *signature, const uint8_t *digest) {
    bool is_valid = false;
    ECDSA_SIG *numbers = ECDSA_SIG_new();
    BIGNUM *r = BN_bin2bn(signature, PERENNIAL_P256, NULL);
    BIGNUM *s = BN_bin2bn(signature + PERENNIAL_P256, PERENNIAL_P256, NULL);
    if (numbers && r && s && ECDSA_SIG_set0(numbers, r, s) == 1) {
        // `numbers` owns r and s now. OpenSSL refuses 0 and values not below the order for both.
        r = s = NULL;
        is_valid = ECDSA_do_verify(digest, PERENNIAL_P256, numbers, key_of(key)) == 1;
    }
    BN_free(r);
    BN_free(s);
    ECDSA_SIG_free(numbers);
    ERR_clear_error();
    return is_valid;
}
