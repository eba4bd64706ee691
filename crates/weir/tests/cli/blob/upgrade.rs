//! Data folders of earlier releases with everything that blobs can have. Every later version reads them.
//!
//! Each archive is a folder, and the text beside it is what clients could read when it was written. The text
//! is never made anew: `WEIR_TEST_FIXTURES=DIR cargo test -p weir --test cli a_folder_is_read_as_it_was_written`
//! writes both for a new release.

use super::{Client, Rig};
use crate::common::{Place, run};
use crate::tools::{self, needs};
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

const LAYOUT: &str = "[host]\nunlimited = true\n[blob]\n";
const LEASE: &str = "1b4e28ba-2fa1-11d2-883f-0016d3cca427";
const PAGES: &str = "/kept/pages.vhd";

/// Headers whose values are stored, or beginnings of their names. Others are of the answer, and later versions
/// may add some.
const STORED: [&str; 16] = [
    "cache-control",
    "content-disposition",
    "content-language",
    "content-md5",
    "content-type",
    "etag",
    "last-modified",
    "x-ms-access-tier",
    "x-ms-blob-committed-block-count",
    "x-ms-blob-content-length",
    "x-ms-blob-public-access",
    "x-ms-blob-sequence-number",
    "x-ms-blob-type",
    "x-ms-creation-time",
    "x-ms-tag-count",
    "x-ms-meta-",
];

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

/// Runs `tar` in a folder.
#[track_caller]
fn tar(folder: &Path, args: &[&str]) {
    let mut command = Command::new("tar");
    command.args(args).current_dir(folder);
    let (_, stderr, code) = run(command);
    assert_eq!(code, Some(0), "tar {args:?}: {stderr}");
}

/// Makes containers and blobs of all types, with all attributes.
fn fill(client: &Client) {
    let lease = [
        ("x-ms-lease-action", "acquire"),
        ("x-ms-lease-duration", "-1"),
        ("x-ms-proposed-lease-id", LEASE),
    ];
    let rules = b"<StorageServiceProperties><Cors><CorsRule><AllowedOrigins>https://a.example</AllowedOrigins>\
        <AllowedMethods>GET,PUT</AllowedMethods><MaxAgeInSeconds>60</MaxAgeInSeconds><ExposedHeaders>etag\
        </ExposedHeaders><AllowedHeaders>x-ms-*</AllowedHeaders></CorsRule></Cors></StorageServiceProperties>";
    client.must("PUT", "/?comp=properties&restype=service", &[], rules);
    client.must("PUT", "/kept?restype=container", &[("x-ms-meta-who", "me & you")], &[]);
    let policy = b"<SignedIdentifiers><SignedIdentifier><Id>readers</Id><AccessPolicy>\
        <Start>2026-01-01T00:00:00Z</Start><Expiry>2036-01-01T00:00:00Z</Expiry>\
        <Permission>r</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>";
    let public = [("x-ms-blob-public-access", "blob")];
    client.must("PUT", "/kept?comp=acl&restype=container", &public, policy);
    client.must("PUT", "/leased?restype=container", &[], &[]);
    client.must("PUT", "/leased?comp=lease&restype=container", &lease, &[]);
    fill_pages(client, &lease);
    let headers = [
        ("x-ms-blob-type", "BlockBlob"),
        ("x-ms-blob-content-type", "application/x-backup"),
        ("x-ms-blob-content-disposition", "attachment"),
        ("x-ms-blob-cache-control", "no-store"),
        ("x-ms-meta-of", "monday"),
    ];
    client.must("PUT", "/kept/whole.bak", &headers, &[5; 70_000]);
    for (id, byte) in [("QUFB", 6), ("QkJC", 7)] {
        let path = format!("/kept/blocks.bak?blockid={id}&comp=block");
        client.must("PUT", &path, &[], &[byte; 1000]);
    }
    let list = b"<BlockList><Latest>QkJC</Latest><Latest>QUFB</Latest></BlockList>";
    client.must("PUT", "/kept/blocks.bak?comp=blocklist", &[], list);
    client.must("PUT", "/kept/blocks.bak?blockid=Q0ND&comp=block", &[], &[8; 10]);
    client.must("PUT", "/kept/log.txt", &[("x-ms-blob-type", "AppendBlob")], &[]);
    for part in [&b"first "[..], b"second"] {
        client.must("PUT", "/kept/log.txt?comp=appendblock", &[], part);
    }
    let source = format!("{}/kept/whole.bak", client.url);
    client.must("PUT", "/kept/copy.bak", &[("x-ms-copy-source", &source)], &[]);
}

