"""Reads the records of one topic with another Kafka client, and checks them against the contract.

Usage: read_notifications.py BOOTSTRAP TOPIC SCHEMA_FOLDER

Prints one JSON object per line: a record with its faults as text ("faults", empty if there are none), and what a test needs to
compare it with what was posted. Ends at the end offsets that it saw at the start.
"""

import json
import pathlib
import sys

import jsonschema
from confluent_kafka import Consumer, TopicPartition

# Headers of every record; derived records have more.
EXPECTED_HEADERS = {"id", "schema", "app"}
DEADLINE_SECONDS = 30


def murmur2(data):
    """The hash of Java's default partitioner, written from its description and not from our code."""
    mask, magic = 0xFFFFFFFF, 0x5BD1E995
    value = (0x9747B28C ^ len(data)) & mask
    whole = len(data) - len(data) % 4
    for index in range(0, whole, 4):
        word = int.from_bytes(data[index : index + 4], "little") * magic & mask
        word = (word ^ word >> 24) * magic & mask
        value = (value * magic & mask) ^ word
    rest = data[whole:]
    if rest:
        value = (value ^ int.from_bytes(rest, "little")) * magic & mask
    value = (value ^ value >> 13) * magic & mask
    return value ^ value >> 15


def expected_key(value):
    """The key as docs/reference/topics.md defines it, from the record itself."""
    for part in ("transaction", "renewalInfo"):
        if value.get(part) and value[part].get("originalTransactionId"):
            return value[part]["originalTransactionId"]
    for part, name in (("appTransaction", "appTransactionId"), ("externalPurchaseToken", "externalPurchaseId")):
        if value.get(part) and value[part].get(name):
            return value[part][name]
    nested = (value.get("appData") or {}).get("appTransaction") or {}
    return nested.get("appTransactionId") or value["notificationUUID"]


def judge(record, partitions, validators):
    faults = []
    headers = {name: (content or b"").decode() for name, content in record.headers() or []}
    if len(headers) != len(record.headers() or []):
        faults.append("a header occurs twice")
    if not EXPECTED_HEADERS <= set(headers):
        faults.append(f"headers are {sorted(headers)}")
    if headers.keys() & {"type", "rules"}:
        faults.append("it has a header of before version 0.2")
    kind, _, version = headers.get("schema", "").partition("/")
    if version != "1":
        faults.append(f"schema is {headers.get('schema')}")
    if not headers.get("app", "").startswith("perennial/"):
        faults.append(f"app is {headers.get('app')}")
    value = json.loads(record.value())
    if kind in validators:
        faults += [error.message[:200] for error in validators[kind].iter_errors(value)]
    else:
        faults.append(f"no schema for type {kind}")
    key = record.key()
    if kind == "notification":
        if key is None or key.decode() != expected_key(value):
            faults.append(f"key is {key}, expected {expected_key(value)}")
        elif (murmur2(key) & 0x7FFFFFFF) % partitions != record.partition():
            faults.append(f"partition is {record.partition()}")
        if headers.get("id") != value["notificationUUID"]:
            faults.append(f"id is {headers.get('id')}")
        if record.timestamp()[1] != value["receivedDate"]:
            faults.append("the timestamp is not receivedDate")
    elif kind == "tick":
        if key is not None or headers.get("id") != f"tick-{record.partition()}-{value['tick']}":
            faults.append(f"tick with key {key} and id {headers.get('id')}")
        if record.timestamp()[1] != value["tick"]:
            faults.append("the timestamp is not the tick")
    return {
        "type": kind,
        "partition": record.partition(),
        "offset": record.offset(),
        "key": key.decode() if key is not None else None,
        "sha256": (value.get("evidence") or {}).get("sha256"),
        "notificationUUID": value.get("notificationUUID"),
        "faults": faults,
    }


def main():
    bootstrap, topic, folder = sys.argv[1:]
    validators = {}
    for path in pathlib.Path(folder).glob("*.schema.json"):
        schema = json.loads(path.read_text())
        jsonschema.Draft202012Validator.check_schema(schema)
        validators[path.name.removesuffix(".schema.json")] = jsonschema.Draft202012Validator(schema)
    consumer = Consumer({
        "bootstrap.servers": bootstrap,
        "group.id": "interop",
        "enable.auto.commit": False,
        "isolation.level": "read_committed",
        "auto.offset.reset": "error",
    })
    partitions = len(consumer.list_topics(topic, timeout=DEADLINE_SECONDS).topics[topic].partitions)
    for partition in range(partitions):
        place = TopicPartition(topic, partition)
        low, high = consumer.get_watermark_offsets(place, timeout=DEADLINE_SECONDS)
        place.offset = low
        consumer.assign([place])
        # Markers of transactions have offsets, too: the position says where the reader is, the last record does not.
        while consumer.position([place])[0].offset < high and low < high:
            record = consumer.poll(DEADLINE_SECONDS)
            if record is None:
                if consumer.position([place])[0].offset >= high:
                    break
                sys.exit(f"no more records of partition {partition} before offset {high}")
            if record.error():
                sys.exit(str(record.error()))
            print(json.dumps(judge(record, partitions, validators)))
    consumer.close()


main()
