"""Checks our side of the App Store Server API with Apple's own library.

Usage: check_api.py jwt KEY_PEM KEY_ID ISSUER_ID BUNDLE_ID < TOKENS
       check_api.py bodies FILE       (- is standard input)
       check_api.py calls BASE_URL KEY_PEM KEY_ID ISSUER_ID BUNDLE_ID
       check_api.py codes

jwt: each line of standard input is one token. It must equal the token that the library's client makes with the same key, except
for the times. Prints one line for each: "ok", or "refused: " and the reason.

bodies: each line of the file is an object with "version" ("v1" or "v2") and "body", one body of a consumption request. It must be
a body that the library itself would send: without members and values that it does not know, and unchanged when the library reads
and writes it. Prints one line for each: "ok " and the fields as the library reads them, with the names of values; or "refused: "
and the reason.

calls: the library's client sends each kind of request that we send to BASE_URL, in the order of `calls` below.
Prints one line for each: the answer as the library reads it.

codes: prints the error codes that the library knows, one per line.
"""

import enum
import json
import sys
import warnings

import attr
import jwt
from appstoreserverlibrary.api_client import APIError, AppStoreServerAPIClient, GetTransactionHistoryVersion
from appstoreserverlibrary.models.ConsumptionRequest import ConsumptionRequest
from appstoreserverlibrary.models.ConsumptionRequestV1 import ConsumptionRequestV1
from appstoreserverlibrary.models.DeliveryStatus import DeliveryStatus
from appstoreserverlibrary.models.Environment import Environment
from appstoreserverlibrary.models.InAppOwnershipType import InAppOwnershipType
from appstoreserverlibrary.models.LibraryUtility import _get_cattrs_converter
from appstoreserverlibrary.models.NotificationHistoryRequest import NotificationHistoryRequest
from appstoreserverlibrary.models.NotificationTypeV2 import NotificationTypeV2
from appstoreserverlibrary.models.Status import Status
from appstoreserverlibrary.models.Subtype import Subtype
from appstoreserverlibrary.models.TransactionHistoryRequest import Order, ProductType, TransactionHistoryRequest
from cryptography.hazmat.primitives import serialization

LONGEST_LIFE_SECONDS = 60 * 60
TIMES = {"iat", "exp"}
MODELS = {"v1": ConsumptionRequestV1, "v2": ConsumptionRequest}


class Refusal(Exception):
    pass


def expect(condition, why):
    if not condition:
        raise Refusal(why)


def client_of(key_path, key_id, issuer_id, bundle_id):
    with open(key_path, "rb") as file:
        return AppStoreServerAPIClient(file.read(), key_id, issuer_id, bundle_id, Environment.PRODUCTION)


def check_token(token, client, public_key):
    expected = client._generate_token()
    unchecked = {"verify_signature": False}
    claims = jwt.decode(
        token,
        public_key,
        algorithms=["ES256"],
        audience=jwt.decode(expected, options=unchecked)["aud"],
        issuer=jwt.decode(expected, options=unchecked)["iss"],
        options={"require": ["iss", "iat", "exp", "aud", "bid"]},
    )
    head, expected_head = jwt.get_unverified_header(token), jwt.get_unverified_header(expected)
    expect(head == expected_head, f"the header has {sorted(head)}, the library's has {sorted(expected_head)}")
    expect(all(type(claims[name]) is int for name in TIMES), "a time is no whole number")
    expect(0 < claims["exp"] - claims["iat"] <= LONGEST_LIFE_SECONDS, f"it lives {claims['exp'] - claims['iat']} s")
    rest = {name: value for name, value in claims.items() if name not in TIMES}
    expected_claims = jwt.decode(expected, options=unchecked)
    expected_rest = {name: value for name, value in expected_claims.items() if name not in TIMES}
    expect(rest == expected_rest, f"its claims are {rest}, the library's are {expected_rest}")
    return "ok"


def unique_members(pairs):
    expect(len(dict(pairs)) == len(pairs), "a member is there twice")
    return dict(pairs)


