#!/usr/bin/env python3
"""Checks Weir's blob service with Azure's own client library for Python.

    python3 azure_blob.py CONNECTION_STRING [GROUP ...]

The connection string may be `UseDevelopmentStorage=true`. A group is named
in full or by its beginning: `page` runs every group that starts with it. With
no group named, all run but those that need a server of their own (`retry`).

Each group makes its own container and removes it. One line is printed for each
group, and the exit status is 0 only if all of them passed.

Needs the package azure-storage-blob, 12.20 or later.
"""

import base64
import datetime
import hashlib
import random
import sys
import threading
import time
import traceback
import urllib.error
import urllib.request
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit

from azure.core import MatchConditions
from azure.core.exceptions import HttpResponseError
from azure.storage.blob import (
    AccessPolicy,
    BlobBlock,
    BlobClient,
    BlobLeaseClient,
    BlobPrefix,
    BlobServiceClient,
    ContainerClient,
    ContentSettings,
    CorsRule,
    ExponentialRetry,
    PremiumPageBlobTier,
    SequenceNumberAction,
    generate_account_sas,
    generate_blob_sas,
    generate_container_sas,
)
from azure.storage.blob._generated.models import BlockLookupList

PAGE = 512
KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB
DEVELOPMENT = (
    "DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;"
    "AccountKey=Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==;"
    "BlobEndpoint=http://127.0.0.1:10000/devstoreaccount1;"
)
NO_SUCH_LEASE = "11111111-2222-3333-4444-555555555555"
OWN_LEASE = "aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee"
CHANGED_LEASE = "bbbbbbbb-cccc-dddd-eeee-ffffffffffff"
NO_SUCH_SNAPSHOT = "2001-02-03T04:05:06.0000000Z"
# The first is in the service's list of codes; its libraries know the others too.
EARLIER_SNAPSHOT = {
    "IncrementalCopyOfEarlierVersionSnapshotNotAllowed",
    "IncrementalCopyOfEarlierSnapshotNotAllowed",
    "IncrementalCopyOfEralierVersionSnapshotNotAllowed",
}
NO_LEASE = {"LeaseIdMismatchWithLeaseOperation", "LeaseNotPresentWithLeaseOperation"}
# What the service answers to a request without credentials for something that
# is not public depends on the version asked for and on the account's settings.
ANONYMOUS_REFUSED = {"NoAuthenticationInformation", "ResourceNotFound", "PublicAccessNotPermitted"}


class Failure(Exception):
    """A check that did not hold."""


GROUPS = {}
ONLY_BY_NAME = set()


def group(name, only_by_name=False):
    """Adds a function to the groups of checks."""

    def add(function):
        GROUPS[name] = function
        if only_by_name:
            ONLY_BY_NAME.add(name)
        return function

    return add


# ---- helpers


def check(condition, what):
    if not condition:
        raise Failure(what)


def shown(value):
    text = repr(value)
    return text if len(text) <= 300 else f"{text[:300]}... ({len(text)} characters)"


def same(found, wanted, what):
    if found != wanted:
        raise Failure(f"{what}: found {shown(found)}, wanted {shown(wanted)}")


def same_bytes(found, wanted, what):
    if found == wanted:
        return
    if len(found) != len(wanted):
        raise Failure(f"{what}: {len(found)} bytes, wanted {len(wanted)}")
    at = next(i for i in range(len(wanted)) if found[i] != wanted[i])
    raise Failure(f"{what}: differs first at byte {at}: {found[at]:#x}, wanted {wanted[at]:#x}")


def error_code(error):
    """The service's code for an error: from the header, else from the body."""
    header = error.response.headers.get("x-ms-error-code") if error.response is not None else None
    body = getattr(error, "error_code", None)
    body = getattr(body, "value", body)
    check(not header or not body or header == body, f"x-ms-error-code is {header} but the body says {body}")
    return header or body


def refused(codes, call, *args, status=None, **kwargs):
    """The call must be refused with one of the codes (and the status, if given)."""
    codes = {codes} if isinstance(codes, str) else set(codes)
    wanted = " or ".join(sorted(codes))
    try:
        result = call(*args, **kwargs)
    except HttpResponseError as error:
        found = error_code(error)
        if found not in codes:
            raise Failure(f"{name_of(call)} was refused with {error.status_code} {found}, not with {wanted}") from error
        if status is not None:
            same(error.status_code, status, f"status of {name_of(call)} refused with {found}")
        return error
    raise Failure(f"{name_of(call)} succeeded ({shown(result)}) but should be refused with {wanted}")


def name_of(call):
    return getattr(call, "__name__", "the call")


def unique(prefix="weir"):
    return f"{prefix}-{uuid.uuid4().hex[:20]}"


@contextmanager
def container(service, **options):
    """A container of its own, removed in the end."""
    client = service.create_container(unique(), **options)
    try:
        yield client
    except BaseException:
        with suppress(HttpResponseError):
            BlobLeaseClient(client).break_lease(0)
        with suppress(HttpResponseError):
            client.delete_container()
        raise
    client.delete_container()


def new_page_blob(box, name="disk", size=8 * PAGE, **options):
    blob = box.get_blob_client(name)
    blob.create_page_blob(size, **options)
    return blob


def filled(size, seed):
    """Bytes that look random, and are the same for the same seed."""
    return random.Random(seed).randbytes(size)


def page(number):
    """One page of content that no other number has."""
    return filled(PAGE, f"page {number}")


def read(blob, offset=None, length=None, **options):
    return blob.download_blob(offset=offset, length=length, **options).readall()


def joined(parts):
    """Ranges with those that touch made one: a server may list them either way."""
    whole = []
    for start, end in parts:
        if whole and whole[-1][1] + 1 == start:
            whole[-1] = (whole[-1][0], end)
        else:
            whole.append((start, end))
    return whole


def ranges(blob, cleared=False, **options):
    """The written (or cleared) ranges as (start, end), the end inclusive."""
    return joined((r.start, r.end) for r in blob.list_page_ranges(**options) if bool(r.cleared) == cleared)


def pages(first, count=1):
    return (first * PAGE, (first + count) * PAGE - 1)


def later(hours=1):
    return datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=hours)


def key_of(client):
    return client.credential.account_key


def blob_sas(blob, permission="r", snapshot=None, **options):
    options.setdefault("expiry", later())
    return generate_blob_sas(
        blob.account_name,
        blob.container_name,
        blob.blob_name,
        account_key=key_of(blob),
        snapshot=snapshot,
        permission=permission,
        **options,
    )


def container_sas(box, permission="r", **options):
    options.setdefault("expiry", later())
    return generate_container_sas(
        box.account_name, box.container_name, account_key=key_of(box), permission=permission, **options
    )


def with_token(client, token, **options):
    """The same blob or container, reached with a token (None: with nothing)."""
    url = client.url.split("?")[0]
    if isinstance(client, ContainerClient):
        return ContainerClient.from_container_url(url, credential=token, retry_total=0, **options)
    return BlobClient.from_blob_url(url, credential=token, retry_total=0, **options)


def source_url(blob, snapshot=None):
    """A URL of a blob from which the service itself may read."""
    moment = f"snapshot={snapshot}&" if snapshot else ""
    return f"{blob.url.split('?')[0]}?{moment}{blob_sas(blob, snapshot=snapshot)}"


def copied(blob):
    """Waits until a copy to the blob is no longer pending."""
    for _ in range(300):
        properties = blob.get_blob_properties()
        if properties.copy.status != "pending":
            return properties
        time.sleep(0.1)
    raise Failure("the copy stays pending")


def make_crc64_table():
    table = []
    for value in range(256):
        for _ in range(8):
            value = (value >> 1) ^ (0x9A6C9329AC4BC9B5 if value & 1 else 0)
        table.append(value)
    return table


CRC64_TABLE = make_crc64_table()


