#!/usr/bin/env node
// Checks Weir's blob service with Azure's own client library for JavaScript.
//
//     node azure_blob.mjs CONNECTION_STRING [GROUP ...]
//
// The connection string may be `UseDevelopmentStorage=true`. A group is named
// in full or by its beginning: `page` runs every group that starts with it. With
// no group named, all run but those that need a server of their own (`retry`,
// `page-structured`).
//
// Each group makes its own container and removes it. One line is printed for
// each group, and the exit status is 0 only if all of them passed.
//
// Needs Node 20 and the package @azure/storage-blob, 12.26 or later, which is
// looked for from the current directory and in NODE_PATH.

import { createCipheriv, createHash, randomUUID } from "node:crypto";
import { createRequire } from "node:module";
import path from "node:path";
import { isDeepStrictEqual } from "node:util";

const require = createRequire(path.join(process.cwd(), "package.json"));
const {
  AccountSASPermissions,
  AnonymousCredential,
  BlobSASPermissions,
  BlobServiceClient,
  ContainerSASPermissions,
  RestError,
  StorageSharedKeyCredential,
  generateAccountSASQueryParameters,
  generateBlobSASQueryParameters,
  newPipeline,
} = require("@azure/storage-blob");

const PAGE = 512;
const KIB = 1024;
const MIB = 1024 * KIB;
const GIB = 1024 * MIB;
const DEVELOPMENT =
  "DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;" +
  "AccountKey=Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==;" +
  "BlobEndpoint=http://127.0.0.1:10000/devstoreaccount1;";
const NO_SUCH_LEASE = "11111111-2222-3333-4444-555555555555";
const OWN_LEASE = "aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee";
const CHANGED_LEASE = "bbbbbbbb-cccc-dddd-eeee-ffffffffffff";
const NO_SUCH_SNAPSHOT = "2001-02-03T04:05:06.0000000Z";
// The first is in the service's list of codes; its libraries know the others too.
const EARLIER_SNAPSHOT = [
  "IncrementalCopyOfEarlierVersionSnapshotNotAllowed",
  "IncrementalCopyOfEarlierSnapshotNotAllowed",
  "IncrementalCopyOfEralierVersionSnapshotNotAllowed",
];
const NO_LEASE = ["LeaseIdMismatchWithLeaseOperation", "LeaseNotPresentWithLeaseOperation"];
// What the service answers to a request without credentials for something that
// is not public depends on the version asked for and on the account's settings.
const ANONYMOUS_REFUSED = ["NoAuthenticationInformation", "ResourceNotFound", "PublicAccessNotPermitted"];
const ONCE = { retryOptions: { maxTries: 1 } };

class Failure extends Error {}

const GROUPS = new Map();
const ONLY_BY_NAME = new Set();

/** Adds a function to the groups of checks. */
function group(name, run, onlyByName = false) {
  GROUPS.set(name, run);
  if (onlyByName) ONLY_BY_NAME.add(name);
}

// ---- helpers

function check(condition, what) {
  if (!condition) throw new Failure(what);
}

function shown(value) {
  const text = JSON.stringify(value) ?? String(value);
  return text.length <= 300 ? text : `${text.slice(0, 300)}... (${text.length} characters)`;
}

function same(found, wanted, what) {
  check(isDeepStrictEqual(found, wanted), `${what}: found ${shown(found)}, wanted ${shown(wanted)}`);
}

function sameBytes(found, wanted, what) {
  if (found.equals(wanted)) return;
  check(found.length === wanted.length, `${what}: ${found.length} bytes, wanted ${wanted.length}`);
  const at = found.findIndex((byte, index) => byte !== wanted[index]);
  throw new Failure(`${what}: differs first at byte ${at}: ${found[at]}, wanted ${wanted[at]}`);
}

/** The service's code for an error: from the header, else from the body. */
function errorCode(error) {
  const header = error.response?.headers.get("x-ms-error-code");
  const body = error.response?.parsedBody?.code;
  check(!header || !body || header === body, `x-ms-error-code is ${header} but the body says ${body}`);
  return header ?? body;
}

/** The call must be refused with one of the codes (and the status, if given). */
async function refused(codes, call, status) {
  const wanted = [codes].flat();
  const what = call
    .toString()
    .replace(/^(async )?\(\) => /, "")
    .replace(/\s+/g, " ")
    .slice(0, 80);
  let result;
  try {
    result = await call();
  } catch (error) {
    if (!(error instanceof RestError)) throw error;
    const found = errorCode(error);
    check(
      wanted.includes(found),
      `${what} was refused with ${error.statusCode} ${found}, not with ${wanted.join(" or ")}`,
    );
    if (status) same(error.statusCode, status, `status of ${what} refused with ${found}`);
    return;
  }
  throw new Failure(
    `${what} succeeded (${shown(result?._response?.status)}) but should be refused with ${wanted.join(" or ")}`,
  );
}

function unique(prefix = "weir") {
  return `${prefix}-${randomUUID().replaceAll("-", "").slice(0, 20)}`;
}

/** Runs with a container of its own, removed in the end. */
async function container(service, options, run) {
  const box = service.getContainerClient(unique());
  await box.create(options);
  try {
    await run(box);
  } catch (error) {
    await box
      .getBlobLeaseClient()
      .breakLease(0)
      .catch(() => {});
    await box.delete().catch(() => {});
    throw error;
  }
  await box.delete();
}

async function newPageBlob(box, name = "disk", size = 8 * PAGE, options = {}) {
  const blob = box.getPageBlobClient(name);
  await blob.create(size, options);
  return blob;
}

/** Bytes that look random, and are the same for the same seed. */
function filled(size, seed) {
  return createCipheriv("aes-128-ctr", md5(Buffer.from(String(seed))), Buffer.alloc(16)).update(Buffer.alloc(size));
}

/** One page of content that no other number has. */
function page(number) {
  return filled(PAGE, `page ${number}`);
}

async function all(iterable) {
  const found = [];
  for await (const item of iterable) found.push(item);
  return found;
}

async function read(blob, offset = 0, count = undefined, options = {}) {
  const answer = await blob.download(offset, count, options);
  return Buffer.concat(await all(answer.readableStreamBody));
}

const write = (blob, data, offset, options) => blob.uploadPages(data, offset, data.length, options);

/** Ranges with those that touch made one: a server may list them either way. */
function joined(parts) {
  const whole = [];
  for (const [start, end] of parts) {
    if (whole.length && whole.at(-1)[1] + 1 === start) whole.at(-1)[1] = end;
    else whole.push([start, end]);
  }
  return whole;
}

/** The written ranges as [start, end], the end inclusive. */
async function ranges(blob, offset, count, options) {
  return joined((await all(blob.listPageRanges(offset, count, options))).map((r) => [r.start, r.end]));
}

/** The ranges written (or cleared) since a snapshot. */
async function changes(blob, since, cleared = false, offset = 0, count = 64 * PAGE) {
  const found = await all(blob.listPageRangesDiff(offset, count, since));
  return joined(found.filter((r) => Boolean(r.isClear) === cleared).map((r) => [r.start, r.end]));
}

const pages = (first, count = 1) => [first * PAGE, (first + count) * PAGE - 1];

const namesOf = async (iterable) => (await all(iterable)).map((item) => item.name);

const inHours = (hours) => new Date(Date.now() + hours * 3600 * 1000);

const md5 = (data) => createHash("md5").update(data).digest();

function blobToken(blob, permission = "r", options = {}) {
  return token(
    { blobName: blob.name, containerName: blob.containerName },
    BlobSASPermissions.parse(permission),
    options,
  );
}

function containerToken(box, permission = "r", options = {}) {
  return token({ containerName: box.containerName }, ContainerSASPermissions.parse(permission), options);
}

function token(resource, permissions, options) {
  const values = { ...resource, permissions, expiresOn: inHours(1), ...options };
  return generateBlobSASQueryParameters(values, credential).toString();
}

/** The same blob or container, reached with a token (or with nothing). */
function withToken(client, sas) {
  const url = sas ? `${plain(client)}?${sas}` : plain(client);
  const Kind = client.constructor;
  return new Kind(url, new AnonymousCredential(), ONCE);
}

const plain = (client) => client.url.split("?")[0];

/** A URL of a blob from which the service itself may read. */
function sourceUrl(blob, snapshot) {
  const moment = snapshot ? `snapshot=${encodeURIComponent(snapshot)}&` : "";
  return `${plain(blob)}?${moment}${blobToken(blob, "r", snapshot ? { snapshotTime: snapshot } : {})}`;
}

/** Copies to the blob and waits until that is done. */
async function copy(blob, source, options = {}) {
  const poller = await blob.beginCopyFromURL(source, { intervalInMs: 100, ...options });
  return poller.pollUntilDone();
}

/** Waits until a copy to the blob is no longer pending. */
async function copied(blob) {
  for (let round = 0; round < 300; round += 1) {
    const properties = await blob.getProperties();
    if (properties.copyStatus !== "pending") return properties;
    await new Promise((done) => setTimeout(done, 100));
  }
  throw new Failure("the copy stays pending");
}

const CRC64_TABLE = Array.from({ length: 256 }, (_, byte) => {
  let value = BigInt(byte);
  for (let bit = 0; bit < 8; bit += 1) value = (value >> 1n) ^ (value & 1n ? 0x9a6c9329ac4bc9b5n : 0n);
  return value;
});

/** The checksum of x-ms-content-crc64, as the 8 bytes that are sent. */
function crc64(data) {
  let crc = 0xffffffffffffffffn;
  for (const byte of data) crc = CRC64_TABLE[Number((crc ^ BigInt(byte)) & 0xffn)] ^ (crc >> 8n);
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(crc ^ 0xffffffffffffffffn);
  return bytes;
}

const lowered = (metadata) =>
  Object.fromEntries(Object.entries(metadata ?? {}).map(([key, value]) => [key.toLowerCase(), value]));

// ---- containers

group("container-lifecycle", async (service) => {
  const box = service.getContainerClient(unique());
  await box.create({ metadata: { purpose: "first" } });
  await refused("ContainerAlreadyExists", () => box.create(), 409);
  same((await box.createIfNotExists()).succeeded, false, "creating a container that exists");
  check(await box.exists(), "a container just made does not exist");
  const properties = await box.getProperties();
  same(properties.metadata, { purpose: "first" }, "metadata");
  same([properties.leaseStatus, properties.leaseState], ["unlocked", "available"], "lease");
  check(!properties.blobPublicAccess, "a new container is public");
  check(properties.etag && properties.lastModified, "ETag or Last-Modified is missing");
  const blob = box.getPageBlobClient("blob");
  await refused("BlobNotFound", () => blob.getProperties(), 404);
  await refused("BlobNotFound", () => blob.download(), 404);
  await refused("BlobNotFound", () => blob.delete(), 404);
  same((await blob.deleteIfExists()).succeeded, false, "deleting a blob that does not exist");
  check(!(await blob.exists()), "a blob never written exists");
  await box.delete();
  check(!(await box.exists()), "a deleted container exists");
  await refused("ContainerNotFound", () => box.getProperties(), 404);
  await refused("ContainerNotFound", () => box.setMetadata({ a: "b" }), 404);
  await refused("ContainerNotFound", () => all(box.listBlobsFlat()), 404);
  await refused("ContainerNotFound", () => blob.create(PAGE), 404);
  await refused(["ContainerNotFound", "ContainerBeingDeleted"], () => box.delete());
  await refused("InvalidResourceName", () => service.createContainer("Upper-Case"), 400);
  await refused(["OutOfRangeInput", "InvalidResourceName"], () => service.createContainer("ab"), 400);
});

