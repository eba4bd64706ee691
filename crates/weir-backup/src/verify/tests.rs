//! Whatever happens to the bytes of a small backup, it is found and named.

use super::*;
use crate::damage::FrameDamage;
use crate::format::frame::FRAME_HEADER;
use crate::format::{BackupId, Footer, FrameAddress, FrameFault, Identity, Kind};
use crate::key::Secret;
use crate::memory::{self, MemorySource};

const SECRET: &[u8] = b"correct horse battery staple";

/// A small backup, with all that is needed to read it.
struct Small {
    identity: Identity,
    stripes: Vec<Vec<u8>>,
    keys: Option<Keys>,
}

impl Small {
    fn new(stripes: u8, compression: Option<i32>, encrypt: bool, id: u8) -> Self {
        let keys = encrypt.then(|| Keys::new(Secret::new(SECRET).unwrap()));
        let (encryption, key) = keys.as_ref().map(|keys| keys.fresh().unwrap()).unzip();
        let identity = Identity {
            id: BackupId::from_bytes([id; 16]),
            name: "s".to_owned(),
            kind: Kind::Full,
            base: None,
            stripes,
            created_unix_ms: 1,
            encryption,
        };
        let text = |n: u32| (0..n).flat_map(|n| (n * n).to_le_bytes()).collect::<Vec<u8>>();
        let sources = [
            MemorySource {
                name: "data".to_owned(),
                size: 1 << 20,
                ranges: vec![(4096, text(600)), (1 << 19, vec![0; 700])],
            },
            MemorySource { name: "log".to_owned(), size: 8192, ranges: vec![(0, text(100))] },
        ];
        let stripes = memory::write(&identity, &sources, 700, compression, key.as_ref()).unwrap();
        Self { identity, stripes, keys }
    }

    fn verify(&self, inputs: Vec<StripeInput>) -> Result<Verified, BackupError> {
        verify(inputs, None, self.keys.as_ref(), &Watch::default())
    }

    fn check(&self, stripes: Vec<Vec<u8>>) -> Verified {
        self.verify(memory::inputs(&self.identity, stripes)).unwrap()
    }

    /// The stripes, with one changed.
    fn with(&self, stripe: usize, change: impl FnOnce(&mut Vec<u8>)) -> Vec<Vec<u8>> {
        let mut stripes = self.stripes.clone();
        change(&mut stripes[stripe]);
        stripes
    }

    /// The frames of a stripe: where each starts and ends.
    fn frames(&self, stripe: usize) -> Vec<(FrameHeader, u64)> {
        let bytes = &self.stripes[stripe];
        let mut at = 512;
        let mut frames = Vec::new();
        while let Some(header) = FrameHeader::parse(&bytes[usize::try_from(at).unwrap()..]) {
            let start = at;
            at += header.frame_length();
            frames.push((header, start));
        }
        frames
    }
}

fn all_kinds() -> [Small; 4] {
    [
        Small::new(3, None, false, 1),
        Small::new(2, Some(1), false, 1),
        Small::new(2, Some(1), true, 1),
        Small::new(1, None, false, 1),
    ]
}

#[test]
fn a_sound_backup_has_no_damage() {
    for small in all_kinds() {
        let verified = small.check(small.stripes.clone());
        assert!(verified.is_sound() && verified.is_restorable() && verified.is_decrypted);
        let frames: usize = (0..small.stripes.len()).map(|n| small.frames(n).len()).sum();
        assert_eq!(verified.counts.frames, frames as u64);
        assert_eq!(verified.counts.raw_bytes, 2400 + 700 + 400);
        assert_eq!(verified.stripes.len(), small.stripes.len());
    }
}

/// Flips a bit of every byte in turn.
fn flip_every_byte(small: &Small) {
    for (stripe, bytes) in small.stripes.iter().enumerate() {
        let frames = small.frames(stripe);
        for at in 0..bytes.len() {
            let verified = small.check(small.with(stripe, |bytes| bytes[at] ^= 1 << (at % 8)));
            let damage = &verified.counts.damage;
            let said = || format!("stripe {stripe}, byte {at}: {damage:?}");
            assert!(!verified.is_sound(), "{}", said());
            assert!(
                damage.iter().all(|one| one.stripe() == u8::try_from(stripe).ok()),
                "{}",
                said()
            );
            let inside = frames.iter().find(|(header, start)| {
                (*start..*start + header.frame_length()).contains(&(at as u64))
            });
            // Only the footer is needed, and only where no other stripe has one.
            if verified.manifest.is_none() {
                assert!(small.stripes.len() == 1 && inside.is_none() && at >= 512, "{}", said());
                continue;
            }
            match inside {
                None => assert_eq!(verified.counts.lost_frames, 0, "{}", said()),
                Some((header, start)) => {
                    let within = at as u64 - start;
                    let payload =
                        FRAME_HEADER as u64..FRAME_HEADER as u64 + u64::from(header.stored_length);
                    let is_lost = payload.contains(&within);
                    assert_eq!(verified.counts.lost_frames, u64::from(is_lost), "{}", said());
                    let [Damage::Frame { address, length, .. }] = damage.as_slice() else {
                        panic!("{}", said())
                    };
                    assert_eq!((*address, *length), (header.address, header.raw_length));
                }
            }
        }
    }
}

