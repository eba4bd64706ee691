//! The files of a volume from arbitrary bytes, for fuzzers and tests.
//!
//! Invariants for any bytes: nothing panics, a refusal has a message, and what is read has the same contents
//! when it is written and read again. In half of the inputs the checksums are corrected, so that what they
//! protect is reached.

use crate::meta::{self, LayerMeta, Layers, Meta};
use crate::{freeze, paged};
use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};
use std::path::PathBuf;
use weir_units::Bytes;

/// A bit of the first byte: checksums are corrected.
const REPAIR: u8 = 0x80;

/// Reads `data` as a file of a volume. The first byte selects its kind.
///
/// # Panics
///
/// If an invariant is violated.
pub fn volume_bytes(data: &[u8]) {
    let Some((first, rest)) = data.split_first() else { return };
    let is_repaired = first & REPAIR != 0;
    match first % 3 {
        0 => meta_bytes(rest, is_repaired),
        1 => freeze::fuzz::record_bytes(rest, is_repaired),
        _ => {
            let Some((len, files)) = rest.split_first_chunk::<2>() else { return };
            let len = usize::from(u16::from_le_bytes(*len)).min(files.len());
            let (map, log) = files.split_at(len);
            paged::fuzz::map_bytes(map, log, is_repaired);
        }
    }
}

/// The envelope of metadata, without its checksum.
#[derive(Deserialize)]
struct Unsealed {
    format: String,
    volume: Box<RawValue>,
}

fn meta_bytes(data: &[u8], is_repaired: bool) {
    let repaired = is_repaired
        .then(|| serde_json::from_slice(data).ok())
        .flatten()
        .and_then(|own: Unsealed| meta::sealed(&own.format, own.volume).ok());
    let content = repaired.as_ref().map_or(data, |text| text.as_bytes());
    let path = PathBuf::from("meta.json");
    let read = match Meta::parse(path.clone(), content) {
        Ok(read) => read,
        Err(error) => return assert!(!error.to_string().trim().is_empty(), "{error:?}"),
    };
    let written = Meta::parse(path, &encoded(&read));
    assert!(written.is_ok_and(|again| again == read), "{read:?} does not come back");
}

fn encoded(meta: &Meta) -> Vec<u8> {
    let text = to_raw_value(meta).and_then(|volume| meta::sealed(meta::FORMAT, volume));
    text.expect("plain structures of texts and numbers").into_bytes()
}

/// Returns metadata of a plain volume.
pub(crate) fn example() -> Meta {
    Meta {
        size: Bytes::gib(1024),
        declared_size: Bytes::gib(512),
        segment: Bytes::gib(1024),
        segments: [0].into(),
        attributes: [("tier".to_owned(), "P30".to_owned())].into(),
        layers: None,
        checksums: false,
    }
}

/// Returns an input for each kind of file, with its name.
#[must_use]
pub fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    let plain = example();
    let layer =
        |number, snapshot| LayerMeta { number, size: plain.size, snapshot, segments: [0].into() };
    let stack = vec![layer(0, Some(2)), layer(4, None)];
    let layered = Meta { layers: Some(Layers { next_snapshot: 3, stack }), ..plain.clone() };
    let [map, log] = paged::fuzz::seed();
    let len = u16::try_from(map.len()).expect("a small map").to_le_bytes();
    // 128, 129 and 130 have the remainders 2, 0 and 1.
    let with = |first: u8, parts: &[&[u8]]| [&[first][..], &parts.concat()].concat();
    vec![
        ("layers", with(REPAIR | 1, &[&encoded(&layered)])),
        ("map", with(REPAIR, &[&len, &map, &log])),
        ("map-as-is", with(2, &[&len, &map, &log])),
        ("plain", with(REPAIR | 1, &[&encoded(&plain)])),
        ("plain-as-is", with(0, &[&encoded(&plain)])),
        ("record", with(REPAIR | 2, &[&freeze::fuzz::seed()])),
    ]
}
