//! Round trips of every part of the format, and the place of every field.

use super::*;
use crate::key::Key;
use std::sync::Arc;

fn identity(encryption: Option<Encryption>) -> Identity {
    Identity {
        id: BackupId::from_bytes(*b"0123456789abcdef"),
        name: "sales".to_owned(),
        kind: Kind::Full,
        base: None,
        stripes: 2,
        created_unix_ms: 1_700_000_000_000,
        encryption,
    }
}

fn key() -> (Encryption, Arc<Key>) {
    let key = Arc::new(Key::from_master(&[7; 32]));
    let encryption = Encryption { salt: [1; 16], nonce_prefix: [2; 15], check: *key.check() };
    (encryption, key)
}

/// Encodes and decodes one frame; returns the payload's length and whether it is compressed.
#[track_caller]
fn check(raw: &[u8], compression: Option<i32>, encrypt: bool, expect: (u32, bool)) {
    let (encryption, key) = key();
    let key = encrypt.then_some(&key);
    let identity = identity(encrypt.then_some(encryption));
    let mut encoder = FrameEncoder::new(&identity, compression, key).unwrap();
    let address = FrameAddress { stripe: 1, sequence: 3, source: 9, offset: 1 << 40 };
    // Something else is in the buffer before it.
    let mut out = vec![0xee; 512];
    let encoded = encoder.encode(address, raw, &mut out).unwrap();
    let frame = &mut out[512..];
    assert_eq!((frame.len() as u64, frame.len() % 512), (encoded.length, 0));
    let header = FrameHeader::parse(frame).unwrap();
    assert_eq!(header, encoded.header);
    assert_eq!(FrameHeader::parse(&frame[frame.len() - 160..]).unwrap(), header);
    assert_eq!((header.address, header.raw_length), (address, raw.len() as u64));
    assert_eq!((header.stored_length, header.is_compressed), expect);
    assert_eq!(header.is_encrypted, encrypt && !header.is_zeros);
    if !header.is_zeros {
        let end = 160 + header.stored_length as usize;
        let mut decoder = FrameDecoder::new(&identity, key).unwrap();
        assert_eq!(decoder.decode(&header, &mut frame[160..end]).unwrap(), Some(raw));
    }
}

#[test]
fn frames_come_back_as_they_were() {
    let noise: Vec<u8> = (0..5000_u32)
        .flat_map(|n| blake3::hash(&n.to_le_bytes()).as_bytes()[..1].to_vec())
        .collect();
    check(&noise, None, false, (5000, false));
    // Compression that saves nothing is left out.
    check(&noise, Some(1), false, (5000, false));
    check(&noise, Some(1), true, (5016, false));
    check(&[7], None, false, (1, false));
    check(&[7; 4096], None, true, (4112, false));
    check(&[0; 100_000], Some(3), true, (0, false));
    let text = b"the quick brown fox ".repeat(1000);
    let compressed = u32::try_from(zstd::bulk::compress(&text, 1).unwrap().len()).unwrap();
    check(&text, Some(1), false, (compressed, true));
    check(&text, Some(1), true, (compressed + 16, true));
}

#[test]
fn a_frame_has_a_length_that_the_format_allows() {
    let mut encoder = FrameEncoder::new(&identity(None), None, None).unwrap();
    let address = FrameAddress { stripe: 0, sequence: 0, source: 0, offset: u64::MAX };
    let mut out = Vec::new();
    encoder.encode(address, &[], &mut out).unwrap_err();
    encoder.encode(address, &vec![1; MAX_FRAME as usize + 1], &mut out).unwrap_err();
    encoder.encode_zeros(address, 1, &mut out).unwrap_err();
    assert!(out.is_empty());
    FrameEncoder::new(&identity(Some(key().0)), None, None).unwrap_err();
}

#[test]
fn headers_come_back_as_they_were() {
    for encryption in [None, Some(key().0)] {
        let identity = Identity {
            kind: Kind::Differential,
            base: Some(BackupId::from_bytes([3; 16])),
            ..identity(encryption)
        };
        identity.check().unwrap();
        let read = StripeHeader::parse("a", &identity.header(1)).unwrap();
        assert_eq!((read.identity, read.stripe), (identity, 1));
    }
}

#[test]
fn headers_that_cannot_be_read_say_why() {
    #[track_caller]
    fn check(change: impl Fn(&mut [u8; 512]), expect: &str) {
        let mut block = identity(None).header(0);
        change(&mut block);
        assert_eq!(StripeHeader::parse("a", &block).unwrap_err().to_string(), expect);
    }
    check(|block| *block = [0; 512], "a is no stripe of a backup: it does not start with WEIRBAK1");
    check(|block| block[3] ^= 1, "a: the stripe's header is damaged");
    check(|block| block[8] ^= 2, "a: the stripe's header is damaged");
    check(|block| block[500] ^= 2, "a: the stripe's header is damaged");
    let other = |block: &mut [u8; 512]| {
        block[8] = 2;
        let sum = blake3::hash(&block[..480]);
        block[480..].copy_from_slice(sum.as_bytes());
    };
    check(
        other,
        "a has version 2 of the backup format, this weir reads version 1; use the weir that \
         wrote it, or a newer one",
    );
}

#[test]
fn a_name_is_one_that_a_file_can_have() {
    #[track_caller]
    fn check(name: &str, expect: bool) {
        let identity = Identity { name: name.to_owned(), ..identity(None) };
        assert_eq!(identity.check().is_ok(), expect, "{name:?}");
    }
    check("sales 2026", true);
    check("", false);
    check("../x", false);
    check(".hidden", false);
    check("a\nb", false);
    check(&"x".repeat(129), false);
}

#[test]
fn the_footer_names_its_manifest() {
    let (encryption, key) = key();
    let identity = identity(Some(encryption));
    let mut manifest = Manifest::new(&identity, "weir 0.1.0".to_owned());
    manifest.stripes = vec![StripeDigest::default().summary(); 2];
    let end = closing(&manifest, &identity, 1, 512, Some(&key)).unwrap();
    let (text, footer) = end.split_at(end.len() - 512);
    let footer = Footer::parse(footer.try_into().unwrap()).unwrap();
    assert_eq!((footer.position, footer.stripe, footer.stripes), (512, 1, 2));
    assert_eq!(footer.stripe_length(), 512 + end.len() as u64);
    assert!(footer.is_signed(&key) && !footer.is_signed(&Key::from_master(&[8; 32])));
    let text = &text[..usize::try_from(footer.length).unwrap()];
    let read: Manifest = serde_json::from_slice(text).unwrap();
    assert_eq!(read.identity(), Some(identity));
    assert_eq!(read, manifest);
}

#[test]
fn ids_sort_by_time_and_read_as_they_are_written() {
    let early = BackupId::new(1_700_000_000_000).unwrap();
    let late = BackupId::new(1_700_000_000_001).unwrap();
    assert!(early < late);
    let text = early.to_string();
    assert_eq!(text.parse(), Ok(early));
    assert_eq!((text.len(), &text[14..15]), (36, "7"));
    assert!("123".parse::<BackupId>().is_err() && "g".repeat(32).parse::<BackupId>().is_err());
}
