// Certificates and paths, with OpenSSL's X509.
//
// Threads: X509 parses its extensions at the first query, under its own lock, and we make that query when the
// certificate is created. After that it is only read. X509_STORE locks its list itself.
#include "CCrypto.h"
#include "copy.h"
#include "times.h"

#include <openssl/asn1.h>
#include <openssl/err.h>
#include <openssl/objects.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>
#include <string.h>

static X509 *x509_of(const perennial_certificate *certificate) { return (X509 *)certificate; }

/// OpenSSL's reader also accepts dates without seconds, with fractions of seconds, and with other zones. None of those
/// has the length of the valid form.
bool perennial_seconds_since_1970(const ASN1_TIME *time, int64_t *out) {
    if (ASN1_STRING_length(time) != (ASN1_STRING_type(time) == V_ASN1_UTCTIME ? 13 : 15)) return false;
    ASN1_TIME *zero = ASN1_TIME_set(NULL, 0);
    int days = 0, seconds = 0;
    bool is_done = zero && ASN1_TIME_diff(&days, &seconds, zero, time) == 1;
    ASN1_TIME_free(zero);
    *out = (int64_t)days * 86400 + seconds;
    return is_done;
}

/// SubjectPublicKeyInfo of a P-256 key up to the coordinates: the only DER form with a named curve and an uncompressed
/// point.
static const uint8_t p256_prefix[27] = {
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06,
    0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00, 0x04,
};

static bool has_p256_point(X509 *x509, uint8_t *point) {
    uint8_t *der = NULL;
    int count = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(x509), &der);
    bool is_p256 = count == 91 && memcmp(der, p256_prefix, sizeof p256_prefix) == 0;
    if (is_p256) memcpy(point, der + 26, 65);
    OPENSSL_free(der);
    return is_p256;
}

static bool is_encoded_as(X509 *x509, const uint8_t *der, size_t count) {
    uint8_t *again = NULL;
    int written = i2d_X509(x509, &again);
    bool is_same = written > 0 && (size_t)written == count && memcmp(again, der, count) == 0;
    OPENSSL_free(again);
    return is_same;
}

static perennial_certificate_result read_der(
    const uint8_t *der, size_t count, X509 **out, perennial_certificate_facts *facts) {
    const uint8_t *end = der;
    X509 *x509 = count <= INT32_MAX ? d2i_X509(NULL, &end, (long)count) : NULL;
    *out = x509;
    if (!x509) return PERENNIAL_CERTIFICATE_UNREADABLE;
    if (end != der + count) return PERENNIAL_CERTIFICATE_TRAILING;
    if (!is_encoded_as(x509, der, count)) return PERENNIAL_CERTIFICATE_NOT_DER;
    if (!perennial_seconds_since_1970(X509_get0_notBefore(x509), &facts->not_before)) return PERENNIAL_CERTIFICATE_BAD_TIME;
    if (!perennial_seconds_since_1970(X509_get0_notAfter(x509), &facts->not_after)) return PERENNIAL_CERTIFICATE_BAD_TIME;
    // This is also the first query about extensions; see the top of the file.
    facts->is_authority = X509_check_ca(x509) == 1;
    // All bits if there is no keyUsage; no bits if an extension cannot be read.
    facts->may_verify_signatures = (X509_get_key_usage(x509) & KU_DIGITAL_SIGNATURE) != 0;
    facts->has_p256_point = has_p256_point(x509, facts->p256_point);
    return PERENNIAL_CERTIFICATE_OK;
}

perennial_certificate_result perennial_certificate_create(
    const uint8_t *der, size_t count, perennial_certificate **out, perennial_certificate_facts *facts) {
    X509 *x509 = NULL;
    memset(facts, 0, sizeof *facts);
    perennial_certificate_result result = read_der(der, count, &x509, facts);
    if (result != PERENNIAL_CERTIFICATE_OK) {
        X509_free(x509);
        x509 = NULL;
    }
    ERR_clear_error();
    *out = (perennial_certificate *)x509;
    return result;
}

void perennial_certificate_destroy(perennial_certificate *certificate) { X509_free(x509_of(certificate)); }

bool perennial_certificate_is_self_signed(const perennial_certificate *certificate) {
    bool is_self_signed = X509_self_signed(x509_of(certificate), 1) == 1;
    ERR_clear_error();
    return is_self_signed;
}

bool perennial_certificate_is_signed_by(
    const perennial_certificate *certificate, const perennial_certificate *issuer) {
    EVP_PKEY *key = X509_get0_pubkey(x509_of(issuer));
    bool is_signed = key && X509_verify(x509_of(certificate), key) == 1;
    ERR_clear_error();
    return is_signed;
}