group("container-metadata", (service) =>
  container(service, { metadata: { one: "1", two: "second value" } }, async (box) => {
    const first = await box.getProperties();
    same(first.metadata, { one: "1", two: "second value" }, "metadata at creation");
    await box.setMetadata({ three: "3" });
    const second = await box.getProperties();
    same(second.metadata, { three: "3" }, "metadata replaced");
    check(second.etag !== first.etag, "the ETag stays when metadata changes");
    const conditions = { ifModifiedSince: second.lastModified };
    await refused("ConditionNotMet", () => box.setMetadata({ four: "4" }, { conditions }), 412);
    await box.setMetadata();
    same((await box.getProperties()).metadata, {}, "metadata removed");
  }),
);

group("container-acl", (service) =>
  container(service, {}, async (box) => {
    const empty = await box.getAccessPolicy();
    same(empty.signedIdentifiers, [], "policies of a new container");
    check(!empty.blobPublicAccess, "a new container is public");
    const start = new Date("2020-01-01T00:00:00Z");
    const expiry = new Date("2090-01-01T00:00:00Z");
    const policies = [
      { id: "reader", accessPolicy: { permissions: "r", startsOn: start, expiresOn: expiry } },
      { id: "writer", accessPolicy: { permissions: "rcw", expiresOn: expiry } },
    ];
    await box.setAccessPolicy(undefined, policies);
    const kept = (await box.getAccessPolicy()).signedIdentifiers;
    same(kept.map((p) => p.id).sort(), ["reader", "writer"], "identifiers");
    const reader = kept.find((p) => p.id === "reader").accessPolicy;
    same(reader.permissions, "r", "permission of the reader");
    same([reader.startsOn, reader.expiresOn], [start, expiry], "times of the reader");
    for (const access of ["container", "blob", undefined]) {
      await box.setAccessPolicy(access, policies);
      same((await box.getAccessPolicy()).blobPublicAccess, access, "public access in the ACL");
      same((await box.getProperties()).blobPublicAccess, access, "public access in the properties");
    }
    await box.setAccessPolicy(undefined, []);
    same((await box.getAccessPolicy()).signedIdentifiers, [], "policies removed");
  }),
);

group("container-list", async (service) => {
  const prefix = unique("weirlist");
  const names = [..."abcde"].map((letter) => `${prefix}-${letter}`);
  try {
    for (const name of names) await service.createContainer(name, { metadata: { name: name.at(-1) } });
    let found = await all(service.listContainers({ prefix }));
    same(
      found.map((c) => c.name),
      names,
      "names",
    );
    check(
      found.every((c) => c.properties.etag && c.properties.lastModified),
      "ETag or Last-Modified is missing",
    );
    check(
      found.every((c) => c.properties.leaseState === "available"),
      "a new container has a lease",
    );
    check(!found.some((c) => c.metadata && Object.keys(c.metadata).length), "metadata without asking for it");
    found = await all(service.listContainers({ prefix, includeMetadata: true }));
    same(
      found.map((c) => c.metadata.name),
      [..."abcde"],
      "metadata",
    );
    same(await namesOf(service.listContainers({ prefix: names[2] })), [names[2]], "one name");
    same(await namesOf(service.listContainers({ prefix: `${prefix}-none` })), [], "no name");
    const first = (await service.listContainers({ prefix }).byPage({ maxPageSize: 2 }).next()).value;
    same(
      first.containerItems.map((c) => c.name),
      names.slice(0, 2),
      "first page",
    );
    const more = { maxPageSize: 2, continuationToken: first.continuationToken };
    const rest = await all(service.listContainers({ prefix }).byPage(more));
    same(
      rest.map((answer) => answer.containerItems.map((c) => c.name)),
      [names.slice(2, 4), names.slice(4)],
      "pages after the marker",
    );
  } finally {
    for (const name of names) await service.deleteContainer(name).catch(() => {});
  }
});

group("container-lease", (service) =>
  container(service, {}, async (box) => {
    let lease = box.getBlobLeaseClient(OWN_LEASE);
    same((await lease.acquireLease(15)).leaseId, OWN_LEASE, "the proposed lease id");
    let found = await box.getProperties();
    same([found.leaseStatus, found.leaseState, found.leaseDuration], ["locked", "leased", "fixed"], "lease held");
    const other = box.getBlobLeaseClient(NO_SUCH_LEASE);
    await refused("LeaseAlreadyPresent", () => other.acquireLease(-1), 409);
    await refused("LeaseIdMissing", () => box.delete(), 412);
    const conditions = { leaseId: NO_SUCH_LEASE };
    await refused("LeaseIdMismatchWithContainerOperation", () => box.delete({ conditions }), 412);
    await (await newPageBlob(box)).delete();
    await lease.renewLease();
    same((await lease.changeLease(CHANGED_LEASE)).leaseId, CHANGED_LEASE, "the changed lease id");
    await refused("LeaseIdMismatchWithLeaseOperation", () => box.getBlobLeaseClient(OWN_LEASE).renewLease(), 409);
    await lease.releaseLease();
    same((await box.getProperties()).leaseState, "available", "lease released");
    await refused(NO_LEASE, () => box.getBlobLeaseClient(CHANGED_LEASE).renewLease(), 409);
    lease = box.getBlobLeaseClient();
    await lease.acquireLease(-1);
    same((await box.getProperties()).leaseDuration, "infinite", "duration");
    const remaining = (await lease.breakLease(60)).leaseTime;
    check(remaining > 0 && remaining <= 60, `seconds to the end of the lease: ${remaining}`);
    same((await box.getProperties()).leaseState, "breaking", "lease being broken");
    const breaking = ["LeaseIsBreakingAndCannotBeAcquired", "LeaseAlreadyPresent"];
    await refused(breaking, () => other.acquireLease(-1), 409);
    await refused("LeaseIdMissing", () => box.delete(), 412);
    same((await lease.breakLease(0)).leaseTime, 0, "seconds to the end of a lease broken at once");
    same((await box.getProperties()).leaseState, "broken", "lease broken");
    await refused("LeaseIsBrokenAndCannotBeRenewed", () => lease.renewLease(), 409);
    lease = box.getBlobLeaseClient(OWN_LEASE);
    await lease.acquireLease(-1);
    await lease.releaseLease();
    await refused("InvalidHeaderValue", () => lease.acquireLease(5), 400);
    found = service.getContainerClient(unique());
    await found.create();
    const { leaseId } = await found.getBlobLeaseClient().acquireLease(-1);
    await found.delete({ conditions: { leaseId } });
    await refused("ContainerNotFound", () => found.getProperties(), 404);
  }),
);

// ---- account

group("account-info", async (service) => {
  for (const client of [service, service.getContainerClient("unused")]) {
    const found = await client.getAccountInfo();
    check(found.skuName, "x-ms-sku-name is missing");
    check(found.accountKind, "x-ms-account-kind is missing");
  }
});

const CORS = [
  {
    allowedOrigins: "http://one.example,http://two.example",
    allowedMethods: "GET,PUT",
    allowedHeaders: "x-ms-meta-*,content-type",
    exposedHeaders: "x-ms-meta-*",
    maxAgeInSeconds: 200,
  },
  { allowedOrigins: "*", allowedMethods: "GET", allowedHeaders: "", exposedHeaders: "", maxAgeInSeconds: 0 },
];

/** Puts the account's CORS rules and default version back in the end. */
async function keptProperties(service, run) {
  const before = await service.getProperties();
  try {
    await run(before);
  } finally {
    await service.setProperties({ cors: before.cors ?? [], defaultServiceVersion: before.defaultServiceVersion });
  }
}

const rules = async (service) =>
  ((await service.getProperties()).cors ?? []).map((rule) => ({
    ...rule,
    allowedHeaders: rule.allowedHeaders ?? "",
    exposedHeaders: rule.exposedHeaders ?? "",
  }));

group("account-properties", (service) =>
  keptProperties(service, async (before) => {
    await service.setProperties({ cors: CORS });
    same(await rules(service), CORS, "CORS rules");
    let after = await service.getProperties();
    for (const part of ["hourMetrics", "minuteMetrics", "deleteRetentionPolicy"]) {
      same(after[part]?.enabled, before[part]?.enabled, `${part} left alone`);
    }
    await service.setProperties({ defaultServiceVersion: "2020-10-02" });
    after = await service.getProperties();
    same(after.defaultServiceVersion, "2020-10-02", "default version");
    same(await rules(service), CORS, "CORS rules left alone");
    await service.setProperties({ cors: [] });
    same(await rules(service), [], "CORS rules removed");
  }),
);

async function preflight(url, origin, method) {
  const headers = {
    Origin: origin,
    "Access-Control-Request-Method": method,
    "Access-Control-Request-Headers": "x-ms-meta-a",
  };
  return fetch(url, { method: "OPTIONS", headers });
}

group("account-cors", (service) =>
  keptProperties(service, () =>
    container(service, {}, async (box) => {
      await service.setProperties({ cors: CORS.slice(0, 1) });
      const { url } = await newPageBlob(box);
      const allowed = await preflight(url, "http://one.example", "PUT");
      same(allowed.status, 200, "status of an allowed preflight");
      same(allowed.headers.get("Access-Control-Allow-Origin"), "http://one.example", "allowed origin");
      check(allowed.headers.get("Access-Control-Allow-Methods").includes("PUT"), "PUT is not allowed");
      same(allowed.headers.get("Access-Control-Max-Age"), "200", "age");
      same((await preflight(url, "http://three.example", "PUT")).status, 403, "status with an unknown origin");
      same((await preflight(url, "http://one.example", "DELETE")).status, 403, "status with an unknown method");
    }),
  ),
);

// ---- page blobs: content

const SETTINGS = {
  blobContentType: "application/x-disk",
  blobContentEncoding: "identity",
  blobContentLanguage: "en",
  blobContentDisposition: "attachment",
  blobCacheControl: "no-cache",
  blobContentMD5: md5("anything"),
};

function sameHeaders(found, wanted) {
  for (const [key, value] of Object.entries(wanted)) {
    const name = key.slice("blob".length);
    const part = found[name[0].toLowerCase() + name.slice(1)];
    if (value instanceof Uint8Array) sameBytes(Buffer.from(part ?? []), Buffer.from(value), name);
    else same(part, value, name);
  }
}

group("page-create", (service) =>
  container(service, {}, async (box) => {
    const blob = box.getPageBlobClient("disk");
    const made = await blob.create(8 * PAGE, {
      blobHTTPHeaders: SETTINGS,
      metadata: { System: "one", n_1: "x y" },
      blobSequenceNumber: 5,
    });
    let found = await blob.getProperties();
    same(found.blobType, "PageBlob", "type");
    same(found.contentLength, 8 * PAGE, "size");
    same(found.blobSequenceNumber, 5, "sequence number");
    same(lowered(found.metadata), { system: "one", n_1: "x y" }, "metadata");
    same([found.etag, found.lastModified], [made.etag, made.lastModified], "ETag and Last-Modified");
    check(found.createdOn, "the time of creation is missing");
    same(found.leaseState, "available", "lease");
    sameHeaders(found, SETTINGS);
    sameBytes(await read(blob), Buffer.alloc(8 * PAGE), "content");
    same(await ranges(blob), [], "page ranges");
    check(await blob.exists(), "the blob does not exist");
    await refused("BlobAlreadyExists", () => blob.create(PAGE, { conditions: { ifNoneMatch: "*" } }), 409);
    same((await blob.createIfNotExists(PAGE)).succeeded, false, "creating a blob that exists");
    await write(blob, page(1), 0);
    await blob.create(4 * PAGE);
    found = await blob.getProperties();
    same([found.contentLength, found.blobSequenceNumber], [4 * PAGE, 0], "size and sequence number made anew");
    same(found.metadata, {}, "metadata made anew");
    same(found.contentType, "application/octet-stream", "type made anew");
    sameBytes(await read(blob), Buffer.alloc(4 * PAGE), "content made anew");
    await blob.create(0);
    same((await blob.getProperties()).contentLength, 0, "size of an empty blob");
    sameBytes(await read(blob), Buffer.alloc(0), "content of an empty blob");
    await blob.delete();
    check(!(await blob.exists()), "the deleted blob exists");
    await refused("BlobNotFound", () => blob.getProperties(), 404);
  }),
);

