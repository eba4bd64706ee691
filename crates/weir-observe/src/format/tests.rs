//! Whole files: written data comes back, and damage is detected.

use super::*;
use crate::columns::{Column, Note};
use crate::header::*;
use crate::observation::Observation;
use proptest::prelude::*;
use std::collections::BTreeMap;
use weir_units::{Instant, Span};

fn header(series: usize) -> Header {
    let kind = SourceKind::VirtualRun;
    let source = Source { kind, by: "test 1".to_owned(), about: BTreeMap::new() };
    let mut header = Header::new(source);
    header.interval_ns = Some(1_000_000_000);
    let attributes = Attributes::from([("iops_limit".to_owned(), 500.into())]);
    let (kind, name) = (EntityKind::File, "f".to_owned());
    let entity = header.contents.add_entity(Entity { kind, name, parent: None, attributes });
    for n in 0..series {
        header.contents.add_series(series_of(entity, &format!("m{n}")));
    }
    header
}

fn series_of(entity: EntityId, metric: &str) -> Series {
    let (unit, counting) = (Unit::Count, Counting::Cumulative);
    Series { entity, metric: metric.to_owned(), unit, counting, scale: 0 }
}

fn at(second: u64) -> Instant {
    Instant::ZERO + Span::from_secs(second)
}

/// Returns a file with 3 series and this number of samples, a second apart.
fn file(samples: u64) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), &header(3)).expect("memory");
    for n in 0..samples {
        let value = (n * n).cast_signed();
        writer.sample(at(n), &[Some(value), None, Some(-value)]).expect("memory");
    }
    writer.finish(true).expect("memory")
}

#[test]
fn a_written_observation_is_read_unchanged() {
    let read = Observation::read(&file(3_000)[..]).expect("an observation");
    assert_eq!((read.times.len(), &read.ending), (3_000, &Ending::Complete));
    assert_eq!(read.header, header(3));
    let row = |n: usize| [0, 1, 2].map(|series| read.columns[series].get(n));
    assert_eq!(row(2_999), [Some(2_999 * 2_999), None, Some(-2_999 * 2_999)]);
    assert_eq!(read.write(Vec::new()).expect("memory"), file(3_000));
}

#[test]
fn series_and_notes_can_follow_samples() {
    let mut writer = Writer::new(Vec::new(), &header(1)).expect("memory");
    writer.sample(at(0), &[Some(1)]).expect("memory");
    let more = Contents { entities: Vec::new(), series: vec![series_of(EntityId(0), "late")] };
    writer.declare(&more).expect("it fits");
    writer.note(&Note { at_ns: 5, text: "restart".to_owned() }).expect("memory");
    writer.sample(at(1), &[Some(2), Some(7)]).expect("memory");
    let again = writer.declare(&more).map_err(|error| error.to_string());
    assert_eq!(
        again,
        Err("the series \"late\" of \"f\" is declared twice; declare it once".to_owned())
    );
    let bytes = writer.finish(false).expect("memory");
    let read = Observation::read(&bytes[..]).expect("an observation");
    assert_eq!(read.columns[1], [None, Some(7)].into_iter().collect::<Column>());
    assert_eq!(read.notes[0].text, "restart");
    assert_eq!(read.ending, Ending::Interrupted);
}

#[test]
fn an_unknown_frame_is_skipped() {
    let mut bytes = file(2);
    let end = bytes.windows(4).rposition(|four| four == tag::END).expect("an end");
    let mut frame = b"next\x02\0\0\0hi".to_vec();
    frame.extend(crc32fast::hash(&frame).to_le_bytes());
    bytes.splice(end..end, frame);
    let read = Observation::read(&bytes[..]).expect("an observation");
    assert_eq!((read.times.len(), read.ending), (2, Ending::Complete));
}

#[test]
fn invalid_contents_are_rejected_by_the_writer() {
    let mut writer = Writer::new(Vec::new(), &header(2)).expect("memory");
    let check = |result: Result<(), WriteError>, expect: &str| {
        assert_eq!(result.map_err(|error| error.to_string()), Err(expect.to_owned()));
    };
    check(
        writer.sample(at(1), &[None]),
        "a sample has 1 values and there are 2 series; give one for each",
    );
    writer.sample(at(1), &[None, None]).expect("a sample");
    check(
        writer.sample(at(1), &[None, None]),
        "a sample at 1000000000 ns follows one at 1000000000 ns; the times of samples must \
         increase",
    );
}

#[test]
fn input_other_than_an_observation_is_rejected() {
    let check = |bytes: &[u8], expect: &str| {
        let said = Observation::read(bytes).map(drop).map_err(|error| error.to_string());
        assert_eq!(said, Err(expect.to_owned()));
    };
    let nothing = "this is not an observation: it does not begin with \"weirobs\"; weir sim --observe \
                   FILE writes one";
    check(b"", nothing);
    check(b"num_of_reads,num_of_writes\n", nothing);
    check(b"weirobs2....", "this is an observation of version 2, and this weir reads version 1");
    let of_header = |reason: &str| {
        format!(
            "the header of the observation is damaged: {reason}; nothing can be read without it"
        )
    };
    let whole = file(1);
    check(&whole[..40], &of_header("the file ends in it"));
    let mut flipped = whole.clone();
    flipped[30] ^= 1;
    check(&flipped, &of_header("a checksum does not fit"));
}

