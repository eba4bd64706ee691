//! A differential is built on a full backup with which it can be restored, or on none.

use super::*;
use crate::format::Identity;
use crate::key::Secret;
use crate::place::{Folder, Place};
use crate::testing::{identity, source, store};

fn library(folder: &std::path::Path) -> Library {
    let place: Box<dyn Place> = Box::new(Folder::new(folder).unwrap());
    Library::open(vec![place]).unwrap()
}

fn keys(secret: &[u8]) -> Keys {
    Keys::new(Secret::new(secret).unwrap())
}

/// Finds the base of a differential on backup 1 of the source `data`.
fn found(folder: &std::path::Path, keys: Option<&Keys>) -> Result<Base, String> {
    let sources = ["data".to_owned()];
    let wanted = Wanted { base: BackupId::from_bytes([1; 16]), sources: &sources, keys };
    find(&library(folder), &wanted).map_err(|error| {
        assert!(error.is_input(), "{error}");
        error.to_string()
    })
}

#[track_caller]
fn check(full: &Identity, spoil: impl FnOnce(&std::path::Path), expect: &str) {
    let folder = tempfile::tempdir().unwrap();
    store(folder.path(), full, &[source("data", 20_000, 7)], None);
    spoil(folder.path());
    let error = found(folder.path(), None).unwrap_err();
    assert!(error.contains(expect), "{error}");
}

#[test]
fn a_full_backup_that_is_there_is_found() {
    let folder = tempfile::tempdir().unwrap();
    store(folder.path(), &identity(1, 2, None), &[source("data", 20_000, 7)], None);
    let base = found(folder.path(), None).unwrap();
    let expect = Base { id: BackupId::from_bytes([1; 16]), name: "s".to_owned(), taken_unix_ms: 1 };
    assert_eq!(base, expect);
}

#[test]
fn a_full_backup_that_cannot_serve_is_refused() {
    let full = identity(1, 2, None);
    let file = |stripe| full.file_name(stripe);
    check(&identity(2, 2, None), |_| {}, "from which the changes are counted, is not in ");
    check(&full, |at| std::fs::remove_file(at.join(file(1))).unwrap(), "it is not whole in ");
    let rename = |at: &std::path::Path| {
        std::fs::rename(at.join(file(0)), at.join(format!("{}.tmp", file(0)))).unwrap();
    };
    check(&full, rename, "it is not whole in ");
    let aside = Identity { kind: Kind::CopyOnly, ..identity(1, 1, None) };
    check(&aside, |_| {}, "it is a copy-only backup");
    let folder = tempfile::tempdir().unwrap();
    store(folder.path(), &full, &[source("log", 20_000, 7)], None);
    let error = found(folder.path(), None).unwrap_err();
    assert!(error.contains("it does not have data"), "{error}");
}

#[test]
fn a_full_backup_with_another_key_is_refused() {
    let (own, other) = (keys(b"a secret that is long enough"), keys(b"another one, long enough"));
    let folder = tempfile::tempdir().unwrap();
    let (encryption, key) = own.fresh().unwrap();
    let full = Identity { encryption: Some(encryption), ..identity(1, 1, None) };
    store(folder.path(), &full, &[source("data", 20_000, 7)], Some(&key));
    assert!(found(folder.path(), Some(&own)).is_ok());
    let error = found(folder.path(), Some(&other)).unwrap_err();
    assert!(error.contains("it is encrypted with another key"), "{error}");
    let error = found(folder.path(), None).unwrap_err();
    assert!(error.contains("it is encrypted; give --encrypt and its key"), "{error}");
    let plain = tempfile::tempdir().unwrap();
    store(plain.path(), &identity(1, 1, None), &[source("data", 20_000, 7)], None);
    let error = found(plain.path(), Some(&own)).unwrap_err();
    assert!(error.contains("it is not encrypted"), "{error}");
}