group("page-write", (service) =>
  container(service, {}, async (box) => {
    const blob = await newPageBlob(box);
    const content = Buffer.alloc(8 * PAGE);
    const etags = new Set([(await blob.getProperties()).etag]);
    for (const [first, count, seed] of [
      [0, 1, "a"],
      [2, 2, "b"],
      [7, 1, "c"],
      [3, 2, "d"],
    ]) {
      const data = filled(count * PAGE, seed);
      const written = await write(blob, data, first * PAGE);
      data.copy(content, first * PAGE);
      same((await blob.getProperties()).etag, written.etag, "ETag after a write");
      check(written.lastModified, "Last-Modified is missing");
      same(written.blobSequenceNumber, 0, "sequence number after a write");
      etags.add(written.etag);
    }
    same(etags.size, 5, "different ETags");
    sameBytes(await read(blob), content, "content");
    for (const [offset, count] of [
      [0, 1],
      [500, 600],
      [511, 2],
      [PAGE, PAGE],
      [1, 8 * PAGE - 1],
      [7 * PAGE, PAGE],
    ]) {
      const answer = await blob.download(offset, count);
      same(answer.contentRange, `bytes ${offset}-${offset + count - 1}/${8 * PAGE}`, "Content-Range");
      const found = Buffer.concat(await all(answer.readableStreamBody));
      sameBytes(found, content.subarray(offset, offset + count), `${count} bytes at ${offset}`);
    }
    sameBytes(await read(blob, 8 * PAGE - 100, 1000), content.subarray(-100), "a range over the end");
    sameBytes(await read(blob, 5 * PAGE), content.subarray(5 * PAGE), "a range with no end");
    await refused("InvalidRange", () => read(blob, 8 * PAGE, 10), 416);
    const cleared = await blob.clearPages(3 * PAGE, PAGE);
    content.fill(0, 3 * PAGE, 4 * PAGE);
    check(!etags.has(cleared.etag), "the ETag stays when a page is cleared");
    sameBytes(await read(blob), content, "content after a page was cleared");
    await blob.clearPages(0, 8 * PAGE);
    sameBytes(await read(blob), Buffer.alloc(8 * PAGE), "content after all pages were cleared");
    same(await ranges(blob), [], "page ranges after all pages were cleared");
  }),
);

group("page-large", (service) =>
  container(service, {}, async (box) => {
    const content = Buffer.concat([filled(4 * MIB, 1), Buffer.alloc(4 * MIB), filled(MIB + 3 * PAGE, 2)]);
    const blob = await newPageBlob(box, "disk", content.length);
    const pieces = [0, 8 * MIB].map((offset) => [offset, content.subarray(offset, offset + 4 * MIB)]);
    await Promise.all(pieces.map(([offset, data]) => write(blob, data, offset)));
    same(
      await ranges(blob),
      [
        [0, 4 * MIB - 1],
        [8 * MIB, content.length - 1],
      ],
      "page ranges",
    );
    for (const [blockSize, concurrency] of [
      [512 * KIB, 4],
      [4 * MIB, 1],
    ]) {
      const found = await blob.downloadToBuffer(0, undefined, { blockSize, concurrency });
      sameBytes(found, content, `content in pieces of ${blockSize}`);
    }
    sameBytes(await read(blob), content, "content at once");
  }),
);

group("page-resize", (service) =>
  container(service, {}, async (box) => {
    const blob = await newPageBlob(box, "disk", 4 * PAGE);
    const content = filled(4 * PAGE, 1);
    const { etag } = await write(blob, content, 0);
    const resized = await blob.resize(8 * PAGE);
    check(resized.etag !== etag, "the ETag stays when the size changes");
    same((await blob.getProperties()).contentLength, 8 * PAGE, "size grown");
    sameBytes(await read(blob), Buffer.concat([content, Buffer.alloc(4 * PAGE)]), "content grown");
    same(await ranges(blob), [pages(0, 4)], "page ranges grown");
    await blob.resize(2 * PAGE);
    sameBytes(await read(blob), content.subarray(0, 2 * PAGE), "content cut");
    same(await ranges(blob), [pages(0, 2)], "page ranges cut");
    await blob.resize(4 * PAGE);
    sameBytes(
      await read(blob),
      Buffer.concat([content.subarray(0, 2 * PAGE), Buffer.alloc(2 * PAGE)]),
      "content cut and grown",
    );
    same(await ranges(blob), [pages(0, 2)], "page ranges cut and grown");
    await blob.resize(0);
    same((await blob.getProperties()).contentLength, 0, "size cut to nothing");
  }),
);

group("page-ranges", (service) =>
  container(service, {}, async (box) => {
    const blob = await newPageBlob(box, "disk", 16 * PAGE);
    same(await ranges(blob), [], "ranges of a new blob");
    await write(blob, page(0), 0);
    await write(blob, page(2), 2 * PAGE);
    same(await ranges(blob), [pages(0), pages(2)], "pages 0 and 2");
    // The older call gives a count that is one short of the length.
    const older = await blob.getPageRanges(0, 16 * PAGE);
    same(
      older.pageRange.map((r) => [r.offset, r.offset + r.count]),
      [pages(0), pages(2)],
      "the older call",
    );
    same(older.clearRange, [], "cleared ranges without a snapshot to compare");
    same(older.blobContentLength, 16 * PAGE, "x-ms-blob-content-length");
    await write(blob, page(1), PAGE);
    same(await ranges(blob), [pages(0, 3)], "pages 0 to 2");
    await write(blob, filled(6 * PAGE, 1), 8 * PAGE);
    await blob.clearPages(10 * PAGE, PAGE);
    await blob.clearPages(12 * PAGE, PAGE);
    same(await ranges(blob), [pages(0, 3), pages(8, 2), pages(11), pages(13)], "pages cleared between");
    same(await ranges(blob, 2 * PAGE, 7 * PAGE), [pages(2), pages(8)], "ranges of a part");
    same(await ranges(blob, 3 * PAGE, 5 * PAGE), [], "ranges of an empty part");
    await write(blob, Buffer.alloc(PAGE), 5 * PAGE);
    same(await ranges(blob, 4 * PAGE, 3 * PAGE), [pages(5)], "a page of zeros written");
  }),
);

group("page-ranges-paged", (service) =>
  container(service, {}, async (box) => {
    const blob = await newPageBlob(box, "disk", 20 * PAGE);
    const wanted = [];
    for (let number = 0; number < 20; number += 2) {
      await write(blob, page(number), number * PAGE);
      wanted.push(pages(number));
    }
    const inclusive = (answer) => answer.pageRange.map((r) => [r.start, r.end]);
    const listed = (await all(blob.listPageRanges().byPage({ maxPageSize: 3 }))).map(inclusive);
    same(listed.flat(), wanted, "ranges of all answers");
    const sizes = listed.map((part) => part.length);
    check(listed.length >= 4 && Math.max(...sizes) <= 3, `answers of ${sizes} ranges`);
    const first = (await blob.listPageRanges().byPage({ maxPageSize: 4 }).next()).value;
    const more = { maxPageSize: 4, continuationToken: first.continuationToken };
    const rest = (await all(blob.listPageRanges().byPage(more))).map(inclusive);
    same([inclusive(first), ...rest].flat(), wanted, "ranges before and after the marker");
  }),
);

group("page-diff", (service) =>
  container(service, {}, async (box) => {
    const blob = await newPageBlob(box);
    await write(blob, filled(3 * PAGE, 1), 0);
    const first = (await blob.createSnapshot()).snapshot;
    await write(blob, page(1), PAGE);
    await write(blob, page(5), 5 * PAGE);
    await blob.clearPages(0, PAGE);
    same(await changes(blob, first), [pages(1), pages(5)], "written since the snapshot");
    same(await changes(blob, first, true), [pages(0)], "cleared since the snapshot");
    const second = (await blob.createSnapshot()).snapshot;
    same(await changes(blob, second), [], "no change since the second snapshot");
    await write(blob, page(6), 6 * PAGE);
    await blob.resize(12 * PAGE);
    await write(blob, page(10), 10 * PAGE);
    same(await changes(blob, second), [pages(6), pages(10)], "written since the second snapshot");
    same(await changes(blob, first), [pages(1), pages(5, 2), pages(10)], "written since the first snapshot");
    same(await changes(blob, first, false, 5 * PAGE, PAGE), [pages(5)], "written in a part of it");
    const between = blob.withSnapshot(second);
    same(await changes(between, first), [pages(1), pages(5)], "written between the snapshots");
    same(await changes(between, first, true), [pages(0)], "cleared between the snapshots");
    const older = await blob.getPageRangesDiff(0, 12 * PAGE, first);
    same(
      joined(older.pageRange.map((r) => [r.offset, r.offset + r.count])),
      [pages(1), pages(5, 2), pages(10)],
      "written, by the older call",
    );
    const one = await all(blob.listPageRangesDiff(0, 12 * PAGE, first).byPage({ maxPageSize: 1 }));
    const counts = one.map((answer) => (answer.pageRange?.length ?? 0) + (answer.clearRange?.length ?? 0));
    same(Math.max(...counts), 1, "ranges in an answer");
    await refused("PreviousSnapshotNotFound", () => changes(blob, NO_SUCH_SNAPSHOT), 409);
    await refused("PreviousSnapshotCannotBeNewer", () => changes(blob.withSnapshot(first), second), 400);
    await blob.create(8 * PAGE);
    await refused("BlobOverwritten", () => changes(blob, second), 409);
    await blob.delete({ deleteSnapshots: "include" });
  }),
);

group("page-from-url", (service) =>
  container(service, {}, async (box) => {
    const source = await newPageBlob(box, "source");
    const content = filled(8 * PAGE, 1);
    await write(source, content, 0);
    const blob = await newPageBlob(box, "target");
    const url = sourceUrl(source);
    const done = await blob.uploadPagesFromURL(url, PAGE, 2 * PAGE, 3 * PAGE);
    same(done.etag, (await blob.getProperties()).etag, "ETag");
    sameBytes(await read(blob, 2 * PAGE, 3 * PAGE), content.subarray(PAGE, 4 * PAGE), "pages taken over");
    same(await ranges(blob), [pages(2, 3)], "page ranges");
    const { snapshot } = await source.createSnapshot();
    await source.clearPages(0, 8 * PAGE);
    await blob.uploadPagesFromURL(sourceUrl(source, snapshot), 7 * PAGE, 0, PAGE);
    sameBytes(await read(blob, 0, PAGE), content.subarray(7 * PAGE), "a page of a snapshot");
    const take = (options) => blob.uploadPagesFromURL(url, 0, 0, PAGE, options);
    await take({ sourceContentMD5: md5(Buffer.alloc(PAGE)) });
    await refused("Md5Mismatch", () => take({ sourceContentMD5: md5("") }), 400);
    await take({ sourceContentCrc64: crc64(Buffer.alloc(PAGE)) });
    await refused("Crc64Mismatch", () => take({ sourceContentCrc64: crc64(page(1)) }), 400);
    await refused("SequenceNumberConditionNotMet", () => take({ conditions: { ifSequenceNumberLessThan: 0 } }), 412);
    const unmet = ["CannotVerifyCopySource", "SourceConditionNotMet", "ConditionNotMet"];
    await refused(unmet, () => take({ sourceConditions: { ifMatch: '"0x1"' } }), 412);
    const missing = sourceUrl(box.getPageBlobClient("missing"));
    await refused(["CannotVerifyCopySource", "BlobNotFound"], () => blob.uploadPagesFromURL(missing, 0, 0, PAGE), 404);
    await source.delete({ deleteSnapshots: "include" });
  }),
);