#[test]
fn every_flipped_byte_of_a_plain_backup_is_named() {
    flip_every_byte(&all_kinds()[0]);
    flip_every_byte(&all_kinds()[3]);
}

#[test]
fn every_flipped_byte_of_a_compressed_backup_is_named() {
    flip_every_byte(&all_kinds()[1]);
}

#[test]
fn every_flipped_byte_of_an_encrypted_backup_is_named() {
    flip_every_byte(&all_kinds()[2]);
}

#[test]
fn a_missing_stripe_is_named() {
    for small in all_kinds() {
        for stripe in 0..small.identity.stripes {
            let mut inputs = memory::inputs(&small.identity, small.stripes.clone());
            inputs.remove(usize::from(stripe));
            if inputs.is_empty() {
                let error = small.verify(inputs).unwrap_err();
                assert!(
                    error.to_string().starts_with("no finished stripe of the backup"),
                    "{error}"
                );
                continue;
            }
            let verified = small.verify(inputs).unwrap();
            let stripes = small.identity.stripes;
            let count = small.frames(usize::from(stripe)).len() as u64;
            let expect =
                [Damage::Missing { stripe, stripes }, Damage::Lost { stripe, first: 0, count }];
            assert_eq!(verified.counts.damage, expect);
            assert!(!verified.is_restorable());
        }
    }
}

#[test]
fn a_stripe_cut_anywhere_is_named_and_keeps_what_is_before() {
    for small in all_kinds() {
        for stripe in 0..small.stripes.len() {
            let length = small.stripes[stripe].len();
            let frames = small.frames(stripe);
            for end in (0..length).step_by(512).chain([length - 1, length - 511, 700, 1]) {
                let stripes = small.with(stripe, |bytes| bytes.truncate(end));
                let inputs = memory::inputs(&small.identity, stripes);
                if small.stripes.len() == 1 && end < 512 {
                    small.verify(inputs).unwrap_err();
                    continue;
                }
                let verified = small.verify(inputs).unwrap();
                let damage = &verified.counts.damage;
                assert!(!verified.is_restorable(), "{end}: {damage:?}");
                let named = u8::try_from(stripe).ok();
                assert!(damage.iter().all(|one| one.stripe() == named), "{end}: {damage:?}");
                let is_named = damage.iter().any(|one| match one {
                    Damage::Truncated { length, .. } => *length == end as u64 && end >= 512,
                    Damage::Unknown { length, .. } => *length == end as u64 && end < 512,
                    _ => false,
                });
                assert!(is_named, "{end}: {damage:?}");
                if small.stripes.len() > 1 {
                    let whole = |(header, start): &&(FrameHeader, u64)| {
                        start + header.frame_length() <= end as u64
                    };
                    let whole = frames.iter().filter(whole).count();
                    let lost = (frames.len() - whole) as u64;
                    assert_eq!(verified.counts.lost_frames, lost, "{end}: {damage:?}");
                }
            }
        }
    }
}

#[test]
fn a_stripe_with_bytes_behind_it_is_named_and_whole() {
    let small = Small::new(2, None, false, 1);
    let verified = small.check(small.with(1, |bytes| bytes.extend([7; 1000])));
    assert!(verified.is_restorable());
    let [Damage::Trailing { stripe: 1, extra: 1000, .. }] = verified.counts.damage.as_slice()
    else {
        panic!("{:?}", verified.counts.damage)
    };
}

#[test]
fn swapped_stripes_are_named_and_whole() {
    let small = Small::new(3, None, false, 1);
    let mut stripes = small.stripes.clone();
    stripes.swap(0, 2);
    let verified = small.check(stripes);
    assert!(verified.is_restorable() && !verified.is_sound());
    let said: Vec<String> = verified.counts.damage.iter().map(ToString::to_string).collect();
    assert_eq!(
        said,
        [
            "swapped: s-01010101-0101-01of03.weirbak is named stripe 1 and holds stripe 3",
            "swapped: s-01010101-0101-03of03.weirbak is named stripe 3 and holds stripe 1",
        ]
    );
}