/// Makes a page blob with two snapshots, and one that replaced another.
fn fill_pages(client: &Client, lease: &[(&str, &str)]) {
    client.page_blob(PAGES, 1 << 20);
    client.put(PAGES, 512, &[1; 1024]);
    client.put(PAGES, 65_536, &[2; 4096]);
    client.must("PUT", &format!("{PAGES}?comp=snapshot"), &[("x-ms-meta-of", "one")], &[]);
    client.put(PAGES, 1024, &[3; 512]);
    let clear = [("x-ms-page-write", "clear"), ("x-ms-range", "bytes=65536-66559")];
    client.must("PUT", &format!("{PAGES}?comp=page"), &clear, &[]);
    client.must("PUT", &format!("{PAGES}?comp=metadata"), &[("x-ms-meta-a", "b")], &[]);
    client.must("PUT", &format!("{PAGES}?comp=snapshot"), &[], &[]);
    client.put(PAGES, 1_048_064, &[4; 512]);
    let tags = b"<Tags><TagSet><Tag><Key>k</Key><Value>v w</Value></Tag></TagSet></Tags>";
    client.must("PUT", &format!("{PAGES}?comp=tags"), &[], tags);
    let properties = [
        ("x-ms-blob-content-type", "application/x-vhd"),
        ("x-ms-blob-content-language", "eo"),
        ("x-ms-blob-sequence-number", "9"),
        ("x-ms-sequence-number-action", "update"),
    ];
    client.must("PUT", &format!("{PAGES}?comp=properties"), &properties, &[]);
    client.must("PUT", &format!("{PAGES}?comp=lease"), lease, &[]);
    for byte in [1, 9] {
        client.page_blob("/kept/again.vhd", 8192);
        client.put("/kept/again.vhd", 0, &[byte; 512]);
    }
}

/// Describes bytes by their runs.
fn runs(bytes: &[u8]) -> String {
    let runs = bytes.chunk_by(|a, b| a == b);
    runs.map(|run| format!(" {}x{:02x}", run.len(), run[0])).collect()
}

/// Returns the names and snapshots in a list, in their order.
fn names_in(list: &str) -> String {
    let elements = list.split('<').filter_map(|element| element.split_once('>'));
    let named = elements.filter(|(tag, _)| matches!(*tag, "Name" | "Snapshot"));
    named.map(|(tag, text)| format!("{tag}={text} ")).collect()
}

/// Returns whether a header has a stored value. A lease that nobody has is not stored.
fn is_stored(name: &str, is_leased: bool) -> bool {
    let of_lease = name.starts_with("x-ms-lease-") && is_leased;
    let of_copy = name.starts_with("x-ms-copy-");
    of_lease
        || of_copy
        || STORED.iter().any(|own| name == *own || own.ends_with('-') && name.starts_with(own))
}

/// Describes all that is stored and that a client can read.
fn seen(client: &Client) -> String {
    let mut text = String::new();
    let mut show = |method: &str, path: &str| {
        let answer = client.must(method, path, &[], &[]);
        let _ = writeln!(text, "{method} {path}");
        let is_leased = answer.headers.get("x-ms-lease-status").is_some_and(|own| own == "locked");
        for (name, value) in &answer.headers {
            if is_stored(name, is_leased) {
                let _ = writeln!(text, "  {name}: {value}");
            }
        }
        let body = answer.text();
        let is_text =
            answer.headers.get("content-type").is_some_and(|own| own == "application/xml");
        // A list repeats what the other answers have, with elements that later versions may add.
        let shown = match is_text {
            true if body.contains("<EnumerationResults") => names_in(&body),
            true => body.clone(),
            false => runs(&answer.body),
        };
        let _ = writeln!(text, "  {shown}");
        body
    };
    show("GET", "/?comp=properties&restype=service");
    show("GET", "/?comp=list&include=metadata");
    for container in ["/kept", "/leased"] {
        show("HEAD", &format!("{container}?restype=container"));
        show("GET", &format!("{container}?comp=acl&restype=container"));
    }
    let all =
        "/kept?comp=list&include=copy,metadata,snapshots,tags,uncommittedblobs&restype=container";
    let list = show("GET", all);
    let snapshots = list.split("<Snapshot>").skip(1).filter_map(|rest| rest.split('<').next());
    let snapshots: Vec<String> = snapshots.map(|own| own.replace(':', "%3A")).collect();
    assert_eq!(snapshots.len(), 2);
    let of_pages = snapshots.iter().map(|own| format!("{PAGES}?snapshot={own}"));
    let plain = ["again.vhd", "blocks.bak", "copy.bak", "log.txt", "pages.vhd", "whole.bak"];
    for path in plain.map(|name| format!("/kept/{name}")).into_iter().chain(of_pages) {
        show("HEAD", &path);
        show("GET", &path);
    }
    show("GET", &format!("{PAGES}?comp=tags"));
    show("GET", "/kept/blocks.bak?blocklisttype=all&comp=blocklist");
    show("GET", &format!("{PAGES}?comp=pagelist"));
    for snapshot in &snapshots {
        show("GET", &format!("{PAGES}?comp=pagelist&snapshot={snapshot}"));
        show("GET", &format!("{PAGES}?comp=pagelist&prevsnapshot={snapshot}"));
    }
    text
}