group("page-limits", (service) =>
  container(service, {}, async (box) => {
    const blob = await newPageBlob(box, "disk", 16 * MIB);
    const misaligned = ["InvalidHeaderValue", "InvalidPageRange"];
    await refused(misaligned, () => blob.uploadPages(page(1), 1, PAGE));
    await refused(misaligned, () => blob.uploadPages(page(1).subarray(0, 100), 0, 100));
    await refused(misaligned, () => blob.clearPages(256, PAGE));
    await refused("InvalidPageRange", () => write(blob, page(1), 16 * MIB), 416);
    await refused("InvalidPageRange", () => write(blob, filled(2 * PAGE, 1), 16 * MIB - PAGE), 416);
    await refused("InvalidPageRange", () => blob.clearPages(16 * MIB, PAGE), 416);
    same(await ranges(blob), [], "page ranges after writes that were refused");
    const most = filled(4 * MIB, 1);
    await write(blob, most, 4 * MIB);
    sameBytes(await read(blob, 4 * MIB, 4 * MIB), most, "the largest write");
    await refused("RequestBodyTooLarge", () => write(blob, filled(4 * MIB + PAGE, 2), 0), 413);
    await blob.clearPages(0, 16 * MIB);
    same(await ranges(blob), [], "page ranges after the largest clear");
    await refused("InvalidHeaderValue", () => newPageBlob(box, "odd", 1000), 400);
    await refused("InvalidHeaderValue", () => blob.resize(1000), 400);
    await box.uploadBlockBlob("block", "text", 4);
    const block = box.getPageBlobClient("block");
    await refused("InvalidBlobType", () => write(block, page(1), 0), 409);
    await refused("InvalidBlobType", () => ranges(block), 409);
    await refused("BlobNotFound", () => write(box.getPageBlobClient("none"), page(1), 0), 404);
    await refused(
      ["OutOfRangeInput", "InvalidResourceName", "InvalidUri"],
      () => newPageBlob(box, "n".repeat(1025)),
      400,
    );
    const end = 4 * 1024 * GIB;
    const large = await newPageBlob(box, "large", end);
    await write(large, page(1), end - PAGE);
    same(await ranges(large), [[end - PAGE, end - 1]], "the last page of a large blob");
    sameBytes(await read(large, end - PAGE, PAGE), page(1), "the last page of a large blob");
    await refused(["InvalidHeaderValue", "OutOfRangeInput"], () => blob.resize(2 * end + PAGE), 400);
  }),
);

// ---- page blobs: properties and conditions

group("page-sequence", (service) =>
  container(service, {}, async (box) => {
    const blob = await newPageBlob(box, "disk", 8 * PAGE, { blobSequenceNumber: 10 });
    const number = async () => (await blob.getProperties()).blobSequenceNumber;
    for (const [option, good, bad] of [
      ["ifSequenceNumberLessThanOrEqualTo", 10, 9],
      ["ifSequenceNumberLessThan", 11, 10],
      ["ifSequenceNumberEqualTo", 10, 11],
    ]) {
      await write(blob, page(1), 0, { conditions: { [option]: good } });
      const conditions = { [option]: bad };
      await refused("SequenceNumberConditionNotMet", () => write(blob, page(2), 0, { conditions }), 412);
      await refused("SequenceNumberConditionNotMet", () => blob.clearPages(0, PAGE, { conditions }), 412);
    }
    sameBytes(await read(blob, 0, PAGE), page(1), "content after writes that were refused");
    await blob.clearPages(0, PAGE, { conditions: { ifSequenceNumberEqualTo: 10 } });
    await blob.updateSequenceNumber("max", 5);
    same(await number(), 10, "the greater of 10 and 5");
    await blob.updateSequenceNumber("max", 15);
    same(await number(), 15, "the greater of 10 and 15");
    await blob.updateSequenceNumber("update", 7);
    same(await number(), 7, "set to 7");
    const changed = await blob.updateSequenceNumber("increment");
    same([changed.blobSequenceNumber, await number()], [8, 8], "one more than 7");
    await blob.updateSequenceNumber("update", Number.MAX_SAFE_INTEGER);
    same(await number(), Number.MAX_SAFE_INTEGER, "a great number");
    same((await write(blob, page(3), 0)).blobSequenceNumber, Number.MAX_SAFE_INTEGER, "sequence number of a write");
  }),
);

group("page-headers", (service) =>
  container(service, {}, async (box) => {
    const blob = await newPageBlob(box);
    await write(blob, page(1), 0);
    const { etag } = await blob.getProperties();
    const changed = await blob.setHTTPHeaders(SETTINGS);
    check(changed.etag !== etag, "the ETag stays when the headers change");
    sameHeaders(await blob.getProperties(), SETTINGS);
    const ranged = await blob.download(0, PAGE);
    await all(ranged.readableStreamBody);
    same([ranged.contentType, ranged.cacheControl], ["application/x-disk", "no-cache"], "headers of a read");
    sameBytes(Buffer.from(ranged.blobContentMD5 ?? []), md5("anything"), "MD5 of the whole in the answer to a part");
    const [listed] = await all(box.listBlobsFlat());
    sameHeaders(listed.properties, SETTINGS);
    await blob.setHTTPHeaders({ blobContentType: "a/b" });
    const found = await blob.getProperties();
    same([found.contentType, found.cacheControl, found.contentMD5], ["a/b", undefined, undefined], "headers replaced");
    same(found.contentLength, 8 * PAGE, "size");
    sameBytes(await read(blob, 0, PAGE), page(1), "content");
  }),
);

group("page-metadata", (service) =>
  container(service, {}, async (box) => {
    const blob = await newPageBlob(box, "disk", 8 * PAGE, { metadata: { first: "1" } });
    const { etag } = await blob.getProperties();
    const metadata = { a1: "digit", a_b: "underscore", ab: "letters", long: "v".repeat(2000), blank: "x  y" };
    const changed = await blob.setMetadata(metadata);
    check(changed.etag !== etag, "the ETag stays when the metadata changes");
    same((await blob.getProperties()).metadata, metadata, "metadata replaced");
    const answer = await blob.download(0, 1);
    await all(answer.readableStreamBody);
    same(answer.metadata, metadata, "metadata of a read");
    same((await all(box.listBlobsFlat({ includeMetadata: true })))[0].metadata, metadata, "metadata in a list");
    check(!(await all(box.listBlobsFlat()))[0].metadata, "metadata in a list without asking for it");
    await blob.setMetadata();
    same((await blob.getProperties()).metadata, {}, "metadata removed");
  }),
);

group("page-tags", (service) =>
  container(service, {}, async (box) => {
    const blob = await newPageBlob(box, "disk", 8 * PAGE, { tags: { colour: "dark red", n: "1" } });
    const tags = async () => ({ ...(await blob.getTags()).tags });
    same(await tags(), { colour: "dark red", n: "1" }, "tags at creation");
    const { etag, tagCount } = await blob.getProperties();
    same(tagCount, 2, "number of tags");
    await blob.setTags({ colour: "blue", "a:b/c": "d+e=f" });
    same(await tags(), { colour: "blue", "a:b/c": "d+e=f" }, "tags replaced");
    same((await blob.getProperties()).etag, etag, "ETag after the tags changed");
    const [listed] = await all(box.listBlobsFlat({ includeTags: true }));
    same({ ...listed.tags }, { colour: "blue", "a:b/c": "d+e=f" }, "tags in a list");
    const good = { conditions: { tagConditions: "\"colour\" = 'blue'" } };
    const bad = { conditions: { tagConditions: "\"colour\" = 'red'" } };
    await write(blob, page(1), 0, good);
    await blob.getProperties(good);
    sameBytes(await read(blob, 0, PAGE, good), page(1), "read with the right tag");
    await refused("ConditionNotMet", () => write(blob, page(2), 0, bad), 412);
    await refused("ConditionNotMet", () => blob.clearPages(0, PAGE, bad), 412);
    await refused("ConditionNotMet", () => blob.setMetadata({ a: "b" }, bad), 412);
    await refused("ConditionNotMet", () => blob.getTags(bad), 412);
    await refused("ConditionNotMet", () => blob.delete(bad), 412);
    await refused("ConditionNotMet", () => read(blob, 0, PAGE, bad), 412);
    await blob.setTags({});
    same(await tags(), {}, "tags removed");
    check(!(await blob.getProperties()).tagCount, "tags are still counted");
  }),
);

group("page-conditions", (service) =>
  container(service, {}, async (box) => {
    const blob = await newPageBlob(box);
    const old = (await blob.getProperties()).etag;
    let now = (await write(blob, page(1), 0)).etag;
    const moment = (await blob.getProperties()).lastModified;
    const before = new Date(moment.getTime() - 3600 * 1000);
    const when = (conditions) => ({ conditions });
    const unmet = (call) => refused("ConditionNotMet", call, 412);
    const stale = when({ ifMatch: old });
    await unmet(() => write(blob, page(2), 0, stale));
    await unmet(() => write(blob, page(2), 0, when({ ifNoneMatch: now })));
    await unmet(() => write(blob, page(2), 0, when({ ifModifiedSince: moment })));
    await unmet(() => write(blob, page(2), 0, when({ ifUnmodifiedSince: before })));
    await unmet(() => blob.clearPages(0, PAGE, stale));
    await unmet(() => blob.resize(PAGE, stale));
    await unmet(() => blob.setMetadata({ a: "b" }, stale));
    await unmet(() => blob.setHTTPHeaders({}, stale));
    await unmet(() => blob.updateSequenceNumber("update", 1, stale));
    await unmet(() => blob.createSnapshot(stale));
    await unmet(() => blob.getBlobLeaseClient().acquireLease(-1, stale));
    await unmet(() => blob.delete(stale));
    await unmet(() => ranges(blob, 0, PAGE, stale));
    await unmet(() => read(blob, 0, PAGE, stale));
    await unmet(() => read(blob, 0, PAGE, when({ ifUnmodifiedSince: before })));
    await unmet(() => blob.getProperties(stale));
    same((await blob.getProperties()).etag, now, "ETag after calls that were refused");
    await refused("ConditionNotMet", () => read(blob, 0, PAGE, when({ ifNoneMatch: now })), 304);
    await refused("ConditionNotMet", () => read(blob, 0, PAGE, when({ ifModifiedSince: moment })), 304);
    await refused("ConditionNotMet", () => blob.getProperties(when({ ifNoneMatch: now })), 304);
    sameBytes(await read(blob, 0, PAGE, when({ ifMatch: now })), page(1), "read with the right ETag");
    sameBytes(await read(blob, 0, PAGE, when({ ifNoneMatch: old })), page(1), "read unless an older ETag");
    sameBytes(await read(blob, 0, PAGE, when({ ifModifiedSince: before })), page(1), "read if newer");
    await blob.getProperties(when({ ifUnmodifiedSince: moment }));
    now = (await write(blob, page(3), 0, when({ ifMatch: now }))).etag;
    now = (await write(blob, page(3), 0, when({ ifMatch: "*" }))).etag;
    now = (await blob.setMetadata({ a: "b" }, when({ ifMatch: now }))).etag;
    await blob.delete(when({ ifMatch: now }));
  }),
);

