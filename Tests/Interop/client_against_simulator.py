"""Calls the simulator's App Store Server API with Apple's own client.

Usage: client_against_simulator.py SETTINGS TRUTH

SETTINGS is the file of `--api-settings` and TRUTH the file of `--truth` of one run with refund requests of every kind. Prints one
JSON object per line: what was tried ("case"), the answer according to Apple's documents ("expected": 202, or [status, error
code]) and the answer that the client got ("got").
"""

import json
import sys
import warnings

import requests
from appstoreserverlibrary.api_client import APIError, APIException, AppStoreServerAPIClient
from appstoreserverlibrary.models.AccountTenure import AccountTenure
from appstoreserverlibrary.models.ConsumptionRequest import ConsumptionRequest
from appstoreserverlibrary.models.ConsumptionRequestV1 import ConsumptionRequestV1
from appstoreserverlibrary.models.ConsumptionStatus import ConsumptionStatus
from appstoreserverlibrary.models.DeliveryStatus import DeliveryStatus
from appstoreserverlibrary.models.DeliveryStatusV1 import DeliveryStatusV1
from appstoreserverlibrary.models.Environment import Environment
from appstoreserverlibrary.models.LifetimeDollarsPurchased import LifetimeDollarsPurchased
from appstoreserverlibrary.models.LifetimeDollarsRefunded import LifetimeDollarsRefunded
from appstoreserverlibrary.models.Platform import Platform
from appstoreserverlibrary.models.PlayTime import PlayTime
from appstoreserverlibrary.models.RefundPreference import RefundPreference
from appstoreserverlibrary.models.RefundPreferenceV1 import RefundPreferenceV1
from appstoreserverlibrary.models.UserStatus import UserStatus
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

GENERAL = APIError.GENERAL_BAD_REQUEST.value
# For version 1: a member, a value outside its range, and the expected error code.
BEYOND = [
    ("rawAccountTenure", 8, APIError.INVALID_ACCOUNT_TENURE),
    ("appAccountToken", "no UUID", APIError.INVALID_APP_ACCOUNT_TOKEN),
    ("rawConsumptionStatus", 4, APIError.INVALID_CONSUMPTION_STATUS),
    ("rawDeliveryStatus", 6, APIError.INVALID_DELIVERY_STATUS),
    ("rawLifetimeDollarsPurchased", -1, APIError.INVALID_LIFETIME_DOLLARS_PURCHASED),
    ("rawLifetimeDollarsRefunded", 8, APIError.INVALID_LIFETIME_DOLLARS_REFUNDED),
    ("rawPlatform", 3, APIError.INVALID_PLATFORM),
    ("rawPlayTime", 8, APIError.INVALID_PLAY_TIME),
    ("rawUserStatus", 5, APIError.INVALID_USER_STATUS),
]


class Client(AppStoreServerAPIClient):
    """Apple's client with another base URL."""

    def __init__(self, settings, bundle_id, key=None, key_id=None, issuer_id=None):
        super().__init__(
            key or open(settings["apple.key"], "rb").read(), key_id or settings["apple.key.id"],
            issuer_id or settings["apple.issuer.id"], bundle_id, Environment.PRODUCTION)
        self._base_url = settings["apple.api.production"]
        self._authority = settings["apple.ca"]

    def _execute_request(self, method, url, params, headers, json, data):
        return requests.request(
            method, url, params=params, headers=headers, json=json, data=data, timeout=30, verify=self._authority)


def body(**changes):
    values = {
        "customerConsented": True, "sampleContentProvided": False, "deliveryStatus": DeliveryStatus.DELIVERED,
    }
    values.update(changes)
    if "rawDeliveryStatus" in changes:
        del values["deliveryStatus"]
    return ConsumptionRequest(**values)


def body_v1(**changes):
    values = {
        "customerConsented": True, "sampleContentProvided": True, "consumptionStatus": ConsumptionStatus.PARTIALLY_CONSUMED,
        "platform": Platform.APPLE, "deliveryStatus": DeliveryStatusV1.DELIVERED_AND_WORKING_PROPERLY,
        "appAccountToken": "3b8c3d2e-5a0f-4b57-8a0e-0f1d2c3b4a59", "accountTenure": AccountTenure.UNDECLARED,
        "playTime": PlayTime.UNDECLARED, "lifetimeDollarsRefunded": LifetimeDollarsRefunded.UNDECLARED,
        "lifetimeDollarsPurchased": LifetimeDollarsPurchased.UNDECLARED, "userStatus": UserStatus.ACTIVE,
        "refundPreference": RefundPreferenceV1.PREFER_DECLINE,
    }
    for name in changes:
        if name.startswith("raw"):
            del values[name[3].lower() + name[4:]]
    values.update(changes)
    return ConsumptionRequestV1(**values)


def told(send, transaction_id, request):
    try:
        send(transaction_id, request)
        return 202
    except APIException as refusal:
        return [refusal.http_status_code, refusal.raw_api_error]


def refused(error):
    return [int(str(error.value)[:3]), error.value]


