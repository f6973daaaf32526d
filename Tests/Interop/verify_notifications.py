"""Verifies signed notifications with Apple's own library.

Usage: verify_notifications.py ROOT_PEM APPS_JSON < LINES

Each line of standard input is a JSON string, the text of one signed payload. For each, one line says "ok" or the reason of the
refusal: the name of the library's status, or of the exception that it raises. The nested signed parts are verified, too, as the
library's documentation requires. A payload is accepted if any app and environment of the file accepts it.
"""

import json
import ssl
import sys

from appstoreserverlibrary.models.Environment import Environment
from appstoreserverlibrary.signed_data_verifier import SignedDataVerifier, VerificationException


def opinion(verifier, payload):
    try:
        notification = verifier.verify_and_decode_notification(payload)
        data, app_data = notification.data, notification.appData
        if data and data.signedTransactionInfo:
            verifier.verify_and_decode_signed_transaction(data.signedTransactionInfo)
        if data and data.signedRenewalInfo:
            verifier.verify_and_decode_renewal_info(data.signedRenewalInfo)
        if app_data and app_data.signedAppTransactionInfo:
            verifier.verify_and_decode_app_transaction(app_data.signedAppTransactionInfo)
        return "ok"
    except VerificationException as refusal:
        return refusal.status.name
    except Exception as error:  # The models raise exceptions for wrong types: that counts as a refusal.
        return type(error).__name__


def main():
    root = ssl.PEM_cert_to_DER_cert(open(sys.argv[1]).read())
    verifiers = [
        SignedDataVerifier([root], False, environment, app["bundleId"], app["appAppleId"])
        for app in json.load(open(sys.argv[2]))
        for environment in (Environment.PRODUCTION, Environment.SANDBOX)
    ]
    for line in sys.stdin:
        payload = json.loads(line)
        said = None
        for verifier in verifiers:
            said = opinion(verifier, payload)
            # After any other verdict the next verifier would say the same.
            if said not in ("INVALID_APP_IDENTIFIER", "INVALID_ENVIRONMENT"):
                break
        print(said)


main()