def check_body(line):
    given = json.loads(line, object_pairs_hook=unique_members)
    expect(isinstance(given, dict) and set(given) == {"version", "body"}, "the line is no object of version and body")
    model, body = MODELS[given["version"]], given["body"]
    expect(isinstance(body, dict), "the body is no object")
    converter = _get_cattrs_converter(model)
    # Members by their JSON names. For members with a set of values the library keeps a second, raw field.
    fields = attr.fields_dict(model)
    known = {name for name in fields if not name.startswith("raw")}
    expect(set(body) <= known, f"unknown members {sorted(set(body) - known)}")
    if model is ConsumptionRequestV1:
        expect(set(body) == known, f"V1 wants every member: {sorted(known - set(body))} missing")
    read = converter.structure(body, model)
    for name in body:
        expect(getattr(read, name) is not None, f"{name} has a value that is none")
    written = converter.unstructure(read)
    # Compared as text, because otherwise 1 and true are equal.
    same = json.dumps(written, sort_keys=True) == json.dumps(body, sort_keys=True)
    expect(same, f"the library would send {json.dumps(written, sort_keys=True)}")
    values = {name: getattr(read, name) for name in body}
    named = {name: value.name if isinstance(value, enum.Enum) else value for name, value in values.items()}
    return "ok " + json.dumps(named, sort_keys=True)


def calls(client):
    yield lambda: client.send_consumption_information(
        "2000000123456789", ConsumptionRequest(customerConsented=True, sampleContentProvided=False, deliveryStatus=DeliveryStatus.DELIVERED))
    yield lambda: client.send_consumption_data("2000000123456789", ConsumptionRequestV1(customerConsented=True))
    yield client.request_test_notification
    yield lambda: client.get_test_notification_status("ce3af791-365e-4c60-841b-1674b43c1609_1656711609000")
    failures = NotificationHistoryRequest(
        startDate=1781256600000, endDate=1784534400000, onlyFailures=True, notificationType=NotificationTypeV2.DID_RENEW,
        notificationSubtype=Subtype.BILLING_RECOVERY)
    yield lambda: client.get_notification_history(None, failures)
    of_customer = NotificationHistoryRequest(startDate=1781256600000, endDate=1784534400000, transactionId="2000000123456789")
    yield lambda: client.get_notification_history("a+b/c=&?%20", of_customer)
    everything = TransactionHistoryRequest(
        startDate=1781256600000, endDate=1784534400000, productIds=["pro.monthly", "coins & more/é"],
        productTypes=[ProductType.AUTO_RENEWABLE, ProductType.CONSUMABLE], sort=Order.DESCENDING,
        subscriptionGroupIdentifiers=["21456789"], inAppOwnershipType=InAppOwnershipType.FAMILY_SHARED, revoked=False)
    yield lambda: client.get_transaction_history("2000000123456789", "1781256600000_1", everything, GetTransactionHistoryVersion.V2)
    yield lambda: client.get_transaction_history(
        "2000000123456789", None, TransactionHistoryRequest(), GetTransactionHistoryVersion.V2)
    statuses = [Status.ACTIVE, Status.BILLING_GRACE_PERIOD]
    yield lambda: client.get_all_subscription_statuses("2000000123456789", statuses)
    yield lambda: client.get_transaction_info("2000000123456789")


def answer_of(call):
    answer = call()
    return None if answer is None else _get_cattrs_converter(type(answer)).unstructure(answer)


def judged(check, *arguments):
    try:
        return check(*arguments)
    except Refusal as refusal:
        return f"refused: {refusal}"
    except Exception as error:  # The libraries raise various exceptions: each counts as a refusal.
        return f"refused: {type(error).__name__}: {' '.join(str(error).split())}"


def main():
    # V1 is deprecated, but we need it.
    warnings.simplefilter("ignore", DeprecationWarning)
    mode, arguments = sys.argv[1], sys.argv[2:]
    if mode == "jwt":
        client = client_of(*arguments)
        with open(arguments[0], "rb") as file:
            public_key = serialization.load_pem_private_key(file.read(), None).public_key()
        for line in sys.stdin:
            print(judged(check_token, line.strip(), client, public_key))
    elif mode == "bodies":
        with sys.stdin if arguments[0] == "-" else open(arguments[0]) as file:
            for line in file:
                print(judged(check_body, line))
    elif mode == "calls":
        client = client_of(*arguments[1:])
        client._base_url = arguments[0]
        for call in calls(client):
            print(json.dumps(answer_of(call)))
    elif mode == "codes":
        for code in APIError:
            print(code.value)
    else:
        sys.exit(f"unknown mode {mode}")


main()