group("page-lease", (service) =>
  container(service, {}, async (box) => {
    const blob = await newPageBlob(box);
    const held = (leaseId) => ({ conditions: { leaseId } });
    const wrong = held(NO_SUCH_LEASE);
    await refused("LeaseNotPresentWithBlobOperation", () => write(blob, page(1), 0, wrong), 412);
    let lease = blob.getBlobLeaseClient(OWN_LEASE);
    same((await lease.acquireLease(15)).leaseId, OWN_LEASE, "the proposed lease id");
    const found = await blob.getProperties();
    same([found.leaseStatus, found.leaseState, found.leaseDuration], ["locked", "leased", "fixed"], "lease held");
    same((await all(box.listBlobsFlat()))[0].properties.leaseState, "leased", "lease in a list");
    for (const call of [
      (options) => write(blob, page(1), 0, options),
      (options) => blob.clearPages(0, PAGE, options),
      (options) => blob.resize(PAGE, options),
      (options) => blob.setMetadata({ a: "b" }, options),
      (options) => blob.setHTTPHeaders({}, options),
      (options) => blob.updateSequenceNumber("update", 1, options),
      (options) => blob.create(PAGE, options),
      (options) => blob.delete(options),
    ]) {
      await refused("LeaseIdMissing", () => call(), 412);
      await refused("LeaseIdMismatchWithBlobOperation", () => call(wrong), 412);
    }
    await refused("LeaseIdMismatchWithBlobOperation", () => read(blob, 0, PAGE, wrong), 412);
    sameBytes(await read(blob, 0, PAGE), Buffer.alloc(PAGE), "read without the lease");
    await write(blob, page(1), 0, held(OWN_LEASE));
    sameBytes(await read(blob, 0, PAGE, held(OWN_LEASE)), page(1), "read with the lease");
    await refused("LeaseAlreadyPresent", () => blob.getBlobLeaseClient(NO_SUCH_LEASE).acquireLease(-1), 409);
    await lease.renewLease();
    same((await lease.changeLease(CHANGED_LEASE)).leaseId, CHANGED_LEASE, "the changed lease id");
    const former = blob.getBlobLeaseClient(OWN_LEASE);
    await refused("LeaseIdMismatchWithLeaseOperation", () => former.renewLease(), 409);
    await refused("LeaseIdMismatchWithLeaseOperation", () => former.releaseLease(), 409);
    await write(blob, page(2), 0, held(CHANGED_LEASE));
    await lease.releaseLease();
    same((await blob.getProperties()).leaseState, "available", "lease released");
    const gone = ["LeaseNotPresentWithBlobOperation", "LeaseLost"];
    await refused(gone, () => write(blob, page(1), 0, held(CHANGED_LEASE)), 412);
    await write(blob, page(3), 0);
    lease = blob.getBlobLeaseClient();
    const { leaseId } = await lease.acquireLease(-1);
    same((await blob.getProperties()).leaseDuration, "infinite", "duration");
    await blob.createSnapshot(held(leaseId));
    const remaining = (await lease.breakLease(60)).leaseTime;
    check(remaining > 0 && remaining <= 60, `seconds to the end of the lease: ${remaining}`);
    same((await blob.getProperties()).leaseState, "breaking", "lease being broken");
    await refused("LeaseIsBreakingAndCannotBeChanged", () => lease.changeLease(CHANGED_LEASE), 409);
    await write(blob, page(4), 0, held(leaseId));
    same((await lease.breakLease(0)).leaseTime, 0, "seconds to the end of a lease broken at once");
    same((await blob.getProperties()).leaseState, "broken", "lease broken");
    await write(blob, page(5), 0);
    const free = (await newPageBlob(box, "b")).getBlobLeaseClient();
    await refused("LeaseNotPresentWithLeaseOperation", () => free.breakLease(0), 409);
    await refused("InvalidHeaderValue", () => free.acquireLease(5), 400);
    const last = (await blob.getBlobLeaseClient().acquireLease(-1)).leaseId;
    await blob.delete({ deleteSnapshots: "include", ...held(last) });
  }),
);

// ---- page blobs: snapshots, copies, tiers

const snapshots = async (box, prefix) =>
  (await all(box.listBlobsFlat({ includeSnapshots: true, prefix }))).map((item) => item.snapshot || undefined);

group("page-snapshot", (service) =>
  container(service, {}, async (box) => {
    const blob = await newPageBlob(box, "disk", 8 * PAGE, { metadata: { of: "base" } });
    const { etag } = await write(blob, page(1), 0);
    const made = await blob.createSnapshot();
    same(made.etag, etag, "ETag of a snapshot that changes nothing");
    const first = made.snapshot;
    await write(blob, page(2), 0);
    const second = (await blob.createSnapshot({ metadata: { of: "snapshot" } })).snapshot;
    check(first < second, "the second snapshot is not after the first");
    await write(blob, page(3), 0);
    await blob.resize(2 * PAGE);
    const one = blob.withSnapshot(first);
    const two = blob.withSnapshot(second);
    sameBytes(await read(one), Buffer.concat([page(1), Buffer.alloc(7 * PAGE)]), "content of the first snapshot");
    sameBytes(await read(two, 0, PAGE), page(2), "content of the second snapshot");
    sameBytes(await read(blob), Buffer.concat([page(3), Buffer.alloc(PAGE)]), "content of the blob");
    same(await ranges(one), [pages(0)], "page ranges of a snapshot");
    same((await one.getProperties()).contentLength, 8 * PAGE, "size of a snapshot");
    same((await one.getProperties()).metadata, { of: "base" }, "metadata of the first snapshot");
    same((await two.getProperties()).metadata, { of: "snapshot" }, "metadata of the second snapshot");
    same((await blob.getProperties()).metadata, { of: "base" }, "metadata of the blob");
    await refused("BlobNotFound", () => blob.withSnapshot(NO_SUCH_SNAPSHOT).getProperties(), 404);
    same((await all(box.listBlobsFlat())).length, 1, "entries of a list without snapshots");
    same(await snapshots(box), [first, second, undefined], "a list with snapshots");
    await refused("SnapshotsPresent", () => blob.delete(), 409);
    await one.delete();
    same(await snapshots(box), [second, undefined], "a list after one was deleted");
    await refused("BlobNotFound", () => one.getProperties(), 404);
    await blob.delete({ deleteSnapshots: "only" });
    same(await snapshots(box), [undefined], "a list after all were deleted");
    await blob.createSnapshot();
    await blob.delete({ deleteSnapshots: "include" });
    same(await snapshots(box), [], "a list after the blob was deleted");
  }),
);

group("page-copy", (service) =>
  container(service, {}, async (box) => {
    const source = await newPageBlob(box, "source", 8 * PAGE, {
      metadata: { a: "b" },
      blobHTTPHeaders: { blobContentType: "x/y" },
      blobSequenceNumber: 4,
    });
    await write(source, page(1), 0);
    await write(source, page(5), 5 * PAGE);
    const { snapshot } = await source.createSnapshot();
    const blob = box.getPageBlobClient("copy");
    const done = await copy(blob, source.url);
    same(done.copyStatus, "success", "copy");
    const found = await blob.getProperties();
    same([found.copyStatus, found.copyId], ["success", done.copyId], "copy in the properties");
    same(found.copyProgress, `${8 * PAGE}/${8 * PAGE}`, "progress");
    check(found.copyCompletedOn, "the time of completion is missing");
    same(found.copySource.split("?")[0], source.url, "source");
    same([found.blobType, found.contentLength], ["PageBlob", 8 * PAGE], "type and size");
    same([found.metadata, found.contentType], [{ a: "b" }, "x/y"], "metadata and content type");
    sameBytes(await read(blob), await read(source), "content");
    same(await ranges(blob), [pages(0), pages(5)], "page ranges");
    const [listed] = await all(box.listBlobsFlat({ prefix: "copy", includeCopy: true }));
    same(listed.properties.copyStatus, "success", "copy in a list");
    await refused("NoPendingCopyOperation", () => blob.abortCopyFromURL(done.copyId), 409);
    await source.clearPages(0, 8 * PAGE);
    await copy(blob, sourceUrl(source, snapshot), { metadata: { c: "d" } });
    same((await blob.getProperties()).metadata, { c: "d" }, "metadata given with the copy");
    sameBytes(await read(blob, 0, PAGE), page(1), "content of a snapshot copied");
    await copy(source, source.withSnapshot(snapshot).url);
    sameBytes(await read(source, 5 * PAGE, PAGE), page(5), "content of a snapshot brought back");
    const stale = { ifMatch: '"0x1"' };
    await refused("ConditionNotMet", () => copy(blob, source.url, { conditions: stale }), 412);
    const unmet = ["SourceConditionNotMet", "ConditionNotMet"];
    await refused(unmet, () => copy(blob, source.url, { sourceConditions: stale }), 412);
    const missing = box.getPageBlobClient("missing").url;
    await refused(["BlobNotFound", "CannotVerifyCopySource"], () => copy(blob, missing), 404);
    const { leaseId } = await blob.getBlobLeaseClient().acquireLease(-1);
    await refused("LeaseIdMissing", () => copy(blob, source.url), 412);
    await copy(blob, source.url, { conditions: { leaseId } });
    await blob.delete({ conditions: { leaseId } });
    await source.delete({ deleteSnapshots: "include" });
  }),
);

group("page-incremental-copy", (service) =>
  container(service, {}, async (box) => {
    const source = await newPageBlob(box, "source");
    await write(source, page(1), 0);
    const first = (await source.createSnapshot()).snapshot;
    await write(source, page(2), PAGE);
    const second = (await source.createSnapshot()).snapshot;
    const blob = box.getPageBlobClient("backup");
    await refused("IncrementalCopySourceMustBeSnapshot", () => blob.startCopyIncremental(sourceUrl(source)), 409);
    const kept = [];
    for (const snapshot of [first, second]) {
      await blob.startCopyIncremental(sourceUrl(source, snapshot));
      const found = await copied(blob);
      same(found.copyStatus, "success", "copy");
      check(found.isIncrementalCopy, "x-ms-incremental-copy is not true");
      check(found.destinationSnapshot, "x-ms-copy-destination-snapshot is missing");
      kept.push(found.destinationSnapshot);
    }
    same((await snapshots(box, "backup")).filter(Boolean), kept, "snapshots of the copy");
    for (const [index, content] of [page(1), Buffer.concat([page(1), page(2)])].entries()) {
      const whole = Buffer.concat([content, Buffer.alloc(8 * PAGE - content.length)]);
      sameBytes(await read(blob.withSnapshot(kept[index])), whole, "content of a snapshot of the copy");
    }
    await refused("OperationNotAllowedOnIncrementalCopyBlob", () => write(blob, page(3), 0), 409);
    await refused(EARLIER_SNAPSHOT, () => blob.startCopyIncremental(sourceUrl(source, first)), 409);
    const other = await newPageBlob(box, "other");
    const moment = (await other.createSnapshot()).snapshot;
    await refused("IncrementalCopyBlobMismatch", () => blob.startCopyIncremental(sourceUrl(other, moment)), 409);
    await other.delete({ deleteSnapshots: "include" });
    await blob.delete({ deleteSnapshots: "include" });
    await source.delete({ deleteSnapshots: "include" });
  }),
);

