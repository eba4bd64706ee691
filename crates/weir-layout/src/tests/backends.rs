//! Backends of volumes.

use super::{layout, parse};
use crate::Backend;
use weir_core::VolumeId;
use weir_units::{Bytes, Span};

fn with(backend: &str) -> String {
    format!("[[volume]]\nname = \"a\"\nunlimited = true\nbackend = {backend}\n")
}

#[test]
fn a_backend_is_a_uri_or_a_table() {
    let backend = |text: &str| layout(&with(text)).hosts[0].volumes[0].backend.clone();
    let Some(Backend::Nbd { uri, connections, timeout }) = backend("\"nbd://h:7/x\"") else {
        panic!("it is an NBD server");
    };
    assert_eq!((uri.to_string().as_str(), connections), ("nbd://h:7/x", 4));
    assert_eq!(timeout, Span::from_secs(30));
    let table = "{ nbd = \"nbd+unix:///x?socket=/s\", connections = 1, timeout = \"2 s\" }";
    let Some(Backend::Nbd { connections, timeout, .. }) = backend(table) else {
        panic!("it is an NBD server");
    };
    assert_eq!((connections, timeout), (1, Span::from_secs(2)));
    let file = backend("{ file = \"/dev/sdx\" }").map(|own| own.to_string());
    assert_eq!(file.as_deref(), Some("/dev/sdx"));
}

#[test]
fn a_wrong_backend_is_refused_with_its_place() {
    let check = |backend: &str, expect: &str| {
        let said = parse(&with(backend)).unwrap_err();
        assert!(said.starts_with("layout.toml:4:") && said.contains(expect), "{said}");
    };
    check("\"disk0\"", "is not an NBD URI");
    check("\"nbds://h/x\"", "names no certificates");
    check("{ nbd = \"nbd://h/x\", file = \"/x\" }", "nbd and file exclude each other");
    check("{}", "give nbd = \"nbd://HOST/EXPORT\" or file = \"/dev/..\"");
    check("{ nbd = \"nbd://h/x\", connections = 0 }", "connections = 0 is not from 1 to 16");
    check("{ nbd = \"nbd://h/x\", timeout = \"1ms\" }", "timeout = 1 ms is too short");
    check("{ file = \"data\" }", "is not an absolute path");
    check("{ file = \"/x\", connections = 2 }", "are for an NBD server");
    check("{ nbd = \"nbd://h/x\", conections = 2 }", "unknown");
    check("7", "a URI like \"nbd://host/export\"");
}

#[test]
fn no_two_volumes_share_a_backend() {
    let other = with("\"nbd://h/x\"").replace("\"a\"", "\"b\"");
    let said = parse(&format!("{}{other}", with("\"nbd://h/x\""))).unwrap_err();
    assert!(said.contains("nbd://h/x is already the backend of \"a\""), "{said}");
    let stripe = "[[stripe]]\nname = \"s\"\nunit = \"64 KiB\"\nvolumes = { count = 2, unlimited = true, \
                  backend = \"nbd://h/x\" }\n";
    let said = parse(stripe).unwrap_err();
    assert!(said.contains("all its volumes would have the same backend"), "{said}");
}

#[test]
fn the_size_is_the_stated_one_or_that_of_the_backend() {
    let over = |keys: &str, size: Bytes| {
        let text = format!("[[volume]]\nname = \"a\"\nbackend = \"nbd://h/x\"\n{keys}\n");
        let text = format!("edition = \"azure-now\"\n{text}");
        let layout = layout(&text);
        let catalog = weir_catalog::Catalog::builtin();
        let edition = catalog.edition("azure-now").unwrap();
        let over = layout.hosts[0].over_backend(VolumeId(0), size, Some(edition));
        over.map(|volume| volume.spec.size).map_err(|kind| kind.to_string())
    };
    assert_eq!(over("unlimited = true", Bytes::new(1_000_000)), Ok(Bytes::new(999_936)));
    assert_eq!(over("tier = \"P30\"", Bytes::gib(2000)), Ok(Bytes::gib(1024)));
    assert_eq!(over("tier = \"P30\"", Bytes::gib(10)), Ok(Bytes::gib(10)));
    assert_eq!(over("size = \"8 GiB\"", Bytes::gib(10)), Ok(Bytes::gib(8)));
    let said = over("size = \"16 GiB\"", Bytes::gib(10)).unwrap_err();
    assert!(said.contains("has 10 GiB, which is less than its size of 16 GiB"), "{said}");
}

#[test]
fn a_volume_with_a_backend_is_not_resized() {
    let host = layout(&with("\"nbd://h/x\"")).hosts.remove(0);
    let said = host.resized(VolumeId(0), Bytes::gib(2), None).unwrap_err().to_string();
    assert!(said.contains("which Weir does not resize"), "{said}");
}

#[test]
fn a_backend_is_written_as_it_was_read() {
    let text = with("{ nbd = \"nbd://h/x\", connections = 2, timeout = \"5s\" }");
    let keys: crate::file::LayoutFile = toml::from_str(&text).unwrap();
    let mut written = crate::LayoutText::new("azure-now");
    written.volume(&keys.volume[0]);
    let again: crate::file::LayoutFile = toml::from_str(&written.finish()).unwrap();
    assert_eq!(again.volume, keys.volume);
}