def cases_v2(client, consumable, subscription, family, advanced, other):
    send = client.send_consumption_information
    general = [400, GENERAL]
    yield "a consumable, used by half", 202, send, consumable, body(consumptionPercentage=50000)
    yield "a consumable without anything", 202, send, consumable, body()
    yield "a consumable, prorated", 202, send, consumable, body(
        consumptionPercentage=1, refundPreference=RefundPreference.GRANT_PRORATED)
    yield "nothing delivered", 202, send, consumable, body(
        deliveryStatus=DeliveryStatus.UNDELIVERED_OTHER, consumptionPercentage=0)
    yield "a subscription", 202, send, subscription, body(refundPreference=RefundPreference.DECLINE)
    yield "a subscription, prorated", 202, send, subscription, body(refundPreference=RefundPreference.GRANT_PRORATED)
    yield "no consent", refused(APIError.INVALID_CUSTOMER_CONSENTED), send, consumable, body(customerConsented=False)
    yield "an unknown delivery status", refused(APIError.INVALID_DELIVERY_STATUS), send, consumable, body(
        rawDeliveryStatus="LOST")
    # The library has no name for these two numbers.
    yield "an unknown preference", [400, 4000044], send, consumable, body(rawRefundPreference="PLEASE")
    yield "a percentage of a subscription", [400, 4000209], send, subscription, body(consumptionPercentage=50000)
    yield "a percentage beyond all", general, send, consumable, body(consumptionPercentage=100001)
    yield "a negative percentage", general, send, consumable, body(consumptionPercentage=-1)
    yield "used though not delivered", general, send, consumable, body(
        deliveryStatus=DeliveryStatus.UNDELIVERED_WRONG_ITEM, consumptionPercentage=1)
    yield "prorated without a percentage", general, send, consumable, body(
        refundPreference=RefundPreference.GRANT_PRORATED)
    yield "prorated and all used", general, send, consumable, body(
        consumptionPercentage=100000, refundPreference=RefundPreference.GRANT_PRORATED)
    yield "a family's", refused(APIError.FAMILY_TRANSACTION_NOT_SUPPORTED_ERROR), send, family, body()
    yield "Advanced Commerce", general, send, advanced, body()
    yield "another app's", refused(APIError.TRANSACTION_ID_NOT_FOUND), send, other, body()
    yield "nobody's", refused(APIError.TRANSACTION_ID_NOT_FOUND), send, "1000000000000001", body()
    yield "no id", refused(APIError.INVALID_TRANSACTION_ID), send, "abc", body()


def cases_v1(client, consumable, family, advanced):
    send = client.send_consumption_data
    yield "V1: a consumable", 202, send, consumable, body_v1()
    yield "V1: Advanced Commerce", 202, send, advanced, body_v1(appAccountToken="")
    yield "V1: a family's", refused(APIError.FAMILY_TRANSACTION_NOT_SUPPORTED_ERROR), send, family, body_v1()
    yield "V1: no consent", refused(APIError.INVALID_CUSTOMER_CONSENTED), send, consumable, body_v1(
        customerConsented=False)
    yield "V1: no tenure", refused(APIError.INVALID_ACCOUNT_TENURE), send, consumable, body_v1(accountTenure=None)
    yield "V1: no sample", refused(APIError.INVALID_SAMPLE_CONTENT_PROVIDED), send, consumable, body_v1(
        sampleContentProvided=None)
    yield "V1: a preference beyond all", [400, 4000044], send, consumable, body_v1(rawRefundPreference=4)
    for name, value, error in BEYOND:
        yield f"V1: {name} {value}", refused(error), send, consumable, body_v1(**{name: value})


def cases_of_tokens(settings, bundle_id, consumable):
    stranger = ec.generate_private_key(ec.SECP256R1()).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    unauthorized = [401, None]
    for name, client in [
        ("another key", Client(settings, bundle_id, key=stranger)),
        ("another key id", Client(settings, bundle_id, key_id="ABCDEFGHIJ")),
        ("another issuer", Client(settings, bundle_id, issuer_id="99b16628-15e4-4668-972b-eeff55eeff55")),
        ("an app of nobody", Client(settings, "com.example.nobody")),
    ]:
        yield name, unauthorized, client.send_consumption_information, consumable, body()


def main():
    warnings.simplefilter("ignore", DeprecationWarning)
    settings = dict(line.strip().split(" = ", 1) for line in open(sys.argv[1]))
    truth = [json.loads(line) for line in open(sys.argv[2])]
    asked = [line for line in truth if line["kind"] == "refund_request" and line["environment"] == "production"]

    def transaction(bundle_id, **wanted):
        wanted = {"family": False, "advancedCommerce": False, **wanted}
        return next(
            line for line in asked
            if (line["bundleId"] == bundle_id) and all(line[name] == value for name, value in wanted.items()))

    bundle_id, other_app = sorted({line["bundleId"] for line in asked})[:2]
    client = Client(settings, bundle_id)
    consumable = transaction(bundle_id, productType="Consumable")
    subscription = transaction(bundle_id, productType="Auto-Renewable Subscription")["transactionId"]
    family = transaction(bundle_id, family=True)["transactionId"]
    advanced = transaction(bundle_id, advancedCommerce=True)["transactionId"]
    other = transaction(other_app, productType="Consumable")["transactionId"]
    known = consumable["transactionId"]
    cases = [
        *cases_v2(client, known, subscription, family, advanced, other), *cases_v1(client, known, family, advanced),
        *cases_of_tokens(settings, bundle_id, known),
        ("an app transaction", refused(APIError.APP_TRANSACTION_ID_NOT_SUPPORTED_ERROR), client.send_consumption_information,
         consumable["appTransactionId"], body()),
    ]
    for name, expected, send, transaction_id, request in cases:
        print(json.dumps({"case": name, "expected": expected, "got": told(send, transaction_id, request)}))


main()