group("page-tier", (service) =>
  container(service, {}, async (box) => {
    const blob = await newPageBlob(box, "disk", GIB, { tier: "P10" });
    const found = await blob.getProperties();
    same(found.accessTier, "P10", "tier at creation");
    check(!found.accessTierInferred, "a tier that was given is inferred");
    same((await all(box.listBlobsFlat()))[0].properties.accessTier, "P10", "tier in a list");
    await blob.setAccessTier("P20");
    same((await blob.getProperties()).accessTier, "P20", "tier raised");
    await refused("CannotChangeToLowerTier", () => blob.setAccessTier("P6"), 409);
    const large = await newPageBlob(box, "large", 256 * GIB);
    await refused("BlobTierInadequateForContentLength", () => large.setAccessTier("P10"), 409);
    const other = box.getPageBlobClient("copy");
    await copy(other, blob.url, { tier: "P30" });
    same((await other.getProperties()).accessTier, "P30", "tier of a copy");
  }),
);

// ---- checksums

group("page-md5", (service) =>
  container(service, {}, async (box) => {
    const blob = await newPageBlob(box);
    const sent = (data, sum) => write(blob, data, 0, { transactionalContentMD5: sum });
    const done = await sent(page(1), md5(page(1)));
    sameBytes(Buffer.from(done.contentMD5 ?? []), md5(page(1)), "MD5 in the answer to a write");
    await refused("Md5Mismatch", () => sent(page(3), md5(page(4))), 400);
    await refused("InvalidMd5", () => sent(page(3), Buffer.from("short")), 400);
    await write(blob, page(2), PAGE);
    const content = Buffer.concat([page(1), page(2)]).subarray(100, 1000);
    const answer = await blob.download(100, 900, { rangeGetContentMD5: true });
    sameBytes(Buffer.concat(await all(answer.readableStreamBody)), content, "content of a range");
    sameBytes(Buffer.from(answer.contentMD5 ?? []), md5(content), "MD5 of a range");
    const other = await blob.download(0, PAGE);
    await all(other.readableStreamBody);
    check(!other.contentMD5, "MD5 of a range without asking for it");
    const large = await newPageBlob(box, "large", 8 * MIB);
    const tooLong = () => read(large, 0, 4 * MIB + 1, { rangeGetContentMD5: true });
    await refused(["InvalidHeaderValue", "OutOfRangeInput", "InvalidRange"], tooLong);
  }),
);

group("page-crc64", async (service) => {
  same(crc64(Buffer.from("123456789")).toString("hex"), "8898790a86148bae", "the checksum of this program");
  await container(service, {}, async (box) => {
    const blob = await newPageBlob(box);
    const sent = (data, sum, more) => write(blob, data, 0, { transactionalContentCrc64: sum, ...more });
    const header = (answer) => Buffer.from(answer._response.headers.get("x-ms-content-crc64") ?? "", "base64");
    const done = await sent(page(1), crc64(page(1)));
    sameBytes(header(done), crc64(page(1)), "CRC64 in the answer to a write");
    await refused("Crc64Mismatch", () => sent(page(2), crc64(page(3))), 400);
    const both = { transactionalContentMD5: md5(page(2)) };
    await refused("BothCrc64AndMd5HeaderPresent", () => sent(page(2), crc64(page(2)), both), 400);
    sameBytes(await read(blob, 0, PAGE), page(1), "content after writes that were refused");
    const answer = await blob.download(10, 290, { rangeGetContentCrc64: true });
    await all(answer.readableStreamBody);
    sameBytes(header(answer), crc64(page(1).subarray(10, 300)), "CRC64 of a range");
  });
});

// Content framed with checksums, as the library does when told to check all of it.
group(
  "page-structured",
  (service) =>
    container(service, {}, async (box) => {
      const blob = await newPageBlob(box, "disk", 8 * MIB);
      const checked = { contentChecksumAlgorithm: "StorageCrc64" };
      const content = filled(4 * MIB, 1);
      await write(blob, content, 2 * MIB, checked);
      sameBytes(await read(blob, 2 * MIB, 4 * MIB), content, "content");
      sameBytes(await read(blob, 2 * MIB, 4 * MIB, checked), content, "content with checksums");
    }),
  true,
);

// ---- lists and names

group("list-flat", (service) =>
  container(service, {}, async (box) => {
    await newPageBlob(box, "a/1", 8 * PAGE, { blobSequenceNumber: 3 });
    await newPageBlob(box, "a/2");
    await box.uploadBlockBlob("b/1", "block", 5);
    await box.getAppendBlobClient("c").create();
    const found = await all(box.listBlobsFlat());
    same(
      found.map((b) => b.name),
      ["a/1", "a/2", "b/1", "c"],
      "names in order",
    );
    const types = found.map((b) => b.properties.blobType);
    same(types, ["PageBlob", "PageBlob", "BlockBlob", "AppendBlob"], "types");
    same(
      found.map((b) => b.properties.contentLength),
      [8 * PAGE, 8 * PAGE, 5, 0],
      "sizes",
    );
    same(found[0].properties.blobSequenceNumber, 3, "sequence number");
    for (const { name, properties } of found) {
      const kept = await box.getBlobClient(name).getProperties();
      same(properties.etag.replaceAll('"', ""), kept.etag.replaceAll('"', ""), `ETag of ${name}`);
      same(properties.lastModified, kept.lastModified, `Last-Modified of ${name}`);
      same(properties.createdOn, kept.createdOn, `time of creation of ${name}`);
    }
    same(await namesOf(box.listBlobsFlat({ prefix: "a/" })), ["a/1", "a/2"], "names with a prefix");
    same(await namesOf(box.listBlobsFlat({ prefix: "none" })), [], "names with an unknown prefix");
  }),
);

group("list-hierarchy", (service) =>
  container(service, {}, async (box) => {
    for (const name of ["d/1", "d/2", "d/e/3", "f/4", "top", "a-first"]) await newPageBlob(box, name, PAGE);
    const walk = async (prefix, delimiter = "/") => {
      const found = await all(box.listBlobsByHierarchy(delimiter, { prefix }));
      const kind = (wanted) => found.filter((item) => item.kind === wanted).map((item) => item.name);
      return [kind("prefix"), kind("blob")];
    };
    same(
      await walk(),
      [
        ["d/", "f/"],
        ["a-first", "top"],
      ],
      "the top",
    );
    same(await walk("d/"), [["d/e/"], ["d/1", "d/2"]], "one below");
    same(await walk("d/e/"), [[], ["d/e/3"]], "two below");
    same(await walk("d"), [["d/"], []], "the beginning of a name");
    same(await walk(undefined, "e"), [["d/e"], ["a-first", "d/1", "d/2", "f/4", "top"]], "another delimiter");
    const answers = (await all(box.listBlobsByHierarchy("/").byPage({ maxPageSize: 1 }))).map(({ segment }) =>
      [...(segment.blobPrefixes ?? []), ...segment.blobItems].map((item) => item.name),
    );
    same(answers.flat().sort(), ["a-first", "d/", "f/", "top"], "one by one");
    same(Math.max(...answers.map((answer) => answer.length)), 1, "entries in an answer");
  }),
);

group("list-include", (service) =>
  container(service, {}, async (box) => {
    const blob = await newPageBlob(box, "a", 8 * PAGE, { metadata: { k: "v" }, tags: { t: "u" } });
    await blob.createSnapshot();
    await copy(box.getPageBlobClient("b"), blob.url);
    await box.getBlockBlobClient("c").stageBlock(blockId("0001"), "not committed", 13);
    same(await namesOf(box.listBlobsFlat()), ["a", "b"], "names");
    same(
      await namesOf(box.listBlobsFlat({ includeUncommitedBlobs: true })),
      ["a", "b", "c"],
      "names with what is staged",
    );
    const include = { includeSnapshots: true, includeMetadata: true, includeTags: true, includeCopy: true };
    const found = await all(box.listBlobsFlat(include));
    found.sort((a, b) => a.name.localeCompare(b.name) || (b.snapshot ?? "").localeCompare(a.snapshot ?? ""));
    same(
      found.map((b) => [b.name, Boolean(b.snapshot)]),
      [
        ["a", true],
        ["a", false],
        ["b", false],
      ],
      "names and snapshots",
    );
    same(
      found.map((b) => b.metadata?.k),
      ["v", "v", "v"],
      "metadata",
    );
    same({ ...found[1].tags }, { t: "u" }, "tags");
    same(found[2].properties.copyStatus, "success", "copy");
    check(!found[1].properties.copyStatus, "a copy where there was none");
    await blob.delete({ deleteSnapshots: "include" });
  }),
);

group("list-paged", (service) =>
  container(service, {}, async (box) => {
    const names = Array.from({ length: 25 }, (_, number) => `blob-${String(number).padStart(2, "0")}`);
    for (const name of names) await newPageBlob(box, name, PAGE);
    const inPages = async (options, settings) =>
      (await all(box.listBlobsFlat(options).byPage(settings))).map((a) => a.segment.blobItems.map((b) => b.name));
    const tens = [names.slice(0, 10), names.slice(10, 20), names.slice(20)];
    same(await inPages({}, { maxPageSize: 10 }), tens, "answers of ten");
    const first = (await box.listBlobsFlat().byPage({ maxPageSize: 7 }).next()).value;
    same(
      first.segment.blobItems.map((b) => b.name),
      names.slice(0, 7),
      "the first answer",
    );
    const rest = await inPages({}, { maxPageSize: 7, continuationToken: first.continuationToken });
    same(rest.flat(), names.slice(7), "answers after the marker");
    const some = await inPages({ prefix: "blob-1" }, { maxPageSize: 4 });
    same(some, [names.slice(10, 14), names.slice(14, 18), names.slice(18, 20)], "answers with a prefix");
  }),
);

const NAMES = [
  "space in name",
  "umlaut-äöü-漢字-\u{1F680}",
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
  "n".repeat(1024),
];

group("names", (service) =>
  container(service, {}, async (box) => {
    for (const [number, name] of NAMES.entries()) {
      const blob = await newPageBlob(box, name, PAGE);
      await write(blob, page(number), 0);
    }
    same((await namesOf(box.listBlobsFlat())).sort(), [...NAMES].sort(), "names in a list");
    for (const [number, name] of NAMES.entries()) {
      const blob = box.getPageBlobClient(name);
      const what = `content of ${name.slice(0, 40)}`;
      same(blob.name, name, "the name in the URL");
      sameBytes(await read(blob), page(number), what);
      sameBytes(await read(withToken(blob, blobToken(blob))), page(number), `${what}, with a token`);
      if (name.length < 1024) same(await namesOf(box.listBlobsFlat({ prefix: name })), [name], "a name as a prefix");
      await blob.delete();
    }
    same(await namesOf(box.listBlobsFlat()), [], "names after all were deleted");
  }),
);

// Characters that XML cannot carry are listed percent-encoded.
group("names-encoded", (service) =>
  container(service, {}, async (box) => {
    const name = "not\ufffexml";
    await newPageBlob(box, name, PAGE);
    await newPageBlob(box, `${name}/below`, PAGE);
    same(await namesOf(box.listBlobsFlat()), [name, `${name}/below`], "names");
    same((await namesOf(box.listBlobsByHierarchy("/"))).sort(), [name, `${name}/`], "names in a hierarchy");
  }),
);

// ---- block and append blobs

const blockId = (name) => Buffer.from(name).toString("base64");