#[test]
fn a_stripe_of_another_backup_is_named() {
    for (small, other) in all_kinds().iter().zip(
        [
            Small::new(3, None, false, 2),
            Small::new(2, Some(1), false, 2),
            Small::new(2, Some(1), true, 2),
        ]
        .iter(),
    ) {
        for stripe in 0..small.identity.stripes {
            let place = usize::from(stripe);
            let stripes = small.with(place, |bytes| *bytes = other.stripes[place].clone());
            let inputs = memory::inputs(&small.identity, stripes);
            let id = Some(small.identity.id);
            let verified = verify(inputs, id, small.keys.as_ref(), &Watch::default()).unwrap();
            let damage = &verified.counts.damage;
            assert!(!verified.is_restorable());
            let stale = |one: &Damage| match one {
                Damage::Stale { named, id, .. } => {
                    (*named, *id) == (Some(stripe), other.identity.id)
                }
                _ => false,
            };
            assert!(damage.iter().any(stale), "{damage:?}");
            assert!(damage.contains(&Damage::Missing { stripe, stripes: small.identity.stripes }));
        }
    }
}

#[test]
fn the_tail_of_another_backup_is_no_end() {
    // As in a region of a raw volume that was used before.
    let (small, other) = (Small::new(2, None, false, 1), Small::new(2, None, false, 2));
    let verified = small.check(small.with(1, |bytes| {
        let end = bytes.len() - 512;
        bytes.truncate(end);
        bytes.extend_from_slice(&other.stripes[1][end..]);
    }));
    assert!(!verified.is_restorable());
    let damage = &verified.counts.damage;
    assert!(matches!(damage.as_slice(), [Damage::Truncated { stripe: 1, .. }]), "{damage:?}");
}

#[test]
fn a_stripe_that_is_there_twice_is_named_and_the_complete_one_used() {
    let small = Small::new(2, None, false, 1);
    for cut in [0, 512] {
        let mut inputs = memory::inputs(&small.identity, small.stripes.clone());
        let mut copy = small.stripes[1].clone();
        copy.truncate(copy.len() - cut);
        let input = StripeInput { name: "copy".to_owned(), named: None, bytes: Box::new(copy) };
        inputs.insert(0, input);
        let verified = small.verify(inputs).unwrap();
        let unused = if cut == 0 { small.identity.file_name(1) } else { "copy".to_owned() };
        let expect = [Damage::Duplicate { stripe: 1, name: unused }];
        assert_eq!(verified.counts.damage, expect);
        assert!(verified.is_restorable());
    }
}

#[test]
fn a_wrong_key_is_an_error_and_no_key_checks_the_stored_bytes() {
    let mut small = Small::new(2, Some(1), true, 1);
    small.keys = Some(Keys::new(Secret::new(b"another key that is long enough").unwrap()));
    let error = small.verify(memory::inputs(&small.identity, small.stripes.clone())).unwrap_err();
    assert!(error.is_input() && matches!(error, BackupError::WrongKey { .. }), "{error}");
    small.keys = None;
    let verified = small.check(small.stripes.clone());
    assert!(verified.is_sound() && !verified.is_decrypted);
    let start = usize::try_from(small.frames(0)[1].1).unwrap();
    let verified = small.check(small.with(0, |bytes| bytes[start + FRAME_HEADER + 3] ^= 8));
    assert_eq!(verified.counts.lost_frames, 1);
}

#[test]
fn a_frame_that_somebody_without_the_key_wrote_is_found() {
    let small = Small::new(2, None, true, 1);
    let plain = Small::new(2, None, false, 1);
    let forged = plain.frames(0).remove(0).0.frame_length();
    let range = 512..512 + usize::try_from(forged).unwrap();
    let verified = small.check(small.with(0, |bytes| {
        bytes[range.clone()].copy_from_slice(&plain.stripes[0][range]);
    }));
    let Damage::Frame { address, fault, .. } = verified.counts.damage[0] else {
        panic!("{:?}", verified.counts.damage)
    };
    assert_eq!((address.sequence, fault), (0, FrameDamage::Contents(FrameFault::Decryption)));
    assert!(!verified.is_restorable());
    // A footer too.
    let verified = small.check(small.with(1, |bytes| {
        let at = bytes.len() - 512;
        let mut block: [u8; 512] = bytes[at..].try_into().unwrap();
        block[120] ^= 1;
        let sum = blake3::hash(&block[..480]);
        block[480..].copy_from_slice(sum.as_bytes());
        Footer::parse(&block).unwrap();
        bytes[at..].copy_from_slice(&block);
    }));
    let damage = &verified.counts.damage;
    assert!(matches!(damage.as_slice(), [Damage::Signature { stripe: 1, .. }]), "{damage:?}");
}