def crc64(data):
    """The checksum of x-ms-content-crc64, as the 8 bytes that are sent."""
    crc = 0xFFFFFFFFFFFFFFFF
    for byte in data:
        crc = CRC64_TABLE[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return (crc ^ 0xFFFFFFFFFFFFFFFF).to_bytes(8, "little")


def md5(data):
    return hashlib.md5(data).digest()


def put_page(blob, data, range_header, **options):
    """Put Page below the library's own checks of its arguments."""
    return blob._client.page_blob.upload_pages(
        content_length=len(data), body=data, range=range_header, cls=lambda _, body, headers: headers, **options
    )


def clear_range(blob, range_header):
    return blob._client.page_blob.clear_pages(content_length=0, range=range_header)


# ---- containers


@group("container-lifecycle")
def container_lifecycle(service):
    name = unique()
    box = service.create_container(name, metadata={"purpose": "first"})
    refused("ContainerAlreadyExists", service.create_container, name, status=409)
    check(box.exists(), "a container just made does not exist")
    properties = box.get_container_properties()
    same(properties.name, name, "name")
    same(properties.metadata, {"purpose": "first"}, "metadata")
    same((properties.lease.status, properties.lease.state), ("unlocked", "available"), "lease")
    check(not properties.public_access, "a new container is public")
    check(properties.etag and properties.last_modified, "ETag or Last-Modified is missing")
    blob = box.get_blob_client("blob")
    refused("BlobNotFound", blob.get_blob_properties, status=404)
    refused("BlobNotFound", blob.download_blob, status=404)
    refused("BlobNotFound", blob.delete_blob, status=404)
    check(not blob.exists(), "a blob never written exists")
    box.delete_container()
    check(not box.exists(), "a deleted container exists")
    refused("ContainerNotFound", box.get_container_properties, status=404)
    refused("ContainerNotFound", box.set_container_metadata, {"a": "b"}, status=404)
    refused("ContainerNotFound", lambda: list(box.list_blobs()), status=404)
    refused("ContainerNotFound", blob.create_page_blob, PAGE, status=404)
    refused({"ContainerNotFound", "ContainerBeingDeleted"}, box.delete_container)
    refused("InvalidResourceName", service.create_container, "Upper-Case", status=400)
    refused({"OutOfRangeInput", "InvalidResourceName"}, service.create_container, "ab", status=400)


@group("container-metadata")
def container_metadata(service):
    with container(service, metadata={"one": "1", "two": "second value"}) as box:
        first = box.get_container_properties()
        same(first.metadata, {"one": "1", "two": "second value"}, "metadata at creation")
        box.set_container_metadata({"three": "3"})
        second = box.get_container_properties()
        same(second.metadata, {"three": "3"}, "metadata replaced")
        check(second.etag != first.etag, "the ETag stays when metadata changes")
        refused(
            "ConditionNotMet",
            box.set_container_metadata,
            {"four": "4"},
            if_modified_since=second.last_modified,
            status=412,
        )
        box.set_container_metadata()
        same(box.get_container_properties().metadata, {}, "metadata removed")


@group("container-acl")
def container_acl(service):
    with container(service) as box:
        empty = box.get_container_access_policy()
        same(list(empty["signed_identifiers"]), [], "policies of a new container")
        check(not empty["public_access"], "a new container is public")
        policies = {
            "reader": AccessPolicy(permission="r", start="2020-01-01T00:00:00Z", expiry="2090-01-01T00:00:00Z"),
            "writer": AccessPolicy(permission="rcw", expiry="2091-01-01T00:00:00Z"),
            "empty": AccessPolicy(),
        }
        box.set_container_access_policy(policies)
        kept = {p.id: p.access_policy for p in box.get_container_access_policy()["signed_identifiers"]}
        same(sorted(kept), ["empty", "reader", "writer"], "identifiers")
        same(kept["reader"].permission, "r", "permission of the reader")
        check(kept["reader"].start.startswith("2020-01-01T00:00:00"), "start of the reader")
        check(kept["reader"].expiry.startswith("2090-01-01T00:00:00"), "expiry of the reader")
        same(kept["writer"].permission, "rcw", "permission of the writer")
        for access in ("container", "blob", None):
            box.set_container_access_policy(policies, public_access=access)
            found = box.get_container_access_policy()["public_access"]
            same(found or None, access, "public access in the ACL")
            same(box.get_container_properties().public_access or None, access, "public access in the properties")
        box.set_container_access_policy({})
        same(list(box.get_container_access_policy()["signed_identifiers"]), [], "policies removed")


@group("container-list")
def container_list(service):
    prefix = unique("weirlist")
    names = [f"{prefix}-{letter}" for letter in "abcde"]
    try:
        for name in names:
            service.create_container(name, metadata={"name": name[-1]})
        found = list(service.list_containers(name_starts_with=prefix))
        same([c.name for c in found], names, "names")
        check(all(c.etag and c.last_modified for c in found), "ETag or Last-Modified is missing")
        same({c.lease.state for c in found}, {"available"}, "lease states")
        check(not any(c.metadata for c in found), "metadata without asking for it")
        found = list(service.list_containers(name_starts_with=prefix, include_metadata=True))
        same([c.metadata for c in found], [{"name": letter} for letter in "abcde"], "metadata")
        same([c.name for c in service.list_containers(name_starts_with=names[2])], [names[2]], "one name")
        same(list(service.list_containers(name_starts_with=prefix + "-none")), [], "no name")
        paged = service.list_containers(name_starts_with=prefix, results_per_page=2).by_page()
        first = [c.name for c in next(paged)]
        same(first, names[:2], "first page")
        rest = service.list_containers(name_starts_with=prefix, results_per_page=2)
        rest = [[c.name for c in p] for p in rest.by_page(continuation_token=paged.continuation_token)]
        same(rest, [names[2:4], names[4:]], "pages after the marker")
    finally:
        for name in names:
            with suppress(HttpResponseError):
                service.delete_container(name)


@group("container-lease")
def container_lease(service):
    with container(service) as box:
        lease = box.acquire_lease(lease_duration=15, lease_id=OWN_LEASE)
        same(lease.id, OWN_LEASE, "the proposed lease id")
        found = box.get_container_properties().lease
        same((found.status, found.state, found.duration), ("locked", "leased", "fixed"), "lease held")
        refused("LeaseAlreadyPresent", box.acquire_lease, lease_id=NO_SUCH_LEASE, status=409)
        refused("LeaseIdMissing", box.delete_container, status=412)
        refused("LeaseIdMismatchWithContainerOperation", box.delete_container, lease=NO_SUCH_LEASE, status=412)
        refused("LeaseIdMismatchWithContainerOperation", box.get_container_properties, lease=NO_SUCH_LEASE, status=412)
        box.get_container_properties(lease=lease)
        new_page_blob(box).delete_blob()
        lease.renew()
        lease.change(CHANGED_LEASE)
        same(lease.id, CHANGED_LEASE, "the changed lease id")
        refused("LeaseIdMismatchWithLeaseOperation", BlobLeaseClient(box, OWN_LEASE).renew, status=409)
        lease.release()
        same(box.get_container_properties().lease.state, "available", "lease released")
        refused(NO_LEASE, BlobLeaseClient(box, CHANGED_LEASE).renew, status=409)
        lease = box.acquire_lease()
        same(box.get_container_properties().lease.duration, "infinite", "duration")
        remaining = lease.break_lease(60)
        check(0 < remaining <= 60, f"seconds to the end of the lease: {remaining}")
        same(box.get_container_properties().lease.state, "breaking", "lease being broken")
        breaking = {"LeaseIsBreakingAndCannotBeAcquired", "LeaseAlreadyPresent"}
        refused(breaking, box.acquire_lease, lease_id=NO_SUCH_LEASE, status=409)
        refused("LeaseIdMissing", box.delete_container, status=412)
        same(lease.break_lease(0), 0, "seconds to the end of a lease broken at once")
        same(box.get_container_properties().lease.state, "broken", "lease broken")
        refused("LeaseIsBrokenAndCannotBeRenewed", lease.renew, status=409)
        lease = box.acquire_lease(lease_id=OWN_LEASE)
        lease.release()
        refused("InvalidHeaderValue", box.acquire_lease, lease_duration=5, status=400)
    box = service.create_container(unique())
    lease = box.acquire_lease()
    box.delete_container(lease=lease)
    refused("ContainerNotFound", box.get_container_properties, status=404)


# ---- account


@group("account-info")
def account_info(service):
    for client in (service, service.get_container_client("unused")):
        found = client.get_account_information()
        check(found["sku_name"], "x-ms-sku-name is missing")
        check(found["account_kind"], "x-ms-account-kind is missing")


def as_rules(rules):
    return [
        (
            ",".join(r.allowed_origins) if isinstance(r.allowed_origins, list) else r.allowed_origins,
            ",".join(r.allowed_methods) if isinstance(r.allowed_methods, list) else r.allowed_methods,
            ",".join(r.allowed_headers) if isinstance(r.allowed_headers, list) else r.allowed_headers,
            ",".join(r.exposed_headers) if isinstance(r.exposed_headers, list) else r.exposed_headers,
            r.max_age_in_seconds,
        )
        for r in rules or []
    ]


CORS = [
    CorsRule(
        ["http://one.example", "http://two.example"],
        ["GET", "PUT"],
        allowed_headers=["x-ms-meta-*", "content-type"],
        exposed_headers=["x-ms-meta-*"],
        max_age_in_seconds=200,
    ),
    CorsRule(["*"], ["GET"], max_age_in_seconds=0),
]


@contextmanager
def kept_properties(service):
    """Puts the account's CORS rules and default version back in the end."""
    before = service.get_service_properties()
    try:
        yield before
    finally:
        version = {"target_version": before["target_version"]} if before["target_version"] else {}
        service.set_service_properties(cors=before["cors"] or [], **version)


@group("account-properties")
def account_properties(service):
    with kept_properties(service) as before:
        service.set_service_properties(cors=CORS)
        after = service.get_service_properties()
        same(as_rules(after["cors"]), as_rules(CORS), "CORS rules")
        for part in ("hour_metrics", "minute_metrics", "delete_retention_policy"):
            same(after[part].enabled, before[part].enabled, f"{part} left alone")
        service.set_service_properties(target_version="2020-10-02")
        after = service.get_service_properties()
        same(after["target_version"], "2020-10-02", "default version")
        same(as_rules(after["cors"]), as_rules(CORS), "CORS rules left alone")
        service.set_service_properties(cors=[])
        same(as_rules(service.get_service_properties()["cors"]), [], "CORS rules removed")


def preflight(url, origin, method):
    request = urllib.request.Request(url, method="OPTIONS")
    request.add_header("Origin", origin)
    request.add_header("Access-Control-Request-Method", method)
    request.add_header("Access-Control-Request-Headers", "x-ms-meta-a")
    try:
        with urllib.request.urlopen(request) as response:
            return response.status, response.headers
    except urllib.error.HTTPError as error:
        return error.code, error.headers


@group("account-cors")
def account_cors(service):
    with kept_properties(service), container(service) as box:
        service.set_service_properties(cors=CORS[:1])
        url = new_page_blob(box).url
        status, headers = preflight(url, "http://one.example", "PUT")
        same(status, 200, "status of an allowed preflight")
        same(headers["Access-Control-Allow-Origin"], "http://one.example", "allowed origin")
        check("PUT" in headers["Access-Control-Allow-Methods"], "PUT is not among the allowed methods")
        same(headers["Access-Control-Max-Age"], "200", "age")
        same(preflight(url, "http://three.example", "PUT")[0], 403, "status with an unknown origin")
        same(preflight(url, "http://one.example", "DELETE")[0], 403, "status with an unknown method")


# ---- page blobs: content


@group("page-create")
def page_create(service):
    with container(service) as box:
        settings = ContentSettings(
            content_type="application/x-disk",
            content_encoding="identity",
            content_language="en",
            content_disposition="attachment",
            cache_control="no-cache",
            content_md5=bytearray(md5(b"anything")),
        )
        blob = box.get_blob_client("disk")
        made = blob.create_page_blob(
            8 * PAGE, content_settings=settings, metadata={"System": "one", "n_1": "x y"}, sequence_number=5
        )
        found = blob.get_blob_properties()
        same(found.blob_type.value, "PageBlob", "type")
        same(found.size, 8 * PAGE, "size")
        same(found.page_blob_sequence_number, 5, "sequence number")
        same({k.lower(): v for k, v in found.metadata.items()}, {"system": "one", "n_1": "x y"}, "metadata")
        same(found.etag, made["etag"], "ETag")
        same(found.last_modified, made["last_modified"], "Last-Modified")
        check(found.creation_time, "the time of creation is missing")
        same(found.lease.state, "available", "lease")
        for part in ("content_type", "content_encoding", "content_language", "content_disposition", "cache_control"):
            same(found.content_settings[part], settings[part], part)
        same(bytes(found.content_settings.content_md5), md5(b"anything"), "MD5")
        same_bytes(read(blob), bytes(8 * PAGE), "content")
        same(ranges(blob), [], "page ranges")
        check(blob.exists(), "the blob does not exist")
        refused("BlobAlreadyExists", blob.create_page_blob, PAGE, match_condition=MatchConditions.IfMissing, status=409)
        blob.upload_page(page(1), 0, PAGE)
        blob.create_page_blob(4 * PAGE)
        found = blob.get_blob_properties()
        same((found.size, found.page_blob_sequence_number), (4 * PAGE, 0), "size and sequence number made anew")
        same(found.metadata, {}, "metadata made anew")
        same(found.content_settings.content_type, "application/octet-stream", "type made anew")
        same_bytes(read(blob), bytes(4 * PAGE), "content made anew")
        blob.create_page_blob(0)
        same(blob.get_blob_properties().size, 0, "size of an empty blob")
        same_bytes(read(blob), b"", "content of an empty blob")
        blob.delete_blob()
        check(not blob.exists(), "the deleted blob exists")
        refused("BlobNotFound", blob.get_blob_properties, status=404)


@group("page-write")
def page_write(service):
    with container(service) as box:
        blob = new_page_blob(box)
        content = bytearray(8 * PAGE)
        etags = {blob.get_blob_properties().etag}
        for first, count, seed in ((0, 1, "a"), (2, 2, "b"), (7, 1, "c"), (3, 2, "d")):
            data = filled(count * PAGE, seed)
            written = blob.upload_page(data, first * PAGE, count * PAGE)
            content[first * PAGE : (first + count) * PAGE] = data
            same(blob.get_blob_properties().etag, written["etag"], "ETag after a write")
            check(written["last_modified"], "Last-Modified is missing")
            same(written["blob_sequence_number"], 0, "sequence number after a write")
            etags.add(written["etag"])
        same(len(etags), 5, "different ETags")
        same_bytes(read(blob), bytes(content), "content")
        for offset, length in ((0, 1), (500, 600), (511, 2), (PAGE, PAGE), (1, 8 * PAGE - 1), (7 * PAGE, PAGE)):
            same_bytes(
                read(blob, offset, length), bytes(content[offset : offset + length]), f"{length} bytes at {offset}"
            )
        same_bytes(read(blob, 8 * PAGE - 100, 1000), bytes(content[-100:]), "a range over the end")
        same_bytes(read(blob, 5 * PAGE), bytes(content[5 * PAGE :]), "a range with no end")
        refused("InvalidRange", read, blob, 8 * PAGE, 10, status=416)
        cleared = blob.clear_page(3 * PAGE, PAGE)
        content[3 * PAGE : 4 * PAGE] = bytes(PAGE)
        check(cleared["etag"] not in etags, "the ETag stays when a page is cleared")
        same_bytes(read(blob), bytes(content), "content after a page was cleared")
        blob.clear_page(0, 8 * PAGE)
        same_bytes(read(blob), bytes(8 * PAGE), "content after all pages were cleared")
        same(ranges(blob), [], "page ranges after all pages were cleared")


@group("page-large")
def page_large(service):
    with container(service) as box:
        content = filled(4 * MIB, 1) + bytes(4 * MIB) + filled(MIB + 3 * PAGE, 2)
        blob = box.get_blob_client("disk")
        blob.upload_blob(content, blob_type="PageBlob", metadata={"a": "b"})
        same(ranges(blob), [(0, 4 * MIB - 1), (8 * MIB, len(content) - 1)], "page ranges")
        same(blob.get_blob_properties().metadata, {"a": "b"}, "metadata")
        for single, chunk, threads in ((MIB, 512 * KIB, 4), (32 * MIB, 4 * MIB, 1)):
            reader = BlobClient.from_blob_url(
                blob.url, credential=key_credential(blob), max_single_get_size=single, max_chunk_get_size=chunk
            )
            same_bytes(read(reader, max_concurrency=threads), content, f"content in pieces of {chunk}")
        refused("BlobAlreadyExists", blob.upload_blob, bytes(PAGE), blob_type="PageBlob", status=409)
        blob.upload_blob(page(1), blob_type="PageBlob", overwrite=True)
        same_bytes(read(blob), page(1), "content overwritten")


def key_credential(client):
    return {"account_name": client.account_name, "account_key": key_of(client)}


@group("page-resize")
def page_resize(service):
    with container(service) as box:
        blob = new_page_blob(box, size=4 * PAGE)
        content = filled(4 * PAGE, 1)
        etag = blob.upload_page(content, 0, 4 * PAGE)["etag"]
        resized = blob.resize_blob(8 * PAGE)
        check(resized["etag"] != etag, "the ETag stays when the size changes")
        same(blob.get_blob_properties().size, 8 * PAGE, "size grown")
        same_bytes(read(blob), content + bytes(4 * PAGE), "content grown")
        same(ranges(blob), [pages(0, 4)], "page ranges grown")
        blob.resize_blob(2 * PAGE)
        same_bytes(read(blob), content[: 2 * PAGE], "content cut")
        same(ranges(blob), [pages(0, 2)], "page ranges cut")
        blob.resize_blob(4 * PAGE)
        same_bytes(read(blob), content[: 2 * PAGE] + bytes(2 * PAGE), "content cut and grown")
        same(ranges(blob), [pages(0, 2)], "page ranges cut and grown")
        blob.resize_blob(0)
        same(blob.get_blob_properties().size, 0, "size cut to nothing")


@group("page-ranges")
def page_ranges(service):
    with container(service) as box:
        blob = new_page_blob(box, size=16 * PAGE)
        same(ranges(blob), [], "ranges of a new blob")
        blob.upload_page(page(0), 0, PAGE)
        blob.upload_page(page(2), 2 * PAGE, PAGE)
        same(ranges(blob), [pages(0), pages(2)], "pages 0 and 2")
        blob.upload_page(page(1), PAGE, PAGE)
        same(ranges(blob), [pages(0, 3)], "pages 0 to 2")
        blob.upload_page(filled(6 * PAGE, 1), 8 * PAGE, 6 * PAGE)
        blob.clear_page(10 * PAGE, PAGE)
        blob.clear_page(12 * PAGE, PAGE)
        same(ranges(blob), [pages(0, 3), pages(8, 2), pages(11), pages(13)], "pages cleared between")
        same(ranges(blob, offset=2 * PAGE, length=7 * PAGE), [pages(2), pages(8)], "ranges of a part")
        same(ranges(blob, offset=3 * PAGE, length=5 * PAGE), [], "ranges of an empty part")
        blob.upload_page(bytes(PAGE), 5 * PAGE, PAGE)
        same(ranges(blob, offset=4 * PAGE, length=3 * PAGE), [pages(5)], "a page of zeros written")
        written, cleared = blob.get_page_ranges()
        same(joined((r["start"], r["end"]) for r in written)[0], pages(0, 3), "the older call")
        same(cleared, [], "cleared ranges without a snapshot to compare")


@group("page-ranges-paged")
def page_ranges_paged(service):
    with container(service) as box:
        blob = new_page_blob(box, size=20 * PAGE)
        for number in range(0, 20, 2):
            blob.upload_page(page(number), number * PAGE, PAGE)
        wanted = [pages(number) for number in range(0, 20, 2)]
        listed = [[(r.start, r.end) for r in p] for p in blob.list_page_ranges(results_per_page=3).by_page()]
        same(sum(listed, []), wanted, "ranges of all answers")
        check(len(listed) >= 4 and max(map(len, listed)) <= 3, f"answers of {[len(p) for p in listed]} ranges")
        answers = blob.list_page_ranges(results_per_page=4).by_page()
        first = [(r.start, r.end) for r in next(answers)]
        rest = blob.list_page_ranges(results_per_page=4).by_page(continuation_token=answers.continuation_token)
        same(first + [(r.start, r.end) for p in rest for r in p], wanted, "ranges before and after the marker")


@group("page-diff")
def page_diff(service):
    with container(service) as box:
        blob = new_page_blob(box)
        blob.upload_page(filled(3 * PAGE, 1), 0, 3 * PAGE)
        first = blob.create_snapshot()["snapshot"]
        blob.upload_page(page(1), PAGE, PAGE)
        blob.upload_page(page(5), 5 * PAGE, PAGE)
        blob.clear_page(0, PAGE)
        same(ranges(blob, previous_snapshot=first), [pages(1), pages(5)], "written since the snapshot")
        same(ranges(blob, previous_snapshot=first, cleared=True), [pages(0)], "cleared since the snapshot")
        second = blob.create_snapshot()["snapshot"]
        same(list(blob.list_page_ranges(previous_snapshot=second)), [], "no change since the second snapshot")
        blob.upload_page(page(6), 6 * PAGE, PAGE)
        blob.resize_blob(12 * PAGE)
        blob.upload_page(page(10), 10 * PAGE, PAGE)
        same(ranges(blob, previous_snapshot=second), [pages(6), pages(10)], "written since the second snapshot")
        same(
            ranges(blob, previous_snapshot=first),
            [pages(1), pages(5, 2), pages(10)],
            "written since the first snapshot",
        )
        same(ranges(blob, previous_snapshot=first, offset=5 * PAGE, length=PAGE), [pages(5)], "written in a part of it")
        between = box.get_blob_client("disk", snapshot=second)
        same(ranges(between, previous_snapshot=first), [pages(1), pages(5)], "written between the snapshots")
        same(ranges(between, previous_snapshot=first, cleared=True), [pages(0)], "cleared between the snapshots")
        one = blob.list_page_ranges(previous_snapshot=first, results_per_page=1).by_page()
        one = [[(r.start, r.end, bool(r.cleared)) for r in p] for p in one]
        check(max(map(len, one)) == 1, "more than one range in an answer")
        same(
            sorted(sum(one, [])),
            [(0, 511, True), (*pages(1), False), (*pages(5, 2), False), (*pages(10), False)],
            "ranges one by one",
        )
        refused(
            "PreviousSnapshotNotFound",
            lambda: list(blob.list_page_ranges(previous_snapshot=NO_SUCH_SNAPSHOT)),
            status=409,
        )
        older = box.get_blob_client("disk", snapshot=first)
        refused(
            "PreviousSnapshotCannotBeNewer", lambda: list(older.list_page_ranges(previous_snapshot=second)), status=400
        )
        blob.create_page_blob(8 * PAGE)
        refused("BlobOverwritten", lambda: list(blob.list_page_ranges(previous_snapshot=second)), status=409)
        blob.delete_blob(delete_snapshots="include")


@group("page-from-url")
def page_from_url(service):
    with container(service) as box:
        source = new_page_blob(box, "source")
        content = filled(8 * PAGE, 1)
        source.upload_page(content, 0, 8 * PAGE)
        blob = new_page_blob(box, "target")
        url = source_url(source)
        done = blob.upload_pages_from_url(url, 2 * PAGE, 3 * PAGE, PAGE)
        same(done["etag"], blob.get_blob_properties().etag, "ETag")
        same_bytes(read(blob, 2 * PAGE, 3 * PAGE), content[PAGE : 4 * PAGE], "pages taken over")
        same(ranges(blob), [pages(2, 3)], "page ranges")
        snapshot = source.create_snapshot()["snapshot"]
        source.clear_page(0, 8 * PAGE)
        blob.upload_pages_from_url(source_url(source, snapshot), 0, PAGE, 7 * PAGE)
        same_bytes(read(blob, 0, PAGE), content[7 * PAGE :], "a page of a snapshot")
        blob.upload_pages_from_url(url, 0, PAGE, 0, source_content_md5=bytearray(md5(bytes(PAGE))))
        refused(
            "Md5Mismatch",
            blob.upload_pages_from_url,
            url,
            0,
            PAGE,
            0,
            source_content_md5=bytearray(md5(b"")),
            status=400,
        )
        refused(
            "SequenceNumberConditionNotMet",
            blob.upload_pages_from_url,
            url,
            0,
            PAGE,
            0,
            if_sequence_number_lt=0,
            status=412,
        )
        refused(
            {"CannotVerifyCopySource", "SourceConditionNotMet", "ConditionNotMet"},
            blob.upload_pages_from_url,
            url,
            0,
            PAGE,
            0,
            source_etag='"0x1"',
            source_match_condition=MatchConditions.IfNotModified,
            status=412,
        )
        missing = source_url(box.get_blob_client("missing"))
        refused({"CannotVerifyCopySource", "BlobNotFound"}, blob.upload_pages_from_url, missing, 0, PAGE, 0, status=404)
        source.delete_blob(delete_snapshots="include")


@group("page-limits")
def page_limits(service):
    with container(service) as box:
        blob = new_page_blob(box, size=16 * MIB)
        misaligned = {"InvalidHeaderValue", "InvalidPageRange"}
        refused(misaligned, put_page, blob, page(1), "bytes=1-512")
        refused(misaligned, put_page, blob, page(1)[:100], "bytes=0-99")
        refused(misaligned, clear_range, blob, "bytes=256-767")
        refused(misaligned | {"InvalidRange"}, put_page, blob, page(1), "bytes=0-1023")
        refused("InvalidPageRange", blob.upload_page, page(1), 16 * MIB, PAGE, status=416)
        refused("InvalidPageRange", blob.upload_page, filled(2 * PAGE, 1), 16 * MIB - PAGE, 2 * PAGE, status=416)
        refused("InvalidPageRange", blob.clear_page, 16 * MIB, PAGE, status=416)
        same(ranges(blob), [], "page ranges after writes that were refused")
        most = filled(4 * MIB, 1)
        blob.upload_page(most, 4 * MIB, 4 * MIB)
        same_bytes(read(blob, 4 * MIB, 4 * MIB), most, "the largest write")
        refused("RequestBodyTooLarge", blob.upload_page, most + page(1), 0, 4 * MIB + PAGE, status=413)
        blob.clear_page(0, 16 * MIB)
        same(ranges(blob), [], "page ranges after the largest clear")
        refused("InvalidHeaderValue", box.get_blob_client("odd").create_page_blob, 1000, status=400)
        refused("InvalidHeaderValue", blob.resize_blob, 1000, status=400)
        block = box.get_blob_client("block")
        block.upload_blob(b"text")
        refused("InvalidBlobType", block.upload_page, page(1), 0, PAGE, status=409)
        refused("InvalidBlobType", lambda: list(block.list_page_ranges()), status=409)
        refused("BlobNotFound", box.get_blob_client("none").upload_page, page(1), 0, PAGE, status=404)
        refused({"OutOfRangeInput", "InvalidResourceName", "InvalidUri"}, new_page_blob, box, "n" * 1025, status=400)
        large = new_page_blob(box, "large", 4 * 1024 * GIB)
        large.upload_page(page(1), 4 * 1024 * GIB - PAGE, PAGE)
        same(ranges(large), [(4 * 1024 * GIB - PAGE, 4 * 1024 * GIB - 1)], "the last page of a large blob")
        same_bytes(read(large, 4 * 1024 * GIB - PAGE, PAGE), page(1), "the last page of a large blob")
        refused({"InvalidHeaderValue", "OutOfRangeInput"}, blob.resize_blob, 8 * 1024 * GIB + PAGE, status=400)


# ---- page blobs: properties and conditions


@group("page-sequence")
def page_sequence(service):
    with container(service) as box:
        blob = new_page_blob(box, sequence_number=10)

        def number():
            return blob.get_blob_properties().page_blob_sequence_number

        for option, good, bad in (
            ("if_sequence_number_lte", 10, 9),
            ("if_sequence_number_lt", 11, 10),
            ("if_sequence_number_eq", 10, 11),
        ):
            blob.upload_page(page(1), 0, PAGE, **{option: good})
            refused("SequenceNumberConditionNotMet", blob.upload_page, page(2), 0, PAGE, **{option: bad}, status=412)
            refused("SequenceNumberConditionNotMet", blob.clear_page, 0, PAGE, **{option: bad}, status=412)
        same_bytes(read(blob, 0, PAGE), page(1), "content after writes that were refused")
        blob.clear_page(0, PAGE, if_sequence_number_eq=10)
        blob.set_sequence_number(SequenceNumberAction.Max, 5)
        same(number(), 10, "the greater of 10 and 5")
        blob.set_sequence_number(SequenceNumberAction.Max, 15)
        same(number(), 15, "the greater of 10 and 15")
        blob.set_sequence_number(SequenceNumberAction.Update, 7)
        same(number(), 7, "set to 7")
        changed = blob.set_sequence_number(SequenceNumberAction.Increment)
        same((changed["blob_sequence_number"], number()), (8, 8), "one more than 7")
        blob.set_sequence_number(SequenceNumberAction.Update, 2**63 - 1)
        same(number(), 2**63 - 1, "the greatest number")
        same(blob.upload_page(page(3), 0, PAGE)["blob_sequence_number"], 2**63 - 1, "sequence number of a write")


@group("page-headers")
def page_headers(service):
    with container(service) as box:
        blob = new_page_blob(box)
        blob.upload_page(page(1), 0, PAGE)
        settings = ContentSettings(
            content_type="text/plain",
            content_encoding="utf-8",
            content_language="de",
            content_disposition="inline",
            cache_control="max-age=1",
            content_md5=bytearray(md5(b"x")),
        )
        etag = blob.get_blob_properties().etag
        changed = blob.set_http_headers(settings)
        check(changed["etag"] != etag, "the ETag stays when the headers change")
        found = blob.get_blob_properties()
        for part in ("content_type", "content_encoding", "content_language", "content_disposition", "cache_control"):
            same(found.content_settings[part], settings[part], part)
        same(bytes(found.content_settings.content_md5), md5(b"x"), "MD5")
        ranged = blob.download_blob(0, PAGE).properties.content_settings
        same((ranged.content_type, ranged.cache_control), ("text/plain", "max-age=1"), "headers of a read")
        same(bytes(ranged.content_md5), md5(b"x"), "MD5 of the whole in the answer to a part")
        listed = next(iter(box.list_blobs())).content_settings
        same((listed.content_type, listed.content_language), ("text/plain", "de"), "headers in a list")
        blob.set_http_headers(ContentSettings(content_type="a/b"))
        found = blob.get_blob_properties().content_settings
        same(
            (found.content_type, found.cache_control or None, found.content_md5),
            ("a/b", None, None),
            "headers replaced",
        )
        same(blob.get_blob_properties().size, 8 * PAGE, "size")
        same_bytes(read(blob, 0, PAGE), page(1), "content")


@group("page-metadata")
def page_metadata(service):
    with container(service) as box:
        blob = new_page_blob(box, metadata={"first": "1"})
        etag = blob.get_blob_properties().etag
        metadata = {"a1": "digit", "a_b": "underscore", "ab": "letters", "long": "v" * 2000, "blank": "x  y"}
        changed = blob.set_blob_metadata(metadata)
        check(changed["etag"] != etag, "the ETag stays when the metadata changes")
        same(blob.get_blob_properties().metadata, metadata, "metadata replaced")
        same(blob.download_blob(0, 1).properties.metadata, metadata, "metadata of a read")
        same(next(iter(box.list_blobs(include=["metadata"]))).metadata, metadata, "metadata in a list")
        check(not next(iter(box.list_blobs())).metadata, "metadata in a list without asking for it")
        blob.set_blob_metadata()
        same(blob.get_blob_properties().metadata, {}, "metadata removed")


@group("page-tags")
def page_tags(service):
    with container(service) as box:
        blob = new_page_blob(box, tags={"colour": "dark red", "n": "1"})
        same(blob.get_blob_tags(), {"colour": "dark red", "n": "1"}, "tags at creation")
        same(blob.get_blob_properties().tag_count, 2, "number of tags")
        etag = blob.get_blob_properties().etag
        blob.set_blob_tags({"colour": "blue", "a:b/c": "d+e=f"})
        same(blob.get_blob_tags(), {"colour": "blue", "a:b/c": "d+e=f"}, "tags replaced")
        same(blob.get_blob_properties().etag, etag, "ETag after the tags changed")
        same(next(iter(box.list_blobs(include=["tags"]))).tags, {"colour": "blue", "a:b/c": "d+e=f"}, "tags in a list")
        good, bad = "\"colour\" = 'blue'", "\"colour\" = 'red'"
        blob.upload_page(page(1), 0, PAGE, if_tags_match_condition=good)
        blob.get_blob_properties(if_tags_match_condition=good)
        same_bytes(read(blob, 0, PAGE, if_tags_match_condition=good), page(1), "read with the right tag")
        refused("ConditionNotMet", blob.upload_page, page(2), 0, PAGE, if_tags_match_condition=bad, status=412)
        refused("ConditionNotMet", blob.clear_page, 0, PAGE, if_tags_match_condition=bad, status=412)
        refused("ConditionNotMet", blob.set_blob_metadata, {"a": "b"}, if_tags_match_condition=bad, status=412)
        refused("ConditionNotMet", blob.get_blob_tags, if_tags_match_condition=bad, status=412)
        refused("ConditionNotMet", blob.delete_blob, if_tags_match_condition=bad, status=412)
        refused("ConditionNotMet", read, blob, 0, PAGE, if_tags_match_condition=bad, status=412)
        blob.set_blob_tags({})
        same(blob.get_blob_tags(), {}, "tags removed")
        check(not blob.get_blob_properties().tag_count, "tags are still counted")
        refused(
            {"InvalidTag", "TagsTooLarge", "InvalidTags"},
            blob.set_blob_tags,
            {f"t{i}": "v" for i in range(11)},
            status=400,
        )


@group("page-conditions")
def page_conditions(service):
    with container(service) as box:
        blob = new_page_blob(box)
        old = blob.get_blob_properties().etag
        now = blob.upload_page(page(1), 0, PAGE)["etag"]
        moment = blob.get_blob_properties().last_modified
        before = moment - datetime.timedelta(hours=1)
        same_etag = {"match_condition": MatchConditions.IfNotModified}
        other_etag = {"match_condition": MatchConditions.IfModified}

        def unmet(call, *args, **options):
            refused("ConditionNotMet", call, *args, **options, status=412)

        unmet(blob.upload_page, page(2), 0, PAGE, etag=old, **same_etag)
        unmet(blob.upload_page, page(2), 0, PAGE, etag=now, **other_etag)
        unmet(blob.upload_page, page(2), 0, PAGE, if_modified_since=moment)
        unmet(blob.upload_page, page(2), 0, PAGE, if_unmodified_since=before)
        unmet(blob.clear_page, 0, PAGE, etag=old, **same_etag)
        unmet(blob.resize_blob, PAGE, etag=old, **same_etag)
        unmet(blob.set_blob_metadata, {"a": "b"}, etag=old, **same_etag)
        unmet(blob.set_http_headers, ContentSettings(), etag=old, **same_etag)
        unmet(blob.set_sequence_number, SequenceNumberAction.Update, 1, etag=old, **same_etag)
        unmet(blob.create_snapshot, etag=old, **same_etag)
        unmet(blob.acquire_lease, etag=old, **same_etag)
        unmet(blob.delete_blob, etag=old, **same_etag)
        unmet(lambda: list(blob.list_page_ranges(etag=old, **same_etag)))
        unmet(read, blob, 0, PAGE, etag=old, **same_etag)
        unmet(read, blob, 0, PAGE, if_unmodified_since=before)
        unmet(blob.get_blob_properties, etag=old, **same_etag)
        same(blob.get_blob_properties().etag, now, "ETag after calls that were refused")
        refused("ConditionNotMet", read, blob, 0, PAGE, etag=now, **other_etag, status=304)
        refused("ConditionNotMet", read, blob, 0, PAGE, if_modified_since=moment, status=304)
        refused("ConditionNotMet", blob.get_blob_properties, etag=now, **other_etag, status=304)
        same_bytes(read(blob, 0, PAGE, etag=now, **same_etag), page(1), "read with the right ETag")
        same_bytes(read(blob, 0, PAGE, etag=old, **other_etag), page(1), "read unless an older ETag")
        same_bytes(read(blob, 0, PAGE, if_modified_since=before), page(1), "read if newer")
        blob.get_blob_properties(if_unmodified_since=moment)
        now = blob.upload_page(page(3), 0, PAGE, etag=now, **same_etag)["etag"]
        now = blob.upload_page(page(3), 0, PAGE, match_condition=MatchConditions.IfPresent)["etag"]
        now = blob.set_blob_metadata({"a": "b"}, etag=now, **same_etag)["etag"]
        blob.delete_blob(etag=now, **same_etag)


@group("page-lease")
def page_lease(service):
    with container(service) as box:
        blob = new_page_blob(box)
        refused("LeaseNotPresentWithBlobOperation", blob.upload_page, page(1), 0, PAGE, lease=NO_SUCH_LEASE, status=412)
        lease = blob.acquire_lease(15, lease_id=OWN_LEASE)
        same(lease.id, OWN_LEASE, "the proposed lease id")
        found = blob.get_blob_properties().lease
        same((found.status, found.state, found.duration), ("locked", "leased", "fixed"), "lease held")
        same(next(iter(box.list_blobs())).lease.state, "leased", "lease in a list")
        for call, args in (
            (blob.upload_page, (page(1), 0, PAGE)),
            (blob.clear_page, (0, PAGE)),
            (blob.resize_blob, (PAGE,)),
            (blob.set_blob_metadata, ({"a": "b"},)),
            (blob.set_http_headers, (ContentSettings(),)),
            (blob.set_sequence_number, (SequenceNumberAction.Update, 1)),
            (blob.create_page_blob, (PAGE,)),
            (blob.delete_blob, ()),
        ):
            refused("LeaseIdMissing", call, *args, status=412)
            refused("LeaseIdMismatchWithBlobOperation", call, *args, lease=NO_SUCH_LEASE, status=412)
        refused("LeaseIdMismatchWithBlobOperation", read, blob, 0, PAGE, lease=NO_SUCH_LEASE, status=412)
        same_bytes(read(blob, 0, PAGE), bytes(PAGE), "read without the lease")
        blob.upload_page(page(1), 0, PAGE, lease=lease)
        same_bytes(read(blob, 0, PAGE, lease=lease), page(1), "read with the lease")
        refused("LeaseAlreadyPresent", blob.acquire_lease, lease_id=NO_SUCH_LEASE, status=409)
        lease.renew()
        lease.change(CHANGED_LEASE)
        same(lease.id, CHANGED_LEASE, "the changed lease id")
        refused("LeaseIdMismatchWithLeaseOperation", BlobLeaseClient(blob, OWN_LEASE).renew, status=409)
        refused("LeaseIdMismatchWithLeaseOperation", BlobLeaseClient(blob, OWN_LEASE).release, status=409)
        blob.upload_page(page(2), 0, PAGE, lease=lease)
        lease.release()
        same(blob.get_blob_properties().lease.state, "available", "lease released")
        refused(
            {"LeaseNotPresentWithBlobOperation", "LeaseLost"},
            blob.upload_page,
            page(1),
            0,
            PAGE,
            lease=CHANGED_LEASE,
            status=412,
        )
        blob.upload_page(page(3), 0, PAGE)
        lease = blob.acquire_lease()
        same(blob.get_blob_properties().lease.duration, "infinite", "duration")
        blob.create_snapshot(lease=lease)
        remaining = lease.break_lease(60)
        check(0 < remaining <= 60, f"seconds to the end of the lease: {remaining}")
        same(blob.get_blob_properties().lease.state, "breaking", "lease being broken")
        refused("LeaseIsBreakingAndCannotBeChanged", lease.change, CHANGED_LEASE, status=409)
        blob.upload_page(page(4), 0, PAGE, lease=lease)
        same(lease.break_lease(0), 0, "seconds to the end of a lease broken at once")
        same(blob.get_blob_properties().lease.state, "broken", "lease broken")
        blob.upload_page(page(5), 0, PAGE)
        refused("LeaseNotPresentWithLeaseOperation", BlobLeaseClient(new_page_blob(box, "b")).break_lease, status=409)
        refused("InvalidHeaderValue", blob.acquire_lease, 5, status=400)
        lease = blob.acquire_lease()
        blob.delete_blob(delete_snapshots="include", lease=lease)


# ---- page blobs: snapshots, copies, tiers


@group("page-snapshot")
def page_snapshot(service):
    with container(service) as box:
        blob = new_page_blob(box, metadata={"of": "base"})
        etag = blob.upload_page(page(1), 0, PAGE)["etag"]
        first = blob.create_snapshot()
        same(first["etag"], etag, "ETag of a snapshot that changes nothing")
        blob.upload_page(page(2), 0, PAGE)
        second = blob.create_snapshot(metadata={"of": "snapshot"})["snapshot"]
        first = first["snapshot"]
        check(first < second, "the second snapshot is not after the first")
        blob.upload_page(page(3), 0, PAGE)
        blob.resize_blob(2 * PAGE)
        one = box.get_blob_client("disk", snapshot=first)
        two = box.get_blob_client("disk", snapshot=second)
        same_bytes(read(one), page(1) + bytes(7 * PAGE), "content of the first snapshot")
        same_bytes(read(two, 0, PAGE), page(2), "content of the second snapshot")
        same_bytes(read(blob), page(3) + bytes(PAGE), "content of the blob")
        same(ranges(one), [pages(0)], "page ranges of a snapshot")
        same(one.get_blob_properties().size, 8 * PAGE, "size of a snapshot")
        same(one.get_blob_properties().metadata, {"of": "base"}, "metadata of the first snapshot")
        same(two.get_blob_properties().metadata, {"of": "snapshot"}, "metadata of the second snapshot")
        same(blob.get_blob_properties().metadata, {"of": "base"}, "metadata of the blob")
        missing = box.get_blob_client("disk", snapshot=NO_SUCH_SNAPSHOT)
        refused("BlobNotFound", missing.get_blob_properties, status=404)
        same([b.snapshot for b in box.list_blobs()], [None], "a list without snapshots")
        same([b.snapshot for b in box.list_blobs(include="snapshots")], [first, second, None], "a list with snapshots")
        refused("SnapshotsPresent", blob.delete_blob, status=409)
        one.delete_blob()
        same([b.snapshot for b in box.list_blobs(include="snapshots")], [second, None], "a list after one was deleted")
        refused("BlobNotFound", one.get_blob_properties, status=404)
        blob.delete_blob(delete_snapshots="only")
        same([b.snapshot for b in box.list_blobs(include="snapshots")], [None], "a list after all were deleted")
        blob.create_snapshot()
        blob.delete_blob(delete_snapshots="include")
        same(list(box.list_blobs(include="snapshots")), [], "a list after the blob was deleted")


@group("page-copy")
def page_copy(service):
    with container(service) as box:
        source = new_page_blob(
            box, "source", metadata={"a": "b"}, content_settings=ContentSettings(content_type="x/y"), sequence_number=4
        )
        source.upload_page(page(1), 0, PAGE)
        source.upload_page(page(5), 5 * PAGE, PAGE)
        snapshot = source.create_snapshot()["snapshot"]
        blob = box.get_blob_client("copy")
        started = blob.start_copy_from_url(source.url)
        check(started["copy_status"] in ("success", "pending"), f"status {started['copy_status']}")
        found = copied(blob)
        same((found.copy.status, found.copy.id), ("success", started["copy_id"]), "copy")
        same(found.copy.progress, f"{8 * PAGE}/{8 * PAGE}", "progress")
        check(found.copy.completion_time, "the time of completion is missing")
        check(found.copy.source.split("?")[0] == source.url, f"source {found.copy.source}")
        same((found.blob_type.value, found.size), ("PageBlob", 8 * PAGE), "type and size")
        same(found.metadata, {"a": "b"}, "metadata")
        same(found.content_settings.content_type, "x/y", "content type")
        same_bytes(read(blob), read(source), "content")
        same(ranges(blob), [pages(0), pages(5)], "page ranges")
        listed = [b for b in box.list_blobs(name_starts_with="copy", include=["copy"])]
        same([b.copy.status for b in listed], ["success"], "copy in a list")
        refused("NoPendingCopyOperation", blob.abort_copy, started["copy_id"], status=409)
        source.clear_page(0, 8 * PAGE)
        blob.start_copy_from_url(source_url(source, snapshot), metadata={"c": "d"})
        same(copied(blob).metadata, {"c": "d"}, "metadata given with the copy")
        same_bytes(read(blob, 0, PAGE), page(1), "content of a snapshot copied")
        restored = source.start_copy_from_url(source.url + f"?snapshot={snapshot}")
        check(restored["copy_id"], "x-ms-copy-id is missing")
        copied(source)
        same_bytes(read(source, 5 * PAGE, PAGE), page(5), "content of a snapshot brought back")
        refused(
            "ConditionNotMet",
            blob.start_copy_from_url,
            source.url,
            etag='"0x1"',
            match_condition=MatchConditions.IfNotModified,
            status=412,
        )
        refused(
            {"SourceConditionNotMet", "ConditionNotMet"},
            blob.start_copy_from_url,
            source.url,
            source_etag='"0x1"',
            source_match_condition=MatchConditions.IfNotModified,
            status=412,
        )
        missing = box.get_blob_client("missing").url
        refused({"BlobNotFound", "CannotVerifyCopySource"}, blob.start_copy_from_url, missing, status=404)
        lease = blob.acquire_lease()
        refused("LeaseIdMissing", blob.start_copy_from_url, source.url, status=412)
        blob.start_copy_from_url(source.url, destination_lease=lease)
        copied(blob)
        blob.delete_blob(lease=lease)
        source.delete_blob(delete_snapshots="include")


@group("page-incremental-copy")
def page_incremental_copy(service):
    with container(service) as box:
        source = new_page_blob(box, "source")
        source.upload_page(page(1), 0, PAGE)
        first = source.create_snapshot()["snapshot"]
        source.upload_page(page(2), PAGE, PAGE)
        second = source.create_snapshot()["snapshot"]
        blob = box.get_blob_client("backup")
        refused(
            "IncrementalCopySourceMustBeSnapshot",
            blob.start_copy_from_url,
            source_url(source),
            incremental_copy=True,
            status=409,
        )
        kept = []
        for snapshot in (first, second):
            blob.start_copy_from_url(source_url(source, snapshot), incremental_copy=True)
            found = copied(blob)
            same(found.copy.status, "success", "copy")
            check(found.copy.incremental_copy, "x-ms-incremental-copy is not true")
            check(found.copy.destination_snapshot, "x-ms-copy-destination-snapshot is missing")
            kept.append(found.copy.destination_snapshot)
        listed = [b.snapshot for b in box.list_blobs(name_starts_with="backup", include=["snapshots"])]
        same([s for s in listed if s], kept, "snapshots of the copy")
        for snapshot, content in zip(kept, (page(1), page(1) + page(2))):
            client = box.get_blob_client("backup", snapshot=snapshot)
            same_bytes(read(client), content + bytes(8 * PAGE - len(content)), "content of a snapshot of the copy")
        refused("OperationNotAllowedOnIncrementalCopyBlob", blob.upload_page, page(3), 0, PAGE, status=409)
        refused(
            EARLIER_SNAPSHOT,
            blob.start_copy_from_url,
            source_url(source, first),
            incremental_copy=True,
            status=409,
        )
        other = new_page_blob(box, "other")
        moment = other.create_snapshot()["snapshot"]
        refused(
            "IncrementalCopyBlobMismatch",
            blob.start_copy_from_url,
            source_url(other, moment),
            incremental_copy=True,
            status=409,
        )
        other.delete_blob(delete_snapshots="include")
        blob.delete_blob(delete_snapshots="include")
        source.delete_blob(delete_snapshots="include")


@group("page-tier")
def page_tier(service):
    with container(service) as box:
        blob = new_page_blob(box, size=GIB, premium_page_blob_tier="P10")
        found = blob.get_blob_properties()
        same(found.blob_tier, "P10", "tier at creation")
        check(not found.blob_tier_inferred, "a tier that was given is inferred")
        same(next(iter(box.list_blobs())).blob_tier, "P10", "tier in a list")
        blob.set_premium_page_blob_tier("P20")
        same(blob.get_blob_properties().blob_tier, "P20", "tier raised")
        refused("CannotChangeToLowerTier", blob.set_premium_page_blob_tier, "P6", status=409)
        large = new_page_blob(box, "large", 256 * GIB)
        refused("BlobTierInadequateForContentLength", large.set_premium_page_blob_tier, "P10", status=409)
        copy = box.get_blob_client("copy")
        copy.start_copy_from_url(blob.url, premium_page_blob_tier=PremiumPageBlobTier.P30)
        same(copied(copy).blob_tier, "P30", "tier of a copy")


# ---- checksums


@group("page-md5")
def page_md5(service):
    with container(service) as box:
        blob = new_page_blob(box)
        done = blob.upload_page(page(1), 0, PAGE, validate_content=True)
        same(bytes(done["content_md5"] or b""), md5(page(1)), "MD5 in the answer to a write")
        blob.upload_page(page(2), PAGE, PAGE, transactional_content_md5=bytearray(md5(page(2))))
        refused(
            "Md5Mismatch",
            blob.upload_page,
            page(3),
            0,
            PAGE,
            transactional_content_md5=bytearray(md5(page(4))),
            status=400,
        )
        refused(
            "InvalidMd5", blob.upload_page, page(3), 0, PAGE, transactional_content_md5=bytearray(b"short"), status=400
        )
        same_bytes(read(blob, 0, 2 * PAGE, validate_content=True), page(1) + page(2), "content with its MD5")
        headers = blob._client.blob.download(
            range="bytes=100-999", range_get_content_md5=True, cls=lambda _, body, headers: headers
        )
        content = (page(1) + page(2))[100:1000]
        same(bytes(headers["Content-MD5"] or b""), md5(content), "MD5 of a range")
        headers = blob._client.blob.download(range="bytes=0-511", cls=lambda _, body, headers: headers)
        check(not headers["Content-MD5"], "MD5 of a range without asking for it")
        large = new_page_blob(box, "large", 8 * MIB)
        refused(
            {"InvalidHeaderValue", "OutOfRangeInput", "InvalidRange"},
            large._client.blob.download,
            range=f"bytes=0-{4 * MIB}",
            range_get_content_md5=True,
        )


@group("page-crc64")
def page_crc64(service):
    same(crc64(b"123456789"), 0xAE8B14860A799888.to_bytes(8, "little"), "the checksum of this program")
    with container(service) as box:
        blob = new_page_blob(box)
        done = put_page(blob, page(1), "bytes=0-511", transactional_content_crc64=bytearray(crc64(page(1))))
        same(bytes(done["x-ms-content-crc64"] or b""), crc64(page(1)), "CRC64 in the answer to a write")
        refused(
            "Crc64Mismatch",
            put_page,
            blob,
            page(2),
            "bytes=0-511",
            transactional_content_crc64=bytearray(crc64(page(3))),
            status=400,
        )
        refused(
            "BothCrc64AndMd5HeaderPresent",
            put_page,
            blob,
            page(2),
            "bytes=0-511",
            transactional_content_crc64=bytearray(crc64(page(2))),
            transactional_content_md5=bytearray(md5(page(2))),
            status=400,
        )
        same_bytes(read(blob, 0, PAGE), page(1), "content after writes that were refused")
        headers = blob._client.blob.download(
            range="bytes=10-299", range_get_content_crc64=True, cls=lambda _, body, headers: headers
        )
        same(bytes(headers["x-ms-content-crc64"] or b""), crc64(page(1)[10:300]), "CRC64 of a range")


# ---- lists and names


@group("list-flat")
def list_flat(service):
    with container(service) as box:
        new_page_blob(box, "a/1", sequence_number=3)
        new_page_blob(box, "a/2")
        box.upload_blob("b/1", b"block")
        box.get_blob_client("c").create_append_blob()
        found = {b.name: b for b in box.list_blobs()}
        same(list(found), ["a/1", "a/2", "b/1", "c"], "names in order")
        same([b.blob_type.value for b in found.values()], ["PageBlob", "PageBlob", "BlockBlob", "AppendBlob"], "types")
        same([b.size for b in found.values()], [8 * PAGE, 8 * PAGE, 5, 0], "sizes")
        same(found["a/1"].page_blob_sequence_number, 3, "sequence number")
        for name, blob in found.items():
            kept = box.get_blob_client(name).get_blob_properties()
            same(blob.etag.strip('"'), kept.etag.strip('"'), f"ETag of {name}")
            same(blob.last_modified, kept.last_modified, f"Last-Modified of {name}")
            same(blob.creation_time, kept.creation_time, f"time of creation of {name}")
        same([b.name for b in box.list_blobs(name_starts_with="a/")], ["a/1", "a/2"], "names with a prefix")
        same(list(box.list_blobs(name_starts_with="none")), [], "names with an unknown prefix")
        same(list(box.list_blob_names(name_starts_with="b")), ["b/1"], "names alone")


@group("list-hierarchy")
def list_hierarchy(service):
    with container(service) as box:
        for name in ("d/1", "d/2", "d/e/3", "f/4", "top", "a-first"):
            new_page_blob(box, name, PAGE)

        def walk(**options):
            found = list(box.walk_blobs(**options))
            prefixes = [p.name for p in found if isinstance(p, BlobPrefix)]
            return prefixes, [b.name for b in found if not isinstance(b, BlobPrefix)]

        same(walk(), (["d/", "f/"], ["a-first", "top"]), "the top")
        same(walk(name_starts_with="d/"), (["d/e/"], ["d/1", "d/2"]), "one below")
        same(walk(name_starts_with="d/e/"), ([], ["d/e/3"]), "two below")
        same(walk(name_starts_with="d"), (["d/"], []), "the beginning of a name")
        same(walk(delimiter="e"), (["d/e"], ["a-first", "d/1", "d/2", "f/4", "top"]), "another delimiter")
        answers = [[p.name for p in answer] for answer in box.walk_blobs(results_per_page=1).by_page()]
        same(sorted(sum(answers, [])), ["a-first", "d/", "f/", "top"], "one by one")
        check(max(map(len, answers)) == 1, "more than one in an answer")


@group("list-include")
def list_include(service):
    with container(service) as box:
        blob = new_page_blob(box, "a", metadata={"k": "v"}, tags={"t": "u"})
        blob.create_snapshot()
        box.get_blob_client("b").start_copy_from_url(blob.url)
        copied(box.get_blob_client("b"))
        box.get_blob_client("c").stage_block("0001", b"not committed")
        same([b.name for b in box.list_blobs()], ["a", "b"], "names")
        same(
            [b.name for b in box.list_blobs(include=["uncommittedblobs"])], ["a", "b", "c"], "names with what is staged"
        )
        found = list(box.list_blobs(include=["snapshots", "metadata", "tags", "copy"]))
        found.sort(key=lambda b: (b.name, not b.snapshot))
        same(
            [(b.name, bool(b.snapshot)) for b in found],
            [("a", True), ("a", False), ("b", False)],
            "names and snapshots",
        )
        same([b.metadata for b in found], [{"k": "v"}] * 3, "metadata")
        same(found[1].tags, {"t": "u"}, "tags")
        same(found[2].copy.status, "success", "copy")
        check(not found[1].copy.status, "a copy where there was none")
        blob.delete_blob(delete_snapshots="include")


@group("list-paged")
def list_paged(service):
    with container(service) as box:
        names = [f"blob-{number:02}" for number in range(25)]
        for name in names:
            new_page_blob(box, name, PAGE)
        answers = [[b.name for b in answer] for answer in box.list_blobs(results_per_page=10).by_page()]
        same(answers, [names[:10], names[10:20], names[20:]], "answers of ten")
        first = box.list_blobs(results_per_page=7).by_page()
        same([b.name for b in next(first)], names[:7], "the first answer")
        rest = box.list_blobs(results_per_page=7).by_page(continuation_token=first.continuation_token)
        same([b.name for answer in rest for b in answer], names[7:], "answers after the marker")
        some = [[b.name for b in a] for a in box.list_blobs(name_starts_with="blob-1", results_per_page=4).by_page()]
        same(some, [names[10:14], names[14:18], names[18:20]], "answers with a prefix")


NAMES = [
    "space in name",
    "umlaut-äöü-漢字-\N{ROCKET}",
    "percent%20and%2Fmore%",
    "plus+sign",
    "dir//double/slash",
    "quote'and\"double",
    "ask?mark",
    "hash#tag",
    "and&equals=1;semi",
    "[brackets]{braces}",
    "colon:at@comma,star*!(x)$~",
    "<less>",
    "UPPER-lower",
    "n" * 1024,
]


@group("names")
def names(service):
    with container(service) as box:
        for number, name in enumerate(NAMES):
            blob = new_page_blob(box, name, PAGE)
            blob.upload_page(page(number), 0, PAGE)
        same(sorted(b.name for b in box.list_blobs()), sorted(NAMES), "names in a list")
        for number, name in enumerate(NAMES):
            blob = box.get_blob_client(name)
            same_bytes(read(blob), page(number), f"content of {name[:40]}")
            reader = with_token(blob, blob_sas(blob))
            same_bytes(read(reader), page(number), f"content of {name[:40]}, with a token")
            if len(name) < 1024:
                same([b.name for b in box.list_blobs(name_starts_with=name)], [name], "a name as a prefix")
            blob.delete_blob()
        same(list(box.list_blobs()), [], "names after all were deleted")


@group("names-encoded")
def names_encoded(service):
    # Characters that XML cannot carry are listed percent-encoded.
    with container(service) as box:
        name = "not\ufffexml"
        new_page_blob(box, name, PAGE)
        new_page_blob(box, name + "/below", PAGE)
        same([b.name for b in box.list_blobs()], [name, name + "/below"], "names")
        same(sorted(b.name for b in box.walk_blobs()), [name, name + "/"], "names in a hierarchy")


# ---- block and append blobs


@group("block-upload")
def block_upload(service):
    with container(service) as box:
        blob = box.get_blob_client("text")
        done = blob.upload_blob(
            b"hello",
            metadata={"a": "b"},
            content_settings=ContentSettings(content_type="text/plain"),
            validate_content=True,
        )
        check(done["etag"], "the ETag is missing")
        found = blob.get_blob_properties()
        same((found.blob_type.value, found.size), ("BlockBlob", 5), "type and size")
        same(found.content_settings.content_type, "text/plain", "content type")
        same(bytes(found.content_settings.content_md5), md5(b"hello"), "MD5")
        same(found.metadata, {"a": "b"}, "metadata")
        same_bytes(read(blob), b"hello", "content")
        same_bytes(read(blob, 1, 3), b"ell", "a range")
        same_bytes(read(blob, 4, 100), b"o", "a range over the end")
        refused("InvalidRange", read, blob, 5, 1, status=416)
        refused("BlobAlreadyExists", blob.upload_blob, b"again", status=409)
        blob.upload_blob(b"", overwrite=True)
        same_bytes(read(blob), b"", "content of nothing")
        refused(
            "Md5Mismatch",
            blob._client.block_blob.upload,
            content_length=3,
            body=b"abc",
            transactional_content_md5=bytearray(md5(b"abd")),
            status=400,
        )
        snapshot = blob.create_snapshot()["snapshot"]
        blob.upload_blob(b"new", overwrite=True)
        same_bytes(read(box.get_blob_client("text", snapshot=snapshot)), b"", "content of a snapshot")
        refused("SnapshotsPresent", blob.delete_blob, status=409)
        blob.delete_blob(delete_snapshots="include")


@group("block-large")
def block_large(service):
    with container(service) as box:
        content = filled(70 * MIB + 123, 1)
        blob = box.get_blob_client("large")
        blob.upload_blob(content, max_concurrency=4)
        same(blob.get_blob_properties().size, len(content), "size")
        committed, uncommitted = blob.get_block_list("all")
        same((len(committed), len(uncommitted)), (18, 0), "number of blocks")
        same(sum(block.size for block in committed), len(content), "size of all blocks")
        same(md5(read(blob, max_concurrency=4)), md5(content), "MD5 of the content")
        same_bytes(read(blob, 4 * MIB - 10, 20), content[4 * MIB - 10 : 4 * MIB + 10], "a range over two blocks")


def commit_kinds(blob, **kinds):
    """Put Block List with the kind of each block: the library itself always asks for the latest."""
    kinds = {kind: [base64.b64encode(n.encode()).decode() for n in names] for kind, names in kinds.items()}
    blob._client.block_blob.commit_block_list(BlockLookupList(**kinds))


@group("block-list")
def block_list(service):
    with container(service) as box:
        blob = box.get_blob_client("blocks")

        def listed(kind="all"):
            return tuple([(b.id, b.size) for b in part] for part in blob.get_block_list(kind))

        for name, content in (("one", b"1"), ("two", b"22"), ("thr", b"333")):
            blob.stage_block(name, content, validate_content=True)
        same(sorted(listed()[1]), [("one", 1), ("thr", 3), ("two", 2)], "blocks staged")
        same(listed()[0], [], "blocks committed before the commit")
        refused("BlobNotFound", blob.get_blob_properties, status=404)
        blob.commit_block_list([BlobBlock("two"), BlobBlock("one")], metadata={"a": "b"})
        same(listed(), ([("two", 2), ("one", 1)], []), "blocks committed")
        same_bytes(read(blob), b"221", "content")
        same(blob.get_blob_properties().metadata, {"a": "b"}, "metadata")
        blob.stage_block("one", b"new one")
        blob.stage_block("fou", b"4444")
        same(listed("committed")[0], [("two", 2), ("one", 1)], "blocks still committed")
        same(sorted(listed("uncommitted")[1]), [("fou", 4), ("one", 7)], "blocks staged anew")
        same_bytes(read(blob), b"221", "content before the commit")
        blob.commit_block_list([BlobBlock("one"), BlobBlock("two"), BlobBlock("fou"), BlobBlock("two")])
        same_bytes(read(blob), b"new one22444422", "content after the commit")
        same(listed(), ([("one", 7), ("two", 2), ("fou", 4), ("two", 2)], []), "blocks after the commit")
        blob.stage_block("two", b"staged")
        commit_kinds(blob, committed=["two"], uncommitted=["two"])
        same_bytes(read(blob), b"22staged", "content of a block committed and staged")
        refused("InvalidBlockList", blob.commit_block_list, [BlobBlock("not")], status=400)
        refused("InvalidBlockList", commit_kinds, blob, uncommitted=["two"], status=400)
        etag = blob.get_blob_properties().etag
        blob.stage_block("fin", b"end")
        refused({"InvalidBlobOrBlock", "InvalidBlockId"}, blob.stage_block, "longer name", b"x", status=400)
        same(blob.get_blob_properties().etag, etag, "ETag after a block was staged")
        refused(
            "ConditionNotMet",
            blob.commit_block_list,
            [BlobBlock("fin")],
            etag='"0x1"',
            match_condition=MatchConditions.IfNotModified,
            status=412,
        )
        blob.commit_block_list([BlobBlock("fin")], etag=etag, match_condition=MatchConditions.IfNotModified)
        blob.commit_block_list([])
        same_bytes(read(blob), b"", "content of no blocks")


@group("block-from-url")
def block_from_url(service):
    with container(service) as box:
        source = box.get_blob_client("source")
        source.upload_blob(b"0123456789")
        blob = box.get_blob_client("target")
        blob.stage_block_from_url("one", source_url(source), 2, 3)
        blob.stage_block_from_url("two", source_url(source))
        blob.commit_block_list([BlobBlock("one"), BlobBlock("two")])
        same_bytes(read(blob), b"2340123456789", "content")


@group("block-copy")
def block_copy(service):
    with container(service) as box:
        source = box.get_blob_client("source")
        source.upload_blob(b"content", metadata={"a": "b"})
        blob = box.get_blob_client("copy")
        blob.start_copy_from_url(source.url)
        same(copied(blob).copy.status, "success", "copy")
        same_bytes(read(blob), b"content", "content")
        other = box.get_blob_client("at-once")
        done = other.start_copy_from_url(source_url(source), requires_sync=True)
        same(done["copy_status"], "success", "copy at once")
        same_bytes(read(other), b"content", "content copied at once")


@group("append")
def append(service):
    with container(service) as box:
        blob = box.get_blob_client("log")
        blob.create_append_blob(metadata={"a": "b"}, content_settings=ContentSettings(content_type="text/log"))
        done = blob.append_block(b"first ")
        same((done["blob_append_offset"], done["blob_committed_block_count"]), ("0", 1), "the first block")
        done = blob.append_block(b"second ", appendpos_condition=6, validate_content=True)
        same((done["blob_append_offset"], done["blob_committed_block_count"]), ("6", 2), "the second block")
        refused("AppendPositionConditionNotMet", blob.append_block, b"x", appendpos_condition=6, status=412)
        refused("MaxBlobSizeConditionNotMet", blob.append_block, b"x" * 10, maxsize_condition=20, status=412)
        blob.append_block(b"third", maxsize_condition=18)
        same_bytes(read(blob), b"first second third", "content")
        same_bytes(read(blob, 6, 6), b"second", "a range")
        found = blob.get_blob_properties()
        same((found.blob_type.value, found.size), ("AppendBlob", 18), "type and size")
        same(found.append_blob_committed_block_count, 3, "number of blocks")
        same(found.content_settings.content_type, "text/log", "content type")
        refused("InvalidBlobType", blob.upload_page, page(1), 0, PAGE, status=409)
        refused("InvalidBlobType", blob.stage_block, "one", b"x", status=409)
        copy = box.get_blob_client("copy")
        copy.start_copy_from_url(blob.url)
        same(copied(copy).blob_type.value, "AppendBlob", "type of the copy")
        same_bytes(read(copy), b"first second third", "content of the copy")
        same(
            [(b.name, b.blob_type.value) for b in box.list_blobs()],
            [("copy", "AppendBlob"), ("log", "AppendBlob")],
            "list",
        )
        large = box.get_blob_client("large")
        content = filled(9 * MIB, 1)
        large.upload_blob(content, blob_type="AppendBlob")
        same(md5(read(large)), md5(content), "MD5 of a large one")
        blob.create_append_blob()
        same(blob.get_blob_properties().size, 0, "size made anew")
        refused("AppendPositionConditionNotMet", blob.append_block, b"x", appendpos_condition=1, status=412)
        blob.delete_blob()
        refused("BlobNotFound", blob.append_block, b"x", status=404)


# ---- authorization


def client_with_key(service, key, **options):
    return BlobServiceClient(
        service.url, credential={"account_name": service.account_name, "account_key": key}, retry_total=0, **options
    )


@group("auth-key")
def auth_key(service):
    wrong = client_with_key(service, base64.b64encode(b"not the key" * 5).decode())
    with container(service) as box:
        blob = new_page_blob(box)
        refused("AuthenticationFailed", lambda: list(wrong.list_containers()), status=403)
        refused(
            "AuthenticationFailed", wrong.get_blob_client(box.container_name, "disk").get_blob_properties, status=403
        )
        refused(
            "AuthenticationFailed",
            wrong.get_blob_client(box.container_name, "disk").upload_page,
            page(1),
            0,
            PAGE,
            status=403,
        )
        same_bytes(read(blob, 0, PAGE), bytes(PAGE), "content after a write that was refused")


@group("auth-date")
def auth_date(service):
    def long_ago(request):
        request.http_request.headers["x-ms-date"] = "Mon, 01 Jan 2018 00:00:00 GMT"

    old = client_with_key(service, key_of(service), raw_request_hook=long_ago)
    refused("AuthenticationFailed", lambda: list(old.list_containers()), status=403)


@group("auth-account-sas")
def auth_account_sas(service):
    def client(types="sco", permission="rwdlac", **options):
        options.setdefault("expiry", later())
        token = generate_account_sas(
            service.account_name, key_of(service), resource_types=types, permission=permission, **options
        )
        return BlobServiceClient(service.url.split("?")[0], credential=token, retry_total=0)

    with container(service) as box:
        name = box.container_name
        full = client()
        check(name in [c.name for c in full.list_containers(name_starts_with=name)], "the container is not listed")
        blob = full.get_blob_client(name, "disk")
        blob.create_page_blob(PAGE)
        blob.upload_page(page(1), 0, PAGE)
        same_bytes(read(blob), page(1), "content")
        reader = client(permission="r").get_blob_client(name, "disk")
        same_bytes(read(reader), page(1), "content with a token to read")
        refused("AuthorizationPermissionMismatch", reader.upload_page, page(2), 0, PAGE, status=403)
        refused("AuthorizationPermissionMismatch", reader.delete_blob, status=403)
        objects = client(types="o")
        same_bytes(read(objects.get_blob_client(name, "disk")), page(1), "content with a token for objects")
        refused("AuthorizationResourceTypeMismatch", lambda: list(objects.list_containers()), status=403)
        refused(
            "AuthorizationResourceTypeMismatch",
            lambda: list(objects.get_container_client(name).list_blobs()),
            status=403,
        )
        queue = client(services="q")
        refused("AuthorizationServiceMismatch", queue.get_blob_client(name, "disk").get_blob_properties, status=403)
        expired = client(expiry=later(-1), start=later(-2))
        refused("AuthenticationFailed", expired.get_blob_client(name, "disk").get_blob_properties, status=403)
        early = client(start=later(1), expiry=later(2))
        refused("AuthenticationFailed", early.get_blob_client(name, "disk").get_blob_properties, status=403)


@group("auth-container-sas")
def auth_container_sas(service):
    with container(service) as box:
        blob = new_page_blob(box)
        blob.upload_page(page(1), 0, PAGE)
        reader = with_token(box, container_sas(box, "r"))
        same_bytes(read(reader.get_blob_client("disk"), 0, PAGE), page(1), "content")
        refused("AuthorizationPermissionMismatch", lambda: list(reader.list_blobs()), status=403)
        refused(
            "AuthorizationPermissionMismatch", reader.get_blob_client("disk").upload_page, page(2), 0, PAGE, status=403
        )
        lister = with_token(box, container_sas(box, "rl"))
        same([b.name for b in lister.list_blobs()], ["disk"], "names")
        writer = with_token(box, container_sas(box, "cw"))
        new_page_blob(writer, "new").upload_page(page(3), 0, PAGE)
        refused("AuthorizationPermissionMismatch", read, writer.get_blob_client("new"), status=403)
        refused("AuthorizationPermissionMismatch", writer.get_blob_client("new").delete_blob, status=403)
        with_token(box, container_sas(box, "d")).get_blob_client("new").delete_blob()
        elsewhere = container_sas(box, "rl")
        with container(service) as second:
            refused("AuthenticationFailed", lambda: list(with_token(second, elsewhere).list_blobs()), status=403)


@group("auth-blob-sas")
def auth_blob_sas(service):
    with container(service) as box:
        blob = new_page_blob(box, "a folder/disk +%")
        blob.upload_page(page(1), 0, PAGE)
        snapshot = blob.create_snapshot()["snapshot"]
        blob.upload_page(page(2), 0, PAGE)
        reader = with_token(blob, blob_sas(blob, "r"))
        same_bytes(read(reader, 0, PAGE), page(2), "content")
        same(ranges(reader), [pages(0)], "page ranges")
        refused("AuthorizationPermissionMismatch", reader.upload_page, page(3), 0, PAGE, status=403)
        refused("AuthorizationPermissionMismatch", reader.set_blob_metadata, {"a": "b"}, status=403)
        refused("AuthorizationPermissionMismatch", reader.delete_blob, status=403)
        writer = with_token(blob, blob_sas(blob, "w"))
        writer.upload_page(page(4), 0, PAGE)
        refused("AuthorizationPermissionMismatch", read, writer, 0, PAGE, status=403)
        tagger = with_token(blob, blob_sas(blob, "t"))
        tagger.set_blob_tags({"a": "b"})
        same(tagger.get_blob_tags(), {"a": "b"}, "tags")
        refused("AuthorizationPermissionMismatch", reader.get_blob_tags, status=403)
        other = new_page_blob(box, "other")
        refused("AuthenticationFailed", read, with_token(other, blob_sas(blob, "r")), status=403)
        old = BlobClient.from_blob_url(source_url(blob, snapshot))
        same(old.snapshot, snapshot, "snapshot of a token")
        same_bytes(read(old, 0, PAGE), page(1), "content of a snapshot")
        refused("AuthenticationFailed", read, with_token(blob, blob_sas(blob, "r", snapshot=snapshot)), status=403)
        changed = with_token(
            blob, blob_sas(blob, "r", content_type="x/y", content_disposition="attachment; filename=z")
        )
        found = changed.download_blob(0, 10).properties.content_settings
        same((found.content_type, found.content_disposition), ("x/y", "attachment; filename=z"), "headers of the token")
        blob.delete_blob(delete_snapshots="include")


@group("auth-expired")
def auth_expired(service):
    with container(service) as box:
        blob = new_page_blob(box)
        for token in (
            blob_sas(blob, "r", expiry=later(-1)),
            blob_sas(blob, "r", start=later(1), expiry=later(2)),
            blob_sas(blob, "r").replace("sp=r", "sp=rw"),
            container_sas(box, "r", expiry=later(-1)),
        ):
            refused("AuthenticationFailed", read, with_token(blob, token), status=403)
            refused("AuthenticationFailed", with_token(blob, token).get_blob_properties, status=403)


@group("auth-policy")
def auth_policy(service):
    with container(service) as box:
        blob = new_page_blob(box)
        blob.upload_page(page(1), 0, PAGE)
        box.set_container_access_policy(
            {
                "reader": AccessPolicy(permission="r", expiry=later()),
                "expired": AccessPolicy(permission="r", expiry=later(-1)),
                "no-expiry": AccessPolicy(permission="r"),
            }
        )

        def client(policy, **options):
            token = generate_container_sas(
                box.account_name, box.container_name, account_key=key_of(box), policy_id=policy, **options
            )
            return with_token(blob, token)

        same_bytes(read(client("reader"), 0, PAGE), page(1), "content")
        refused("AuthorizationPermissionMismatch", client("reader").upload_page, page(2), 0, PAGE, status=403)
        refused("AuthenticationFailed", read, client("expired"), status=403)
        refused("AuthenticationFailed", read, client("unknown"), status=403)
        same_bytes(read(client("no-expiry", expiry=later()), 0, PAGE), page(1), "content with the expiry in the token")
        box.set_container_access_policy({})
        refused("AuthenticationFailed", read, client("reader"), status=403)


@group("auth-ip")
def auth_ip(service):
    with container(service) as box:
        blob = new_page_blob(box)
        elsewhere = with_token(blob, blob_sas(blob, "r", ip="203.0.113.7"))
        refused("AuthorizationSourceIPMismatch", elsewhere.get_blob_properties, status=403)
        elsewhere = with_token(blob, blob_sas(blob, "r", ip="203.0.113.7-203.0.113.99"))
        refused("AuthorizationSourceIPMismatch", read, elsewhere, status=403)
        anywhere = with_token(blob, blob_sas(blob, "r", ip="0.0.0.0-255.255.255.255"))
        same_bytes(read(anywhere), bytes(8 * PAGE), "content")


@group("auth-protocol")
def auth_protocol(service):
    with container(service) as box:
        blob = new_page_blob(box)
        both = with_token(blob, blob_sas(blob, "r", protocol="https,http"))
        same_bytes(read(both), bytes(8 * PAGE), "content")
        secure = with_token(blob, blob_sas(blob, "r", protocol="https"))
        if urlsplit(service.url).scheme == "http":
            refused("AuthorizationProtocolMismatch", secure.get_blob_properties, status=403)
            refused("AuthorizationProtocolMismatch", read, secure, status=403)
        else:
            same_bytes(read(secure), bytes(8 * PAGE), "content with a token for https")


@group("auth-public")
def auth_public(service):
    with container(service, public_access="blob") as box:
        blob = new_page_blob(box)
        blob.upload_page(page(1), 0, PAGE)
        anyone = with_token(blob, None)
        same_bytes(read(anyone, 0, PAGE), page(1), "content of a public blob")
        same(anyone.get_blob_properties().size, 8 * PAGE, "size of a public blob")
        same(ranges(anyone), [pages(0)], "page ranges of a public blob")
        refused(ANONYMOUS_REFUSED, lambda: list(with_token(box, None).list_blobs()))
        refused(ANONYMOUS_REFUSED, anyone.upload_page, page(2), 0, PAGE)
        refused(ANONYMOUS_REFUSED, anyone.delete_blob)
        box.set_container_access_policy({}, public_access="container")
        same([b.name for b in with_token(box, None).list_blobs()], ["disk"], "names in a public container")
        same_bytes(read(anyone, 0, PAGE), page(1), "content in a public container")
        refused(ANONYMOUS_REFUSED, anyone.upload_page, page(2), 0, PAGE)
        refused(ANONYMOUS_REFUSED, with_token(box, None).delete_container)
        box.set_container_access_policy({})
        refused(ANONYMOUS_REFUSED, read, anyone)


@group("auth-anonymous")
def auth_anonymous(service):
    with container(service) as box:
        blob = with_token(new_page_blob(box), None)
        refused(ANONYMOUS_REFUSED, read, blob)
        refused(ANONYMOUS_REFUSED, blob.get_blob_properties)
        refused(ANONYMOUS_REFUSED, blob.upload_page, page(1), 0, PAGE)
        refused(ANONYMOUS_REFUSED, lambda: list(with_token(box, None).list_blobs()))
        anyone = BlobServiceClient(service.url, retry_total=0)
        refused(ANONYMOUS_REFUSED | {"InvalidQueryParameterValue"}, lambda: list(anyone.list_containers()))


# ---- a server that rejects what is over its cap


@group("retry", only_by_name=True)
def retry(service):
    """Goes over the cap, and has the library bring every operation to success."""
    busy = []
    lock = threading.Lock()

    def count(response):
        answer = response.http_response
        if answer.status_code == 503:
            with lock:
                busy.append((answer.headers.get("x-ms-error-code"), answer.headers.get("Retry-After")))

    policy = ExponentialRetry(
        initial_backoff=0.1, increment_base=1.3, random_jitter_range=0.1, retry_total=20, retry_status=20
    )
    patient = BlobServiceClient(
        service.url, credential=key_credential(service), raw_response_hook=count, retry_policy=policy
    )
    with container(patient) as box:
        blob = new_page_blob(box, size=MIB)

        def work(number):
            offset = number % 2048 * PAGE
            blob.upload_page(page(number), offset, PAGE)
            headers = blob._client.blob.download(
                range=f"bytes={offset}-{offset + PAGE - 1}", cls=lambda response, body, _: b"".join(body)
            )
            same_bytes(headers, page(number), f"content written by operation {number}")

        done = 0
        with ThreadPoolExecutor(48) as pool:
            for start in range(0, 20 * 512, 512):
                for _ in pool.map(work, range(start, start + 512)):
                    done += 1
                if busy:
                    break
        same(done % 512, 0, "operations done")
        check(busy, f"not one of {2 * done} operations was answered 503: the cap was never met")
        same({code for code, _ in busy}, {"ServerBusy"}, "codes of the answers 503")
        check(all(after and after.isdigit() for _, after in busy), "an answer 503 is without Retry-After")
        written = {n % 2048: n for n in range(done)}
        content = b"".join(page(written[n]) if n in written else bytes(PAGE) for n in range(2048))
        same_bytes(read(blob), content, "content after all")


# ---- the program


def chosen(wanted):
    """The groups to run: all, or those named in full or by their beginning."""
    if not wanted:
        return [name for name in GROUPS if name not in ONLY_BY_NAME]
    found = []
    for text in wanted:
        names = [n for n in GROUPS if n == text or (n.startswith(text) and n not in ONLY_BY_NAME)]
        if not names:
            sys.exit(f"no group named {text}; there are: {' '.join(GROUPS)}")
        found += [n for n in names if n not in found]
    return found


def run(name, connection):
    service = BlobServiceClient.from_connection_string(connection, retry_total=0)
    try:
        GROUPS[name](service)
    except Exception as error:  # an error of the library is a failure as well
        frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == __file__]
        kind = "" if isinstance(error, Failure) else f"{type(error).__name__}: "
        return f"line {frames[1].lineno}: {kind}{' '.join(str(error).split())[:400]}"
    return None


def main(arguments):
    if not arguments or arguments[0] in ("-h", "--help"):
        print(__doc__)
        print("Groups:", " ".join(GROUPS))
        return 1
    connection = arguments[0]
    if connection.startswith("UseDevelopmentStorage=true"):
        connection = DEVELOPMENT
    failures = 0
    for name in chosen(arguments[1:]):
        why = run(name, connection)
        print(f"FAILED {name}: {why}" if why else f"ok {name}", flush=True)
        failures += bool(why)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