#[test]
fn a_folder_is_read_as_it_was_written() {
    needs!("tar");
    let rig = Rig::new(Place::new(), LAYOUT, &["--data", "data"]);
    fill(&rig.client);
    let text = seen(&rig.client);
    let rig = rig.again(&["--data", "data"]);
    assert_eq!(seen(&rig.client), text);
    let Rig { place, server, .. } = rig;
    server.stop();
    if let Some(folder) = std::env::var_os("WEIR_TEST_FIXTURES") {
        let named = |end: &str| {
            Path::new(&folder).join(format!("blobs-{}.{end}", env!("CARGO_PKG_VERSION")))
        };
        let mut file = fs::File::create_new(named("txt")).expect("a new file");
        file.write_all(text.as_bytes()).expect("a file");
        let archive = named("tar.gz").display().to_string();
        let alike = ["--sort=name", "--owner=0", "--group=0", "--sparse"];
        tar(place.dir(), &[&alike[..], &["-czf", &archive, "data"]].concat());
    }
}

#[test]
fn blobs_of_an_earlier_release_are_as_they_were() {
    needs!("tar");
    let archives =
        fs::read_dir(fixtures()).expect("a folder").map(|own| own.expect("an entry").path());
    let is_one = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("blobs-") && name.ends_with(".tar.gz")
    };
    let mut count = 0;
    for archive in archives.filter(is_one) {
        let archive = archive.display().to_string();
        let place = Place::without_a_disk();
        tar(place.dir(), &["-xzf", &archive]);
        let text = fs::read_to_string(archive.replace(".tar.gz", ".txt")).expect("text");
        // The second start reads what the first one wrote.
        let rig = Rig::new(place, LAYOUT, &["--data", "data"]);
        assert_eq!(seen(&rig.client), text, "{archive}");
        let rig = rig.again(&["--data", "data"]);
        assert_eq!(seen(&rig.client), text, "{archive} again");
        changes(rig);
        count += 1;
    }
    assert!(count > 0, "there is no fixture");
}

/// Leases protect, and blobs take changes, as if they were new.
fn changes(rig: Rig) {
    let client = &rig.client;
    let refused = client.try_put(PAGES, 0, &[7; 512]).expect("an answer");
    assert_eq!((refused.status, refused.code()), (412, "LeaseIdMissing"));
    let refused = client.ask("DELETE", "/leased?restype=container", &[], &[]);
    assert_eq!((refused.status, refused.code()), (412, "LeaseIdMissing"));
    let release = [("x-ms-lease-action", "release"), ("x-ms-lease-id", LEASE)];
    client.must("PUT", &format!("{PAGES}?comp=lease"), &release, &[]);
    client.put(PAGES, 0, &[7; 512]);
    client.must("PUT", "/kept/log.txt?comp=appendblock", &[], b" third");
    assert_eq!(client.must("GET", "/kept/log.txt", &[], &[]).body, b"first second third");
    let mut export = rig.place.open("kept.pages.vhd");
    let mut found = [0; 2048];
    export.read(0, &mut found).expect("a read");
    assert_eq!(runs(&found), " 512x07 512x01 512x03 512x00");
    drop(export);
    rig.server.stop();
}
