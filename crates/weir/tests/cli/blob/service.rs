//! Answers of the service that its clients rely on, beside those that the SDKs check.

use super::Rig;
use super::client::{Client, KEY};
use crate::common::Place;
use rustix::process::Signal;

const LAYOUT: &str = "[host]\nunlimited = true\n[blob]\n";
const BLOCK: (&str, &str) = ("x-ms-blob-type", "BlockBlob");
const APPEND: (&str, &str) = ("x-ms-blob-type", "AppendBlob");

fn rig(layout: &str) -> Rig {
    let rig = Rig::new(Place::without_a_disk(), layout, &["--data", "data"]);
    rig.client.container("box");
    rig
}

fn url(client: &Client, path: &str) -> String {
    format!("{}{path}", client.url)
}

/// Returns the text of an element, or nothing.
fn element<'a>(text: &'a str, name: &str) -> &'a str {
    let (_, rest) = text.split_once(&format!("<{name}>")).unwrap_or_default();
    rest.split('<').next().unwrap_or_default()
}

#[test]
fn names_of_metadata_are_identifiers() {
    let rig = rig(LAYOUT);
    for name in ["x-ms-meta-1a", "x-ms-meta-a.b", "x-ms-meta-a-b"] {
        for path in ["/box/a", "/new?restype=container"] {
            let refused = rig.client.ask("PUT", path, &[BLOCK, (name, "v")], b"x");
            assert_eq!((refused.status, refused.code()), (400, "InvalidMetadata"), "{name}");
        }
    }
    rig.client.must("PUT", "/box/a", &[BLOCK, ("x-ms-meta-_a1", "v")], b"x");
}

#[test]
fn a_refused_range_has_the_length_and_an_unreadable_one_is_ignored() {
    let rig = rig(LAYOUT);
    rig.client.must("PUT", "/box/empty", &[BLOCK], b"");
    let refused = rig.client.ask("GET", "/box/empty", &[("x-ms-range", "bytes=0-2")], &[]);
    assert_eq!((refused.status, refused.code()), (416, "InvalidRange"));
    assert_eq!(refused.headers["content-range"], "bytes */0");
    rig.client.must("PUT", "/box/full", &[BLOCK], b"hello");
    let whole = rig.client.must("GET", "/box/full", &[("x-ms-range", "bytes=0--1")], &[]);
    assert_eq!((whole.status, &*whole.body), (200, &b"hello"[..]));
    let missing = rig.client.ask("HEAD", "/box/none", &[], &[]);
    assert_eq!((missing.status, missing.code()), (404, "BlobNotFound"));
    assert_eq!(missing.headers.get("content-type"), None);
}

#[test]
fn an_archived_blob_is_not_read_until_it_has_another_tier() {
    let rig = rig(LAYOUT);
    let client = &rig.client;
    client.must("PUT", "/box/a", &[BLOCK], b"hello");
    let first = client.must("HEAD", "/box/a", &[], &[]);
    assert_eq!(first.headers["x-ms-access-tier-inferred"], "true");
    let tier = |tier| client.ask("PUT", "/box/a?comp=tier", &[("x-ms-access-tier", tier)], &[]);
    assert_eq!(tier("Archive").status, 200);
    assert_eq!(tier("Frozen").code(), "InvalidBlobTier");
    let source = url(client, "/box/a");
    let copy = ("x-ms-copy-source", &*source);
    let meta = ("x-ms-meta-a", "b");
    let to = |tier| ("x-ms-access-tier", tier);
    for (method, path, headers) in [
        ("GET", "/box/a", vec![]),
        ("PUT", "/box/a", vec![BLOCK]),
        ("PUT", "/box/copy", vec![copy, to("Archive")]),
        ("PUT", "/box/copy?blockid=AAAA&comp=block", vec![copy, to("Hot")]),
        ("PUT", "/box/a?comp=snapshot", vec![]),
        ("PUT", "/box/a?comp=metadata", vec![meta]),
        ("PUT", "/box/copy", vec![copy]),
    ] {
        let refused = client.ask(method, path, &headers, &[]);
        assert_eq!((refused.status, refused.code()), (409, "BlobArchived"), "{method} {path}");
    }
    client.must("PUT", "/box/copy", &[copy, ("x-ms-access-tier", "Cool")], &[]);
    assert_eq!(client.must("GET", "/box/copy", &[], &[]).body, b"hello");
    let tags = b"<Tags><TagSet><Tag><Key>k</Key><Value>v</Value></Tag></TagSet></Tags>";
    client.must("PUT", "/box/a?comp=tags", &[], tags);
    assert_eq!(tier("Cold").status, 202);
    let read = client.must("GET", "/box/a", &[], &[]);
    assert_eq!(read.body, b"hello");
    assert_eq!(read.headers["x-ms-access-tier"], "Cold");
    assert_eq!(read.headers["x-ms-access-tier-inferred"], "false");
    assert_eq!(tier("Archive").status, 200);
    client.must("DELETE", "/box/a", &[], &[]);
}

