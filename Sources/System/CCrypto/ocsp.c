// Requests about revocation and the answers to them, with OpenSSL's OCSP.
//
// OCSP_basic_verify is not used: it uses the clock of the host, accepts any certificate below a root that a trust
// setting allows as a responder, and needs the issuer in its store as if it were a root. The rules of RFC 6960 4.2.2.2
// are short enough to be implemented here.
#include "CCrypto.h"
#include "copy.h"
#include "times.h"

#include <openssl/err.h>
#include <openssl/objects.h>
#include <openssl/ocsp.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <string.h>

static X509 *x509_of(const perennial_certificate *certificate) { return (X509 *)certificate; }

size_t perennial_ocsp_addresses(const perennial_certificate *certificate, uint8_t *out, size_t capacity) {
    // Leaves out texts that contain a NUL, so that none looks shorter than it is.
    STACK_OF(OPENSSL_STRING) *addresses = X509_get1_ocsp(x509_of(certificate));
    size_t total = 0;
    for (int i = 0; i < sk_OPENSSL_STRING_num(addresses); i++) {
        const char *address = sk_OPENSSL_STRING_value(addresses, i);
        size_t room = total < capacity ? capacity - total : 0;
        total += perennial_copy((const uint8_t *)address, strlen(address), room ? out + total : NULL, room);
        room = total < capacity ? capacity - total : 0;
        total += perennial_copy((const uint8_t *)"\n", 1, room ? out + total : NULL, room);
    }
    X509_email_free(addresses);
    ERR_clear_error();
    return total;
}

size_t perennial_ocsp_request(
    const perennial_certificate *certificate, const perennial_certificate *issuer, uint8_t *out, size_t capacity) {
    size_t count = 0;
    uint8_t *der = NULL;
    OCSP_REQUEST *request = OCSP_REQUEST_new();
    OCSP_CERTID *id = OCSP_cert_to_id(EVP_sha256(), x509_of(certificate), x509_of(issuer));
    if (request && id && OCSP_request_add0_id(request, id)) {
        // The request owns it now.
        id = NULL;
        int written = i2d_OCSP_REQUEST(request, &der);
        if (written > 0) count = perennial_copy(der, (size_t)written, out, capacity);
    }
    OPENSSL_free(der);
    OCSP_CERTID_free(id);
    OCSP_REQUEST_free(request);
    ERR_clear_error();
    return count;
}

/// SHA-256 and larger: a collision of SHA-1 would let one signature be valid for two answers.
static bool is_strong(int digest_nid) {
    const EVP_MD *digest = digest_nid == NID_undef ? NULL : EVP_get_digestbynid(digest_nid);
    return digest && EVP_MD_get_size(digest) >= 32;
}

/// The issuer itself must have issued the certificate for this purpose, with nothing in it that forbids it.
static bool may_answer_for(X509 *issuer, X509 *signer) {
    // The first query about extensions: OpenSSL parses them now and sets the flags below.
    if (X509_check_issued(issuer, signer) != X509_V_OK) return false;
    if (X509_get_extension_flags(signer) & (EXFLAG_CRITICAL | EXFLAG_INVALID)) return false;
    // Both return all bits if the extension is missing: that allows any use of a key, but is not a delegation.
    if (!(X509_get_extension_flags(signer) & EXFLAG_XKUSAGE)) return false;
    if (!(X509_get_extended_key_usage(signer) & XKU_OCSP_SIGN)) return false;
    if (!(X509_get_key_usage(signer) & KU_DIGITAL_SIGNATURE)) return false;
    int digest = NID_undef;
    if (!X509_get_signature_info(signer, &digest, NULL, NULL, NULL) || !is_strong(digest)) return false;
    EVP_PKEY *key = X509_get0_pubkey(issuer);
    return key && X509_verify(signer, key) == 1;
}

static bool is_signed_by(OCSP_BASICRESP *basic, X509 *signer) {
    const X509_ALGOR *algorithm = OCSP_resp_get0_tbs_sigalg(basic);
    const ASN1_OBJECT *name = NULL;
    X509_ALGOR_get0(&name, NULL, NULL, algorithm);
    int digest = NID_undef;
    if (!OBJ_find_sigid_algs(OBJ_obj2nid(name), &digest, NULL) || !is_strong(digest)) return false;
    EVP_PKEY *key = X509_get0_pubkey(signer);
    return key
        && ASN1_item_verify(
               ASN1_ITEM_rptr(OCSP_RESPDATA), algorithm, OCSP_resp_get0_signature(basic),
               (void *)OCSP_resp_get0_respdata(basic), key)
        == 1;
}