bool perennial_certificate_has_extension(const perennial_certificate *certificate, const char *identifier) {
    ASN1_OBJECT *object = OBJ_txt2obj(identifier, 1);
    bool is_there = object && X509_get_ext_by_OBJ(x509_of(certificate), object, -1) >= 0;
    ASN1_OBJECT_free(object);
    ERR_clear_error();
    return is_there;
}

size_t perennial_certificate_serial(
    const perennial_certificate *certificate, uint8_t *out, size_t capacity, bool *is_negative) {
    const ASN1_INTEGER *serial = X509_get0_serialNumber(x509_of(certificate));
    *is_negative = ASN1_STRING_type(serial) == V_ASN1_NEG_INTEGER;
    return perennial_copy(ASN1_STRING_get0_data(serial), (size_t)ASN1_STRING_length(serial), out, capacity);
}

size_t perennial_certificate_subject(const perennial_certificate *certificate, uint8_t *out, size_t capacity) {
    BIO *bytes = BIO_new(BIO_s_mem());
    size_t count = 0;
    // Control characters are escaped, so that a name cannot write lines into a log; letters beyond ASCII are not.
    unsigned long flags = XN_FLAG_ONELINE & ~ASN1_STRFLGS_ESC_MSB & ~XN_FLAG_SPC_EQ;
    if (bytes && X509_NAME_print_ex(bytes, X509_get_subject_name(x509_of(certificate)), 0, flags) >= 0) {
        char *text = NULL;
        long written = BIO_get_mem_data(bytes, &text);
        count = perennial_copy((const uint8_t *)text, (size_t)written, out, capacity);
    }
    BIO_free(bytes);
    ERR_clear_error();
    return count;
}

size_t perennial_certificate_subject_der(const perennial_certificate *certificate, uint8_t *out, size_t capacity) {
    const uint8_t *der = NULL;
    size_t count = 0;
    if (X509_NAME_get0_der(X509_get_subject_name(x509_of(certificate)), &der, &count) != 1) return 0;
    return perennial_copy(der, count, out, capacity);
}

size_t perennial_certificate_subject_key_identifier(
    const perennial_certificate *certificate, uint8_t *out, size_t capacity) {
    const ASN1_OCTET_STRING *identifier = X509_get0_subject_key_id(x509_of(certificate));
    if (!identifier) return 0;
    return perennial_copy(ASN1_STRING_get0_data(identifier), (size_t)ASN1_STRING_length(identifier), out, capacity);
}

size_t perennial_address_bytes(const char *address, uint8_t *out) {
    ASN1_OCTET_STRING *bytes = a2i_IPADDRESS(address);
    size_t count = bytes ? perennial_copy(ASN1_STRING_get0_data(bytes), (size_t)ASN1_STRING_length(bytes), out, 16) : 0;
    ASN1_OCTET_STRING_free(bytes);
    ERR_clear_error();
    return count;
}

static X509_STORE *store_of(const perennial_anchor *anchor) { return (X509_STORE *)anchor; }

perennial_anchor *perennial_anchor_create(const perennial_certificate *root) {
    X509_STORE *store = X509_STORE_new();
    // Takes its own reference.
    if (store && X509_STORE_add_cert(store, x509_of(root)) != 1) {
        X509_STORE_free(store);
        store = NULL;
    }
    ERR_clear_error();
    return (perennial_anchor *)store;
}

void perennial_anchor_destroy(perennial_anchor *anchor) { X509_STORE_free(store_of(anchor)); }

bool perennial_anchor_judge(
    const perennial_anchor *anchor, const perennial_certificate *leaf, const perennial_certificate *intermediate) {
    bool is_path = false;
    STACK_OF(X509) *others = sk_X509_new_null();
    X509_STORE_CTX *context = X509_STORE_CTX_new();
    if (others && context && sk_X509_push(others, x509_of(intermediate)) > 0
        && X509_STORE_CTX_init(context, store_of(anchor), x509_of(leaf), others) == 1) {
        // The caller checks the dates, at a time that OpenSSL does not know. All other flags are the defaults. Above
        // all, a path ends at a self-signed certificate, never at a pinned one in its middle (PARTIAL_CHAIN).
        X509_STORE_CTX_set_flags(context, X509_V_FLAG_NO_CHECK_TIME);
        if (X509_verify_cert(context) == 1) {
            // The path begins with the leaf and ends with the root, and there is one certificate to put between them.
            is_path = sk_X509_num(X509_STORE_CTX_get0_chain(context)) == 3;
        }
    }
    X509_STORE_CTX_free(context);
    sk_X509_free(others);
    ERR_clear_error();
    return is_path;
}