#[test]
fn a_sealed_append_blob_takes_no_blocks() {
    let rig = rig(LAYOUT);
    rig.client.must("PUT", "/box/log", &[APPEND], &[]);
    let block = |client: &Client| client.ask("PUT", "/box/log?comp=appendblock", &[], b"line");
    let etag = block(&rig.client).headers["etag"].clone();
    let seal = |headers| rig.client.ask("PUT", "/box/log?comp=seal", headers, &[]);
    let early = seal(&[("x-ms-blob-condition-appendpos", "3")]);
    assert_eq!((early.status, early.code()), (412, "AppendPositionConditionNotMet"));
    for _ in 0..2 {
        let sealed = seal(&[("x-ms-blob-condition-appendpos", "4")]);
        assert_eq!((sealed.status, &*sealed.headers["x-ms-blob-sealed"]), (200, "true"));
        assert_eq!(sealed.headers["etag"], etag);
    }
    rig.client.must("PUT", "/box/block", &[BLOCK], b"x");
    let wrong = rig.client.ask("PUT", "/box/block?comp=seal", &[], &[]);
    assert_eq!((wrong.status, wrong.code()), (409, "InvalidBlobType"));
    let rig = rig.again(&["--data", "data"]);
    let refused = block(&rig.client);
    assert_eq!((refused.status, refused.code()), (409, "BlobIsSealed"));
    assert_eq!(rig.client.must("HEAD", "/box/log", &[], &[]).headers["x-ms-blob-sealed"], "true");
    let list = rig.client.must("GET", "/box?comp=list&restype=container", &[], &[]).text();
    assert!(list.contains("<Sealed>true</Sealed>"), "{list}");
    let source = url(&rig.client, "/box/log");
    let copy = ("x-ms-copy-source", &*source);
    for (seals, expect) in [("false", "false"), ("true", "true")] {
        rig.client.must("PUT", "/box/copy", &[copy, ("x-ms-seal-blob", seals)], &[]);
        let copied = rig.client.must("HEAD", "/box/copy", &[], &[]);
        assert_eq!(copied.headers["x-ms-blob-sealed"], expect);
    }
}

#[test]
fn ids_of_blocks_have_one_length_before_they_are_encoded() {
    let rig = rig(LAYOUT);
    let stage =
        |id: &str| rig.client.ask("PUT", &format!("/box/a?blockid={id}&comp=block"), &[], b"x");
    assert_eq!(stage("MQ%3D%3D").status, 201);
    assert_eq!(stage("Mg%3D%3D").status, 201);
    let refused = stage("MTIz");
    assert_eq!((refused.status, refused.code()), (400, "InvalidBlobOrBlock"));
}

/// Reads a list page by page. Returns the names and the markers.
fn pages(client: &Client, query: &str, most: usize) -> Vec<(Vec<String>, String)> {
    let (mut pages, mut marker) = (Vec::new(), String::new());
    loop {
        let next = if marker.is_empty() { marker } else { format!("&marker={marker}") };
        let (path, rest) = query.split_once("&more").unwrap_or((query, ""));
        let path = format!("{path}{next}&maxresults={most}{rest}");
        let text = client.must("GET", &path, &[], &[]).text();
        let names = text.split("<Name>").skip(1);
        let names = names.map(|part| part.split('<').next().unwrap_or_default().to_owned());
        marker = element(&text, "NextMarker").to_owned();
        pages.push((names.collect(), marker.clone()));
        if marker.is_empty() {
            return pages;
        }
    }
}

#[test]
fn lists_continue_after_the_name_that_ends_a_page() {
    let rig = rig(LAYOUT);
    let client = &rig.client;
    for name in ["aaa", "ccc"] {
        client.container(name);
    }
    let page = |names: &[&str], next: &str| {
        (names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>(), next.to_owned())
    };
    let found = pages(client, "/?comp=list", 2);
    assert_eq!(found, [page(&["aaa", "box"], "box"), page(&["ccc"], "")]);
    for name in ["a", "d/1", "d/2", "e", "f/3"] {
        client.must("PUT", &format!("/box/{name}"), &[BLOCK], b"x");
    }
    let flat = pages(client, "/box?comp=list&more&restype=container", 2);
    let expect = [page(&["a", "d/1"], "d/1"), page(&["d/2", "e"], "e"), page(&["f/3"], "")];
    assert_eq!(flat, expect);
    // The name that ended a page may be gone, and another may have come before it.
    client.must("DELETE", "/box/d/1", &[], &[]);
    client.must("PUT", "/box/b", &[BLOCK], b"x");
    let second = "/box?comp=list&marker=d/1&maxresults=2&restype=container";
    let second = client.must("GET", second, &[], &[]).text();
    assert!(second.contains("<Name>d/2</Name>") && !second.contains("<Name>b</Name>"), "{second}");
    client.must("DELETE", "/box/b", &[], &[]);
    client.must("PUT", "/box/d/1", &[BLOCK], b"x");
    let folders = pages(client, "/box?comp=list&delimiter=/&more&restype=container", 2);
    assert_eq!(folders, [page(&["a", "d/"], "d/"), page(&["e", "f/"], "")]);
    for _ in 0..2 {
        client.must("PUT", "/box/d/1?comp=snapshot", &[], &[]);
    }
    let snapshots =
        pages(client, "/box?comp=list&include=snapshots&more&prefix=d&restype=container", 1);
    let names: Vec<_> = snapshots.iter().flat_map(|(names, _)| names).collect();
    assert_eq!(names, ["d/1", "d/1", "d/1", "d/2"]);
}