static perennial_ocsp_result check_signer(OCSP_BASICRESP *basic, X509 *issuer, perennial_ocsp_answer *answer) {
    STACK_OF(X509) *known = sk_X509_new_null();
    X509 *signer = NULL;
    // Found by the name or the key that the answer gives: first the issuer, then the certificates that came with the
    // answer.
    bool is_found = known && sk_X509_push(known, issuer) > 0 && OCSP_resp_get0_signer(basic, &signer, known) == 1;
    sk_X509_free(known);
    if (!is_found) return PERENNIAL_OCSP_STRANGER;
    answer->signer_not_before = INT64_MIN;
    answer->signer_not_after = INT64_MAX;
    if (signer != issuer) {
        if (!may_answer_for(issuer, signer)) return PERENNIAL_OCSP_STRANGER;
        if (!perennial_seconds_since_1970(X509_get0_notBefore(signer), &answer->signer_not_before)
            || !perennial_seconds_since_1970(X509_get0_notAfter(signer), &answer->signer_not_after)) {
            return PERENNIAL_OCSP_BAD_TIME;
        }
    }
    return is_signed_by(basic, signer) ? PERENNIAL_OCSP_READ : PERENNIAL_OCSP_BAD_SIGNATURE;
}

/// Responders may identify the certificate with another hash than the request.
static bool names(const OCSP_SINGLERESP *single, X509 *certificate, X509 *issuer) {
    const OCSP_CERTID *id = OCSP_SINGLERESP_get0_id(single);
    ASN1_OBJECT *algorithm = NULL;
    OCSP_id_get0_info(NULL, &algorithm, NULL, NULL, (OCSP_CERTID *)id);
    int nid = OBJ_obj2nid(algorithm);
    // SHA-1 here only selects among names that the issuer has signed; a collision gains nothing.
    if (nid != NID_sha1 && nid != NID_sha256 && nid != NID_sha384 && nid != NID_sha512) return false;
    OCSP_CERTID *expected = OCSP_cert_to_id(EVP_get_digestbynid(nid), certificate, issuer);
    bool is_same = expected && OCSP_id_cmp(expected, id) == 0;
    OCSP_CERTID_free(expected);
    return is_same;
}

static bool read_single(OCSP_SINGLERESP *single, perennial_ocsp_answer *answer) {
    ASN1_GENERALIZEDTIME *this_update = NULL, *next_update = NULL;
    int status = OCSP_single_get0_status(single, NULL, NULL, &this_update, &next_update);
    // Without an end, somebody on the way could replay an answer for ever: there is no nonce.
    if (!this_update || !next_update) return false;
    if (!perennial_seconds_since_1970(this_update, &answer->this_update)) return false;
    if (!perennial_seconds_since_1970(next_update, &answer->next_update)) return false;
    answer->status = status == V_OCSP_CERTSTATUS_GOOD ? PERENNIAL_OCSP_GOOD
        : status == V_OCSP_CERTSTATUS_REVOKED         ? PERENNIAL_OCSP_REVOKED
                                                      : PERENNIAL_OCSP_UNKNOWN;
    return true;
}

/// If several answers name the certificate: the worst status, within the time that all of them cover.
static perennial_ocsp_result find_status(
    OCSP_BASICRESP *basic, X509 *certificate, X509 *issuer, perennial_ocsp_answer *answer) {
    bool is_found = false;
    for (int i = 0; i < OCSP_resp_count(basic); i++) {
        OCSP_SINGLERESP *single = OCSP_resp_get0(basic, i);
        if (!names(single, certificate, issuer)) continue;
        // A critical extension changes the meaning of the answer, and none is supported here.
        if (OCSP_SINGLERESP_get_ext_by_critical(single, 1, -1) >= 0) return PERENNIAL_OCSP_UNREADABLE;
        perennial_ocsp_answer next = *answer;
        if (!read_single(single, &next)) return PERENNIAL_OCSP_BAD_TIME;
        if (is_found) {
            if (next.status < answer->status) next.status = answer->status;
            if (next.this_update < answer->this_update) next.this_update = answer->this_update;
            if (next.next_update > answer->next_update) next.next_update = answer->next_update;
        }
        *answer = next;
        is_found = true;
    }
    return is_found ? PERENNIAL_OCSP_READ : PERENNIAL_OCSP_OF_ANOTHER;
}

perennial_ocsp_result perennial_ocsp_read(
    const uint8_t *der, size_t count, const perennial_certificate *certificate, const perennial_certificate *issuer,
    perennial_ocsp_answer *answer) {
    memset(answer, 0, sizeof *answer);
    const uint8_t *end = der;
    OCSP_RESPONSE *response = count <= INT32_MAX ? d2i_OCSP_RESPONSE(NULL, &end, (long)count) : NULL;
    OCSP_BASICRESP *basic = NULL;
    perennial_ocsp_result result = PERENNIAL_OCSP_UNREADABLE;
    if (!response || end != der + count) goto done;
    result = PERENNIAL_OCSP_REFUSED;
    if (OCSP_response_status(response) != OCSP_RESPONSE_STATUS_SUCCESSFUL) goto done;
    result = PERENNIAL_OCSP_UNREADABLE;
    basic = OCSP_response_get1_basic(response);
    if (!basic || OCSP_BASICRESP_get_ext_by_critical(basic, 1, -1) >= 0) goto done;
    result = check_signer(basic, x509_of(issuer), answer);
    if (result != PERENNIAL_OCSP_READ) goto done;
    result = find_status(basic, x509_of(certificate), x509_of(issuer), answer);
done:
    OCSP_BASICRESP_free(basic);
    OCSP_RESPONSE_free(response);
    ERR_clear_error();
    return result;
}