#[test]
fn a_hole_in_a_stripe_loses_the_frames_in_it() {
    let small = Small::new(1, None, false, 1);
    let frames = small.frames(0);
    assert!(frames.len() >= 5);
    let (first, last) = (frames[1].1, frames[3].1);
    // The end of the third frame is left: it says which one that was.
    for (end, expect) in [(last, 0..2), (last - 512, 0..1)] {
        let verified = small.check(small.with(0, |bytes| {
            let range = usize::try_from(first).unwrap()..usize::try_from(end).unwrap();
            bytes[range].fill(0xaa);
        }));
        let lost = Damage::Lost { stripe: 0, first: 1 + expect.start, count: expect.end };
        assert_eq!(verified.counts.damage[0], lost);
        assert_eq!(verified.counts.lost_frames, 2);
        if expect.end == 1 {
            let Damage::Frame { address, fault: FrameDamage::Contents(_), .. } =
                verified.counts.damage[1]
            else {
                panic!("{:?}", verified.counts.damage)
            };
            assert_eq!(address, frames[2].0.address);
        }
    }
}

#[test]
fn another_version_is_an_error_that_says_so() {
    let small = Small::new(2, None, false, 1);
    let stripes = small.with(1, |bytes| {
        bytes[8] = 9;
        let sum = *blake3::hash(&bytes[..480]).as_bytes();
        bytes[480..512].copy_from_slice(&sum);
    });
    let error = small.verify(memory::inputs(&small.identity, stripes)).unwrap_err();
    assert!(error.is_input() && error.to_string().contains("version 9"), "{error}");
}

#[test]
fn a_verification_can_be_ended() {
    let small = Small::new(2, None, false, 1);
    let watch = Watch::default();
    watch.stop();
    let inputs = memory::inputs(&small.identity, small.stripes.clone());
    let error = verify(inputs, None, None, &watch).unwrap_err();
    assert!(matches!(error, BackupError::Interrupted));
}

#[test]
fn addresses_outside_of_a_source_are_damage() {
    let mut small = Small::new(1, None, false, 1);
    let identity = small.identity.clone();
    let sources = [MemorySource { name: "a".into(), size: 100, ranges: vec![(90, vec![1; 20])] }];
    small.stripes = memory::write(&identity, &sources, 512, None, None).unwrap();
    let verified = small.check(small.stripes.clone());
    let address = FrameAddress { stripe: 0, sequence: 0, source: 0, offset: 90 };
    let fault = FrameDamage::Outside;
    assert_eq!(verified.counts.damage, [Damage::Frame { address, length: 20, fault }]);
}

/// An attacker without the key replaces a frame by zeros, and hides it behind damage that
/// loses nothing: of the same frame, or of another one.
#[test]
fn a_forged_frame_of_zeros_is_found_beside_harmless_damage() {
    for small in [Small::new(1, None, false, 1), Small::new(2, Some(1), false, 1)] {
        let frames = small.frames(0);
        for (forged, at) in frames.iter().filter(|(own, _)| !own.is_zeros) {
            let (start, end) = (*at, at + forged.frame_length());
            let zeros = FrameHeader {
                is_zeros: true,
                is_compressed: false,
                is_encrypted: false,
                stored_length: 0,
                ..forged.clone()
            };
            let (own, length) = (zeros.encode(), usize::try_from(zeros.frame_length()).unwrap());
            let place = |at: u64| usize::try_from(at).unwrap();
            let forge = |bytes: &mut Vec<u8>, from: usize| {
                bytes[from..from + FRAME_HEADER].copy_from_slice(&own);
                bytes[from + FRAME_HEADER..from + length].fill(0);
                bytes[from + length - FRAME_HEADER..from + length].copy_from_slice(&own);
            };
            // Where the frame began; and at its end, where the copy of a damaged header would name it.
            for (from, is_at_end) in [(place(start), false), (place(end) - length, true)] {
                for (other, other_at) in &frames {
                    let verified = small.check(small.with(0, |bytes| {
                        forge(bytes, from);
                        if is_at_end {
                            bytes[place(start) + 9] ^= 1;
                            bytes[from + 9] ^= 1;
                        }
                        if other_at != at {
                            // The copy of the header at the end of another frame.
                            bytes[place(other_at + other.frame_length()) - 9] ^= 1;
                        }
                    }));
                    let damage = &verified.counts.damage;
                    let is_told = damage
                        .iter()
                        .any(|own| matches!(own, Damage::Digest { .. } | Damage::Lost { .. }));
                    assert!(is_told && !verified.is_restorable(), "{start}: {damage:?}");
                }
            }
        }
    }
}