group("block-upload", (service) =>
  container(service, {}, async (box) => {
    const blob = box.getBlockBlobClient("text");
    const hello = Buffer.from("hello");
    const done = await blob.upload(hello, 5, {
      metadata: { a: "b" },
      blobHTTPHeaders: { blobContentType: "text/plain" },
    });
    check(done.etag, "the ETag is missing");
    const found = await blob.getProperties();
    same([found.blobType, found.contentLength], ["BlockBlob", 5], "type and size");
    same([found.contentType, found.metadata], ["text/plain", { a: "b" }], "content type and metadata");
    sameBytes(Buffer.from(found.contentMD5 ?? []), md5(hello), "MD5");
    sameBytes(await read(blob), hello, "content");
    sameBytes(await read(blob, 1, 3), Buffer.from("ell"), "a range");
    sameBytes(await read(blob, 4, 100), Buffer.from("o"), "a range over the end");
    await refused("InvalidRange", () => read(blob, 5, 1), 416);
    await refused("BlobAlreadyExists", () => blob.upload("again", 5, { conditions: { ifNoneMatch: "*" } }), 409);
    await blob.upload("", 0);
    sameBytes(await read(blob), Buffer.alloc(0), "content of nothing");
    const { snapshot } = await blob.createSnapshot();
    await blob.upload("new", 3);
    sameBytes(await read(blob.withSnapshot(snapshot)), Buffer.alloc(0), "content of a snapshot");
    await refused("SnapshotsPresent", () => blob.delete(), 409);
    await blob.delete({ deleteSnapshots: "include" });
  }),
);

group("block-large", (service) =>
  container(service, {}, async (box) => {
    const content = filled(70 * MIB + 123, 1);
    const blob = box.getBlockBlobClient("large");
    await blob.uploadData(content, { blockSize: 4 * MIB, maxSingleShotSize: 64 * MIB, concurrency: 4 });
    same((await blob.getProperties()).contentLength, content.length, "size");
    const { committedBlocks, uncommittedBlocks } = await blob.getBlockList("all");
    same([committedBlocks.length, uncommittedBlocks?.length ?? 0], [18, 0], "number of blocks");
    const total = committedBlocks.reduce((sum, block) => sum + block.size, 0);
    same(total, content.length, "size of all blocks");
    sameBytes(await blob.downloadToBuffer(0, undefined, { concurrency: 4 }), content, "content");
    sameBytes(await read(blob), content, "content at once");
    const around = content.subarray(4 * MIB - 10, 4 * MIB + 10);
    sameBytes(await read(blob, 4 * MIB - 10, 20), around, "a range over two blocks");
  }),
);

group("block-list", (service) =>
  container(service, {}, async (box) => {
    const blob = box.getBlockBlobClient("blocks");
    const parts = (blocks) => (blocks ?? []).map((b) => [Buffer.from(b.name, "base64").toString(), b.size]);
    const listed = async () => {
      const found = await blob.getBlockList("all");
      return [parts(found.committedBlocks), parts(found.uncommittedBlocks).sort()];
    };
    const stage = (name, content) => blob.stageBlock(blockId(name), content, content.length);
    const commit = (names, options) => blob.commitBlockList(names.map(blockId), options);
    const text = async () => (await read(blob)).toString();
    await stage("one", "1");
    await stage("two", "22");
    await stage("thr", "333");
    same(
      await listed(),
      [
        [],
        [
          ["one", 1],
          ["thr", 3],
          ["two", 2],
        ],
      ],
      "blocks staged",
    );
    await refused("BlobNotFound", () => blob.getProperties(), 404);
    await commit(["two", "one"], { metadata: { a: "b" } });
    same(
      await listed(),
      [
        [
          ["two", 2],
          ["one", 1],
        ],
        [],
      ],
      "blocks committed",
    );
    same(await text(), "221", "content");
    same((await blob.getProperties()).metadata, { a: "b" }, "metadata");
    await stage("one", "new one");
    await stage("fou", "4444");
    same(
      await listed(),
      [
        [
          ["two", 2],
          ["one", 1],
        ],
        [
          ["fou", 4],
          ["one", 7],
        ],
      ],
      "blocks staged anew",
    );
    same(parts((await blob.getBlockList("committed")).uncommittedBlocks), [], "blocks committed alone");
    same(parts((await blob.getBlockList("uncommitted")).committedBlocks), [], "blocks staged alone");
    same(await text(), "221", "content before the commit");
    await commit(["one", "two", "fou", "two"]);
    same(await text(), "new one22444422", "content after the commit");
    same(
      await listed(),
      [
        [
          ["one", 7],
          ["two", 2],
          ["fou", 4],
          ["two", 2],
        ],
        [],
      ],
      "blocks after the commit",
    );
    await refused("InvalidBlockList", () => commit(["not"]), 400);
    await stage("fin", "end");
    await refused(["InvalidBlobOrBlock", "InvalidBlockId"], () => stage("longer name", "x"), 400);
    const sum = { transactionalContentMD5: md5("other") };
    await refused("Md5Mismatch", () => blob.stageBlock(blockId("bad"), "text", 4, sum), 400);
    await refused("ConditionNotMet", () => commit(["fin"], { conditions: { ifMatch: '"0x1"' } }), 412);
    await commit(["fin"], { conditions: { ifMatch: (await blob.getProperties()).etag } });
    same(await text(), "end", "content after a commit with the right ETag");
    await commit([]);
    same(await text(), "", "content of no blocks");
  }),
);

group("block-from-url", (service) =>
  container(service, {}, async (box) => {
    const source = box.getBlockBlobClient("source");
    await source.upload("0123456789", 10);
    const blob = box.getBlockBlobClient("target");
    await blob.stageBlockFromURL(blockId("one"), sourceUrl(source), 2, 3);
    await blob.stageBlockFromURL(blockId("two"), sourceUrl(source));
    await blob.commitBlockList([blockId("one"), blockId("two")]);
    same((await read(blob)).toString(), "2340123456789", "content");
  }),
);

group("block-copy", (service) =>
  container(service, {}, async (box) => {
    const source = box.getBlockBlobClient("source");
    await source.upload("content", 7, { metadata: { a: "b" } });
    const blob = box.getBlockBlobClient("copy");
    same((await copy(blob, source.url)).copyStatus, "success", "copy");
    same((await read(blob)).toString(), "content", "content");
    const other = box.getBlockBlobClient("at-once");
    same((await other.syncCopyFromURL(sourceUrl(source))).copyStatus, "success", "copy at once");
    same((await read(other)).toString(), "content", "content copied at once");
  }),
);

group("append", (service) =>
  container(service, {}, async (box) => {
    const blob = box.getAppendBlobClient("log");
    const add = (text, conditions) => blob.appendBlock(text, text.length, { conditions });
    await blob.create({ metadata: { a: "b" }, blobHTTPHeaders: { blobContentType: "text/log" } });
    let done = await add("first ");
    same([done.blobAppendOffset, done.blobCommittedBlockCount], ["0", 1], "the first block");
    done = await add("second ", { appendPosition: 6 });
    same([done.blobAppendOffset, done.blobCommittedBlockCount], ["6", 2], "the second block");
    await refused("AppendPositionConditionNotMet", () => add("x", { appendPosition: 6 }), 412);
    await refused("MaxBlobSizeConditionNotMet", () => add("x".repeat(10), { maxSize: 20 }), 412);
    await add("third", { maxSize: 18 });
    same((await read(blob)).toString(), "first second third", "content");
    same((await read(blob, 6, 6)).toString(), "second", "a range");
    const found = await blob.getProperties();
    same([found.blobType, found.contentLength], ["AppendBlob", 18], "type and size");
    same([found.blobCommittedBlockCount, found.contentType], [3, "text/log"], "number of blocks and content type");
    await refused("InvalidBlobType", () => write(box.getPageBlobClient("log"), page(1), 0), 409);
    await refused("InvalidBlobType", () => box.getBlockBlobClient("log").stageBlock(blockId("one"), "x", 1), 409);
    const other = box.getAppendBlobClient("copy");
    await copy(other, blob.url);
    same((await other.getProperties()).blobType, "AppendBlob", "type of the copy");
    same((await read(other)).toString(), "first second third", "content of the copy");
    const listed = (await all(box.listBlobsFlat())).map((b) => [b.name, b.properties.blobType]);
    same(
      listed,
      [
        ["copy", "AppendBlob"],
        ["log", "AppendBlob"],
      ],
      "list",
    );
    const large = filled(4 * MIB, 1);
    await blob.create();
    same((await blob.getProperties()).contentLength, 0, "size made anew");
    await blob.appendBlock(large, large.length, { transactionalContentMD5: md5(large) });
    sameBytes(await read(blob), large, "content of a large block");
    await blob.delete();
    await refused("BlobNotFound", () => add("x"), 404);
  }),
);

// ---- authorization

group("auth-key", async (service) => {
  const wrong = new BlobServiceClient(
    service.url,
    new StorageSharedKeyCredential(credential.accountName, blockId("not the key".repeat(5))),
    ONCE,
  );
  await container(service, {}, async (box) => {
    const blob = await newPageBlob(box);
    const other = wrong.getContainerClient(box.containerName).getPageBlobClient("disk");
    await refused("AuthenticationFailed", () => all(wrong.listContainers()), 403);
    await refused("AuthenticationFailed", () => other.getProperties(), 403);
    await refused("AuthenticationFailed", () => write(other, page(1), 0), 403);
    sameBytes(await read(blob, 0, PAGE), Buffer.alloc(PAGE), "content after a write that was refused");
  });
});

group("auth-account-sas", (service) =>
  container(service, {}, async (box) => {
    const client = (options) => {
      const values = { services: "b", resourceTypes: "sco", expiresOn: inHours(1), ...options };
      values.permissions = AccountSASPermissions.parse(options.permissions ?? "rwdlac");
      const sas = generateAccountSASQueryParameters(values, credential).toString();
      return new BlobServiceClient(`${plain(service)}?${sas}`, new AnonymousCredential(), ONCE);
    };
    const name = box.containerName;
    const disk = (options) => client(options).getContainerClient(name).getPageBlobClient("disk");
    same(await namesOf(client({}).listContainers({ prefix: name })), [name], "names of containers");
    const blob = disk({});
    await blob.create(PAGE);
    await write(blob, page(1), 0);
    sameBytes(await read(blob), page(1), "content");
    const reader = disk({ permissions: "r" });
    sameBytes(await read(reader), page(1), "content with a token to read");
    await refused("AuthorizationPermissionMismatch", () => write(reader, page(2), 0), 403);
    await refused("AuthorizationPermissionMismatch", () => reader.delete(), 403);
    const objects = { resourceTypes: "o" };
    sameBytes(await read(disk(objects)), page(1), "content with a token for objects");
    await refused("AuthorizationResourceTypeMismatch", () => all(client(objects).listContainers()), 403);
    const inside = client(objects).getContainerClient(name);
    await refused("AuthorizationResourceTypeMismatch", () => all(inside.listBlobsFlat()), 403);
    await refused("AuthorizationServiceMismatch", () => disk({ services: "q" }).getProperties(), 403);
    const expired = disk({ startsOn: inHours(-2), expiresOn: inHours(-1) });
    await refused("AuthenticationFailed", () => expired.getProperties(), 403);
    const early = disk({ startsOn: inHours(1), expiresOn: inHours(2) });
    await refused("AuthenticationFailed", () => early.getProperties(), 403);
  }),
);

