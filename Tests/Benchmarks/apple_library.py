"""Verifies signed notifications with Apple's own library and prints the CPU seconds that it took.

The library caches verified chains only if its online checks are on. So they are on here, and the one call that would use the
network is removed: this is the library's best case. The chain is in the cache before the clock starts.

usage: apple_library.py PAYLOADS ROOT BUNDLE_ID APP_APPLE_ID   (PAYLOADS: one signed text per line; ROOT: PEM)
"""
import ssl
import sys
import time

from appstoreserverlibrary.models.Environment import Environment
from appstoreserverlibrary.signed_data_verifier import SignedDataVerifier, _ChainVerifier


def verify(verifier, payload):
    data = verifier.verify_and_decode_notification(payload).data
    transaction = verifier.verify_and_decode_signed_transaction(data.signedTransactionInfo)
    renewal = verifier.verify_and_decode_renewal_info(data.signedRenewalInfo)
    if transaction.originalTransactionId != renewal.originalTransactionId:
        raise SystemExit("the nested parts are about two subscriptions")


def main(payload_file, root_file, bundle_id, app_apple_id):
    with open(payload_file, encoding="ascii") as file:
        payloads = file.read().split()
    with open(root_file, encoding="ascii") as file:
        root = ssl.PEM_cert_to_DER_cert(file.read())
    _ChainVerifier.check_ocsp_status = lambda *_: None
    verifier = SignedDataVerifier([root], True, Environment.PRODUCTION, bundle_id, int(app_apple_id))
    # Warms up imports, converters and the chain, as in a running server.
    for payload in payloads[:50]:
        verify(verifier, payload)
    start = time.process_time()
    for payload in payloads:
        verify(verifier, payload)
    print(time.process_time() - start)


main(*sys.argv[1:])