#[test]
fn a_truncated_file_is_read_up_to_its_last_complete_frame() {
    let whole = file(10_000);
    let data: Vec<usize> =
        (0..whole.len() - 4).filter(|at| whole[*at..*at + 4] == tag::DATA).collect();
    assert_eq!(data.len(), 3);
    let check = |length: usize, samples: usize, left_over: u64, says: &str| {
        let read = Observation::read(&whole[..length]).expect("an observation");
        assert_eq!((read.times.len(), &read.ending), (samples, &Ending::Cut { left_over }));
        assert_eq!(read.ending.to_string(), says);
    };
    let killed = "no end mark: its writer was killed, or is still writing";
    check(data[0], 0, 0, killed);
    check(data[1], 4_096, 0, killed);
    check(
        data[2] + 9,
        8_192,
        9,
        &format!("{killed}; 9 bytes at the end are an incomplete chunk and are left out"),
    );
}

/// Returns the places of chunks in a file.
fn chunks(bytes: &[u8]) -> Vec<usize> {
    let is_chunk = |at: &usize| bytes[*at..*at + 4] == tag::DATA;
    (0..bytes.len() - 4).filter(is_chunk).collect()
}

#[test]
fn a_flipped_byte_loses_its_block_and_no_more() {
    let whole = file(10_000);
    let data = chunks(&whole);
    assert_eq!(data.len(), 3);
    // Tag, each byte of the length, payload and checksum.
    for at in [0, 3, 4, 5, 6, 7, 8, 20, data[2] - data[1] - 1] {
        for bits in [1, 0x40, 0x80] {
            let mut bytes = whole.clone();
            bytes[data[1] + at] ^= bits;
            let read = Observation::read(&bytes[..]).expect("an observation");
            let gaps = Ending::Gaps { blocks: 1, at: data[1] as u64, samples: Some(4_096) };
            assert_eq!(read.ending, gaps, "byte {at} ^ {bits}");
            let kept: Vec<Instant> = (0..4_096).chain(8_192..10_000).map(self::at).collect();
            assert_eq!(read.times, kept);
        }
    }
    let ending = Ending::Gaps { blocks: 1, at: 99, samples: Some(4_096) };
    assert_eq!(
        ending.to_string(),
        "1 damaged block, the first at byte 99, is left out with 4096 samples"
    );
}

#[test]
fn damage_in_the_last_block_of_a_file_that_was_cut_is_said() {
    let whole = file(10_000);
    let data = chunks(&whole);
    let mut bytes = whole[..data[2]].to_vec();
    bytes[data[1] + 20] ^= 0x40;
    let read = Observation::read(&bytes[..]).expect("an observation");
    assert_eq!(read.ending, Ending::Gaps { blocks: 1, at: data[1] as u64, samples: None });
    assert_eq!(read.times.len(), 4_096);
}

#[test]
fn damaged_declarations_leave_out_the_rest() {
    let mut writer = Writer::new(Vec::new(), &header(1)).expect("memory");
    let more = Contents { entities: Vec::new(), series: vec![series_of(EntityId(0), "late")] };
    writer.declare(&more).expect("it fits");
    let mut bytes = writer.finish(true).expect("memory");
    let more = bytes.windows(4).position(|four| four == tag::MORE).expect("declarations");
    bytes[more + 12] ^= 1;
    let read = Observation::read(&bytes[..]).expect("an observation");
    let reason = "a checksum does not fit".to_owned();
    assert_eq!(read.ending, Ending::Damaged { at: more as u64, reason });
    assert_eq!(
        read.ending.to_string(),
        format!("damaged at byte {more}: a checksum does not fit; the rest is left out")
    );
}

proptest! {
    /// Whatever happens to the bytes, each sample of the result was written.
    #[test]
    fn damage_never_adds_values(
        flips in prop::collection::vec((any::<prop::sample::Index>(), 1..=255_u8), 0..4),
        cut in any::<prop::sample::Index>(),
        truncate: bool,
    ) {
        let whole = Observation::read(&file(2_100)[..]).expect("an observation");
        let mut bytes = file(2_100);
        for (at, bits) in &flips {
            let at = at.index(bytes.len());
            bytes[at] ^= bits;
        }
        if truncate {
            bytes.truncate(cut.index(bytes.len()));
        }
        if let Ok(read) = Observation::read(&bytes[..]) {
            let samples = read.times.len();
            let places: Vec<_> =
                read.times.iter().map(|at| whole.times.binary_search(at).ok()).collect();
            prop_assert!(places.iter().all(Option::is_some));
            for (column, full) in read.columns.iter().zip(&whole.columns) {
                let full: Vec<_> = full.iter().collect();
                let kept = places.iter().flatten().map(|at| full[*at]);
                prop_assert!(column.iter().eq(kept));
            }
            prop_assert!(samples == 2_100 || read.ending != Ending::Complete);
        }
    }

    #[test]
    fn any_observation_is_read_unchanged(
        rows in prop::collection::vec((1..5_000_u64, any::<[Option<i32>; 4]>()), 1..60),
        start: Option<i64>,
        complete: bool,
    ) {
        let mut header = header(4);
        header.start_unix_ns = start;
        let mut now = Instant::ZERO;
        let mut observation = Observation {
            header,
            times: Vec::new(),
            columns: vec![Column::default(); 4],
            notes: vec![Note { at_ns: 3, text: "Grüße".to_owned() }],
            ending: if complete { Ending::Complete } else { Ending::Interrupted },
        };
        for (passed, values) in rows {
            now += Span::from_nanos(passed);
            observation.times.push(now);
            for (column, value) in observation.columns.iter_mut().zip(values) {
                column.push(value.map(i64::from));
            }
        }
        let bytes = observation.write(Vec::new()).expect("memory");
        prop_assert_eq!(Observation::read(&bytes[..]).expect("an observation"), observation);
    }
}