#[test]
fn blobs_are_found_by_their_tags() {
    let rig = rig(LAYOUT);
    let client = &rig.client;
    client.container("other");
    for (path, tags) in [
        ("/box/a", "color=red&size=1"),
        ("/box/b", "color=red"),
        ("/box/c", "color=blue"),
        ("/other/d", "color=red"),
    ] {
        client.must("PUT", path, &[BLOCK, ("x-ms-tags", tags)], b"x");
    }
    client.must("PUT", "/box/a?comp=snapshot", &[], &[]);
    let find = |path: &str, most, query: &str| {
        pages(client, &format!("{path}&more&where={query}"), most)
            .into_iter()
            .flat_map(|(names, _)| names)
            .collect::<Vec<_>>()
    };
    for most in [1, 2, 3, 4] {
        assert_eq!(find("/?comp=blobs", most, "color='red'"), ["a", "b", "d"]);
    }
    assert_eq!(find("/?comp=blobs", 9, "color='red'and@container='other'"), ["d"]);
    let only = "/box?comp=blobs&restype=container&where=color='red'";
    let text = client.must("GET", only, &[], &[]).text();
    assert!(text.contains("<Name>a</Name>") && !text.contains("<Name>d</Name>"), "{text}");
    assert!(!text.contains("<Key>size</Key>"), "only tags of the query: {text}");
    let refused = client.ask("GET", "/?comp=blobs&where=color", &[], &[]);
    assert_eq!((refused.status, refused.code()), (400, "InvalidQueryParameterValue"));
    let message = "Error parsing query at or near character position 6: expected an operator";
    assert!(refused.text().contains(message), "{}", refused.text());
}

#[test]
fn a_snapshot_has_tags_of_its_own() {
    let rig = rig(LAYOUT);
    let client = &rig.client;
    client.must("PUT", "/box/a", &[BLOCK, ("x-ms-tags", "k=base")], b"x");
    let made = client.must("PUT", "/box/a?comp=snapshot", &[], &[]);
    let at = made.headers["x-ms-snapshot"].replace(':', "%3A");
    let tags = b"<Tags><TagSet><Tag><Key> k</Key><Value>snapshot</Value></Tag></TagSet></Tags>";
    client.must("PUT", &format!("/box/a?comp=tags&snapshot={at}"), &[], tags);
    let rig = rig.again(&["--data", "data"]);
    let value =
        |path: &str| element(&rig.client.must("GET", path, &[], &[]).text(), "Value").to_owned();
    assert_eq!(value("/box/a?comp=tags"), "base");
    let tags = format!("/box/a?comp=tags&snapshot={at}");
    assert_eq!(value(&tags), "snapshot");
    assert!(rig.client.must("GET", &tags, &[], &[]).text().contains("<Key> k</Key>"));
}

#[test]
fn a_copy_from_another_account_needs_a_signature() {
    let layout = format!("{LAYOUT}[[blob.account]]\nname = \"other\"\nkey = \"{KEY}\"\n");
    let rig = rig(&layout);
    let (client, other) = (&rig.client, rig.client.of_account("other"));
    other.container("box");
    client.must("PUT", "/box/a", &[BLOCK], b"hello");
    let plain = url(client, "/box/a");
    let account = client.signed_url();
    let (_, query) = account.split_once('?').expect("a signature");
    let signed = format!("{plain}?{query}");
    let copy = |source: &str| other.ask("PUT", "/box/a", &[("x-ms-copy-source", source)], &[]);
    let wrong = signed.replace("sp=rw", "sp=wr");
    for source in [&*plain, &*wrong] {
        let refused = copy(source);
        assert_eq!((refused.status, refused.code()), (403, "CannotVerifyCopySource"), "{source}");
    }
    assert_eq!(copy(&signed).status, 202);
    assert_eq!(other.must("GET", "/box/a", &[], &[]).body, b"hello");
    client.must("PUT", "/box/a?comp=tier", &[("x-ms-access-tier", "Archive")], &[]);
    let refused = copy(&signed);
    assert_eq!((refused.status, refused.code()), (409, "CannotVerifyCopySource"));
    // A signature in the URL counts for the owner, too.
    let own = [("x-ms-copy-source", &*wrong), ("x-ms-access-tier", "Hot")];
    let refused = client.ask("PUT", "/box/b", &own, &[]);
    assert_eq!((refused.status, refused.code()), (403, "CannotVerifyCopySource"));
}