group("auth-container-sas", (service) =>
  container(service, {}, async (box) => {
    const blob = await newPageBlob(box);
    await write(blob, page(1), 0);
    const denied = (call) => refused("AuthorizationPermissionMismatch", call, 403);
    const reader = withToken(box, containerToken(box, "r"));
    sameBytes(await read(reader.getPageBlobClient("disk"), 0, PAGE), page(1), "content");
    await denied(() => all(reader.listBlobsFlat()));
    await denied(() => write(reader.getPageBlobClient("disk"), page(2), 0));
    same(await namesOf(withToken(box, containerToken(box, "rl")).listBlobsFlat()), ["disk"], "names");
    const writer = withToken(box, containerToken(box, "cw"));
    const made = await newPageBlob(writer, "new");
    await write(made, page(3), 0);
    await denied(() => read(made));
    await denied(() => made.delete());
    await withToken(box, containerToken(box, "d")).getPageBlobClient("new").delete();
    await container(service, {}, async (second) => {
      const elsewhere = withToken(second, containerToken(box, "rl"));
      await refused("AuthenticationFailed", () => all(elsewhere.listBlobsFlat()), 403);
    });
  }),
);

group("auth-blob-sas", (service) =>
  container(service, {}, async (box) => {
    const blob = await newPageBlob(box, "a folder/disk +%");
    await write(blob, page(1), 0);
    const { snapshot } = await blob.createSnapshot();
    await write(blob, page(2), 0);
    const denied = (call) => refused("AuthorizationPermissionMismatch", call, 403);
    const reader = withToken(blob, blobToken(blob, "r"));
    sameBytes(await read(reader, 0, PAGE), page(2), "content");
    same(await ranges(reader), [pages(0)], "page ranges");
    await denied(() => write(reader, page(3), 0));
    await denied(() => reader.setMetadata({ a: "b" }));
    await denied(() => reader.delete());
    const writer = withToken(blob, blobToken(blob, "w"));
    await write(writer, page(4), 0);
    await denied(() => read(writer, 0, PAGE));
    const tagger = withToken(blob, blobToken(blob, "t"));
    await tagger.setTags({ a: "b" });
    same({ ...(await tagger.getTags()).tags }, { a: "b" }, "tags");
    await denied(() => reader.getTags());
    const other = await newPageBlob(box, "other");
    await refused("AuthenticationFailed", () => read(withToken(other, blobToken(blob, "r"))), 403);
    const ofSnapshot = withToken(blob, blobToken(blob, "r", { snapshotTime: snapshot }));
    sameBytes(await read(ofSnapshot.withSnapshot(snapshot), 0, PAGE), page(1), "content of a snapshot");
    await refused("AuthenticationFailed", () => read(ofSnapshot), 403);
    const changed = { contentType: "x/y", contentDisposition: "attachment; filename=z" };
    const answer = await withToken(blob, blobToken(blob, "r", changed)).download(0, 10);
    await all(answer.readableStreamBody);
    same([answer.contentType, answer.contentDisposition], Object.values(changed), "headers of the token");
    await blob.delete({ deleteSnapshots: "include" });
  }),
);

group("auth-expired", (service) =>
  container(service, {}, async (box) => {
    const blob = await newPageBlob(box);
    for (const sas of [
      blobToken(blob, "r", { expiresOn: inHours(-1) }),
      blobToken(blob, "r", { startsOn: inHours(1), expiresOn: inHours(2) }),
      blobToken(blob, "r").replace("sp=r", "sp=rw"),
      containerToken(box, "r", { expiresOn: inHours(-1) }),
    ]) {
      await refused("AuthenticationFailed", () => read(withToken(blob, sas)), 403);
      await refused("AuthenticationFailed", () => withToken(blob, sas).getProperties(), 403);
    }
  }),
);

group("auth-policy", (service) =>
  container(service, {}, async (box) => {
    const blob = await newPageBlob(box);
    await write(blob, page(1), 0);
    await box.setAccessPolicy(undefined, [
      { id: "reader", accessPolicy: { permissions: "r", expiresOn: inHours(1) } },
      { id: "expired", accessPolicy: { permissions: "r", expiresOn: inHours(-1) } },
    ]);
    const client = (identifier) => {
      const values = { containerName: box.containerName, identifier };
      return withToken(blob, generateBlobSASQueryParameters(values, credential).toString());
    };
    sameBytes(await read(client("reader"), 0, PAGE), page(1), "content");
    await refused("AuthorizationPermissionMismatch", () => write(client("reader"), page(2), 0), 403);
    await refused("AuthenticationFailed", () => read(client("expired")), 403);
    await refused("AuthenticationFailed", () => read(client("unknown")), 403);
    await box.setAccessPolicy(undefined, []);
    await refused("AuthenticationFailed", () => read(client("reader")), 403);
  }),
);

group("auth-ip", (service) =>
  container(service, {}, async (box) => {
    const blob = await newPageBlob(box);
    const from = (start, end) => withToken(blob, blobToken(blob, "r", { ipRange: { start, end } }));
    await refused("AuthorizationSourceIPMismatch", () => from("203.0.113.7").getProperties(), 403);
    await refused("AuthorizationSourceIPMismatch", () => read(from("203.0.113.7", "203.0.113.99")), 403);
    sameBytes(await read(from("0.0.0.0", "255.255.255.255")), Buffer.alloc(8 * PAGE), "content");
  }),
);

group("auth-protocol", (service) =>
  container(service, {}, async (box) => {
    const blob = await newPageBlob(box);
    const over = (protocol) => withToken(blob, blobToken(blob, "r", { protocol }));
    sameBytes(await read(over("https,http")), Buffer.alloc(8 * PAGE), "content");
    if (service.url.startsWith("http:")) {
      await refused("AuthorizationProtocolMismatch", () => over("https").getProperties(), 403);
      await refused("AuthorizationProtocolMismatch", () => read(over("https")), 403);
    } else {
      sameBytes(await read(over("https")), Buffer.alloc(8 * PAGE), "content with a token for https");
    }
  }),
);

group("auth-public", (service) =>
  container(service, { access: "blob" }, async (box) => {
    const blob = await newPageBlob(box);
    await write(blob, page(1), 0);
    const anyone = withToken(blob);
    const outside = withToken(box);
    sameBytes(await read(anyone, 0, PAGE), page(1), "content of a public blob");
    same((await anyone.getProperties()).contentLength, 8 * PAGE, "size of a public blob");
    same(await ranges(anyone), [pages(0)], "page ranges of a public blob");
    await refused(ANONYMOUS_REFUSED, () => all(outside.listBlobsFlat()));
    await refused(ANONYMOUS_REFUSED, () => write(anyone, page(2), 0));
    await refused(ANONYMOUS_REFUSED, () => anyone.delete());
    await box.setAccessPolicy("container");
    same(await namesOf(outside.listBlobsFlat()), ["disk"], "names in a public container");
    sameBytes(await read(anyone, 0, PAGE), page(1), "content in a public container");
    await refused(ANONYMOUS_REFUSED, () => write(anyone, page(2), 0));
    await refused(ANONYMOUS_REFUSED, () => outside.delete());
    await box.setAccessPolicy();
    await refused(ANONYMOUS_REFUSED, () => read(anyone));
  }),
);

group("auth-anonymous", (service) =>
  container(service, {}, async (box) => {
    const blob = withToken(await newPageBlob(box));
    await refused(ANONYMOUS_REFUSED, () => read(blob));
    await refused(ANONYMOUS_REFUSED, () => blob.getProperties());
    await refused(ANONYMOUS_REFUSED, () => write(blob, page(1), 0));
    await refused(ANONYMOUS_REFUSED, () => all(withToken(box).listBlobsFlat()));
    const anyone = new BlobServiceClient(plain(service), new AnonymousCredential(), ONCE);
    await refused([...ANONYMOUS_REFUSED, "InvalidQueryParameterValue"], () => all(anyone.listContainers()));
  }),
);

// ---- a server that rejects what is over its cap

/** A service client that tries again by itself, and tells of each answer 503. */
function patient(service, busy) {
  const pipeline = newPipeline(credential, {
    retryOptions: { maxTries: 60, retryDelayInMs: 50, maxRetryDelayInMs: 2000 },
  });
  const client = new BlobServiceClient(service.url, pipeline);
  const counter = {
    name: "counter",
    async sendRequest(request, next) {
      const answer = await next(request);
      if (answer.status === 503) busy.push([answer.headers.get("x-ms-error-code"), answer.headers.get("retry-after")]);
      return answer;
    },
  };
  pipeline._corePipeline.addPolicy(counter, { afterPhase: "Retry" });
  return client;
}

group(
  "retry",
  async (service) => {
    const busy = [];
    await container(patient(service, busy), {}, async (box) => {
      const blob = await newPageBlob(box, "disk", MIB);
      const work = async (number) => {
        const offset = (number % 2048) * PAGE;
        await write(blob, page(number), offset);
        sameBytes(await read(blob, offset, PAGE), page(number), `content written by operation ${number}`);
      };
      let done = 0;
      while (done < 20 * 512 && !busy.length) {
        const numbers = Array.from({ length: 512 }, (_, index) => done + index);
        const worker = async () => {
          while (numbers.length) await work(numbers.shift());
        };
        await Promise.all(Array.from({ length: 16 }, worker));
        done += 512;
      }
      check(busy.length, `not one of ${2 * done} operations was answered 503: the cap was never met`);
      check(
        busy.every(([code]) => code === "ServerBusy"),
        `codes of the answers 503: ${shown(busy.slice(0, 5))}`,
      );
      check(
        busy.every(([, after]) => /^\d+$/.test(after ?? "")),
        "an answer 503 is without Retry-After",
      );
      const content = Buffer.alloc(MIB);
      for (let number = 0; number < done; number += 1) page(number).copy(content, (number % 2048) * PAGE);
      sameBytes(await read(blob), content, "content after all");
    });
  },
  true,
);

// ---- the program

let credential;

/** The groups to run: all, or those named in full or by their beginning. */
function chosen(wanted) {
  const every = [...GROUPS.keys()];
  if (!wanted.length) return every.filter((name) => !ONLY_BY_NAME.has(name));
  const found = new Set();
  for (const text of wanted) {
    const names = every.filter((name) => name === text || (name.startsWith(text) && !ONLY_BY_NAME.has(name)));
    if (!names.length) {
      console.error(`no group named ${text}; there are: ${every.join(" ")}`);
      process.exit(1);
    }
    names.forEach((name) => found.add(name));
  }
  return [...found];
}

async function run(name, connection) {
  const service = BlobServiceClient.fromConnectionString(connection, ONCE);
  credential = service.credential;
  try {
    await GROUPS.get(name)(service);
  } catch (error) {
    if (error instanceof Failure) return error.message;
    // Any other error of the library is a failure as well.
    const line = /azure_blob\.mjs:(\d+)/.exec(error.stack ?? "")?.[1];
    const code = error.response?.headers.get("x-ms-error-code") ?? error.code ?? "";
    const answer = error.statusCode ? ` ${error.request?.method} ${error.statusCode} ${code}` : "";
    const text = String(error.message).replace(/\s+/g, " ").slice(0, 300);
    return `${line ? `line ${line}: ` : ""}${error.name}${answer}: ${text}`;
  }
  return undefined;
}

async function main([given, ...wanted]) {
  if (!given || given === "-h" || given === "--help") {
    console.log("node azure_blob.mjs CONNECTION_STRING [GROUP ...]");
    console.log("Groups:", [...GROUPS.keys()].join(" "));
    return 1;
  }
  const connection = given.startsWith("UseDevelopmentStorage=true") ? DEVELOPMENT : given;
  let failures = 0;
  for (const name of chosen(wanted)) {
    const why = await run(name, connection);
    console.log(why ? `FAILED ${name}: ${why}` : `ok ${name}`);
    failures += why ? 1 : 0;
  }
  return failures ? 1 : 0;
}

process.exitCode = await main(process.argv.slice(2));
