// Signatures of a TLS server, with OpenSSL's high-level interface: a handshake needs one, and RSA as well as ECDSA.
#include "CCrypto.h"

#include <limits.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>

// The EVP_PKEY behind the public type. Signing only reads it.
static EVP_PKEY *key_of(const perennial_server_key *key) { return (EVP_PKEY *)key; }

/// Without this callback OpenSSL would ask for the password at the terminal.
static int no_password(char *buffer, int size, int is_writing, void *context) {
    (void)buffer, (void)size, (void)is_writing, (void)context;
    return -1;
}

perennial_server_key *perennial_server_key_from_pem(const uint8_t *pem, size_t count) {
    if (count > INT_MAX) return NULL;
    BIO *text = BIO_new_mem_buf(pem, (int)count);
    EVP_PKEY *key = text ? PEM_read_bio_PrivateKey(text, NULL, no_password, NULL) : NULL;
    BIO_free(text);
    if (key && !EVP_PKEY_is_a(key, "RSA") && !EVP_PKEY_is_a(key, "EC")) {
        EVP_PKEY_free(key);
        key = NULL;
    }
    ERR_clear_error();
    return (perennial_server_key *)key;
}

void perennial_server_key_destroy(perennial_server_key *key) { EVP_PKEY_free(key_of(key)); }

size_t perennial_server_key_signature_limit(const perennial_server_key *key) { return (size_t)EVP_PKEY_get_size(key_of(key)); }

static const EVP_MD *sha2(int bits) { return bits == 256 ? EVP_sha256() : bits == 384 ? EVP_sha384() : EVP_sha512(); }

static bool pad(EVP_PKEY_CTX *context, int pss_hash_bits) {
    if (pss_hash_bits == 0) return EVP_PKEY_CTX_set_rsa_padding(context, RSA_PKCS1_PADDING) == 1;
    return EVP_PKEY_CTX_set_rsa_padding(context, RSA_PKCS1_PSS_PADDING) == 1
        && EVP_PKEY_CTX_set_signature_md(context, sha2(pss_hash_bits)) == 1
        && EVP_PKEY_CTX_set_rsa_pss_saltlen(context, RSA_PSS_SALTLEN_DIGEST) == 1;
}

size_t perennial_server_key_sign(
    const perennial_server_key *key, int pss_hash_bits, const uint8_t *digest, size_t count, uint8_t *out, size_t capacity) {
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new(key_of(key), NULL);
    size_t written = capacity;
    bool is_signed = context && EVP_PKEY_sign_init(context) == 1
        && (!EVP_PKEY_is_a(key_of(key), "RSA") || pad(context, pss_hash_bits))
        && EVP_PKEY_sign(context, out, &written, digest, count) == 1;
    EVP_PKEY_CTX_free(context);
    ERR_clear_error();
    return is_signed ? written : 0;
}