#[test]
fn a_synchronous_copy_is_compared_with_the_checksum_of_its_source() {
    let rig = rig(LAYOUT);
    let client = &rig.client;
    client.must("PUT", "/box/a", &[BLOCK], b"hello");
    let source = url(client, "/box/a");
    let copy = |md5| {
        let sync = ("x-ms-requires-sync", "true");
        let md5 = ("x-ms-source-content-md5", md5);
        client.ask("PUT", "/box/b", &[("x-ms-copy-source", &*source), sync, md5], &[])
    };
    let refused = copy("AAAAAAAAAAAAAAAAAAAAAA==");
    assert_eq!((refused.status, refused.code()), (400, "Md5Mismatch"));
    assert_eq!(client.ask("HEAD", "/box/b", &[], &[]).status, 404);
    // From RFC 1321's algorithm: the MD5 of "hello".
    let md5 = "XUFAKrxLKna5cZ2REBfFkg==";
    let copied = copy(md5);
    assert_eq!((copied.status, &*copied.headers["content-md5"]), (202, md5));
}

#[test]
fn each_request_of_a_batch_has_its_own_answer() {
    let rig = rig(LAYOUT);
    let client = &rig.client;
    client.container("other");
    for path in ["/box/a", "/box/b", "/other/c"] {
        client.must("PUT", path, &[BLOCK], b"x");
    }
    let cool = [("x-ms-access-tier", "Cool")];
    let mut body = String::new();
    for (id, request) in [
        client.head(("DELETE", "/box/a"), &[], 0, ""),
        client.head(("PUT", "/box/b?comp=tier"), &cool, 0, ""),
        client.head(("DELETE", "/box/none"), &[], 0, ""),
        client.head(("DELETE", "/other/c"), &[], 0, ""),
        client.head(("GET", "/box/b"), &[], 0, ""),
        client
            .head(("DELETE", "/box/b"), &[], 0, "")
            .replace("SharedKey devstoreaccount1:", "SharedKey devstoreaccount1:A"),
    ]
    .iter()
    .enumerate()
    {
        body +=
            &format!("--b\r\nContent-Type: application/http\r\nContent-ID: {id}\r\n\r\n{request}");
    }
    body += "--b--\r\n";
    let kind = [("content-type", "multipart/mixed; boundary=b")];
    let path = "/box?comp=batch&restype=container";
    let refused = client.ask("POST", path, &[], body.as_bytes());
    assert_eq!((refused.status, refused.code()), (400, "MissingRequiredHeader"));
    let answer = client.must("POST", path, &kind, body.as_bytes()).text();
    let parts: Vec<&str> = answer.split("Content-ID: ").skip(1).collect();
    let expect = [
        ("0", "HTTP/1.1 202 Accepted", ""),
        ("1", "HTTP/1.1 200 OK", ""),
        ("2", "HTTP/1.1 404 Not Found", "BlobNotFound"),
        ("3", "HTTP/1.1 400 Bad Request", "InvalidInput"),
        ("4", "HTTP/1.1 400 Bad Request", "InvalidInput"),
        ("5", "HTTP/1.1 403 Forbidden", "AuthenticationFailed"),
    ];
    assert_eq!(parts.len(), expect.len(), "{answer}");
    for (part, (id, status, code)) in parts.iter().zip(expect) {
        assert!(part.starts_with(id) && part.contains(status) && part.contains(code), "{part}");
    }
    assert_eq!(client.ask("HEAD", "/box/a", &[], &[]).status, 404);
    assert_eq!(client.must("HEAD", "/box/b", &[], &[]).headers["x-ms-access-tier"], "Cool");
    client.must("HEAD", "/other/c", &[], &[]);
    // Its audit line is that of a request of its own.
    rig.server.signal(Signal::TERM);
    let said = rig.server.wait().1;
    let audit: Vec<&str> = said.lines().filter(|line| line.starts_with("audit: ")).collect();
    assert_eq!(audit.len(), 1, "{said}");
    assert!(audit[0].contains(" what=\"DELETE /devstoreaccount1/box/b\" "), "{}", audit[0]);
}
