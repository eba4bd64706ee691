//! Observations as tables, and back.

#![cfg(feature = "parquet")]

use std::fs::File;
use std::path::{Path, PathBuf};
use weir_catalog::Catalog;
use weir_diagnose::{Question, diagnose};
use weir_fleet::FleetError;
use weir_fleet::example::Example;
use weir_fleet::table::facts::Fact;
use weir_fleet::table::schema::COLUMNS;
use weir_fleet::table::{Described, Table, Tables};
use weir_layout::Layout;
use weir_observe::joined::{Chunks, Joined};
use weir_observe::{Attribute, Chunk, Ending, Header, Note, Observation};
use weir_parquet::{Kind, Values, Writer};

/// Writes the samples of an observation in files of `each` samples.
fn write(folder: &Path, own: &Observation, each: usize) -> Vec<PathBuf> {
    let described = Described::new(own.header.clone(), own.notes.clone(), &own.ending);
    let parts = own.times.chunks(each).enumerate().map(|(part, times)| {
        let path = folder.join(format!("{part}.parquet"));
        let mut table =
            Table::new(File::create(&path).expect("a file"), &described).expect("a table");
        for (sample, at) in times.iter().enumerate() {
            let sample = part * each + sample;
            let row: Vec<_> = own.columns.iter().map(|column| column.get(sample)).collect();
            table.sample(*at, &row).expect("a row");
        }
        table.finish().expect("a table");
        path
    });
    parts.collect()
}

fn read(files: Vec<PathBuf>) -> Result<(Described, Vec<Chunk>), FleetError> {
    let tables = Tables::open(files)?;
    let (mut samples, mut chunks) = (tables.samples(), Vec::new());
    while let Some(chunk) = samples.next_chunk()? {
        chunks.push(chunk);
    }
    Ok((tables.described().clone(), chunks))
}

fn check(own: &Observation, each: usize) {
    let folder = tempfile::tempdir().expect("a folder");
    let (described, chunks) = read(write(folder.path(), own, each)).expect("an observation");
    assert_eq!(described.header, own.header);
    assert_eq!(described.notes, own.notes);
    assert_eq!(described.ending, own.ending);
    let times: Vec<_> = chunks.iter().flat_map(|chunk| chunk.times.clone()).collect();
    assert_eq!(times, own.times);
    for (at, column) in own.columns.iter().enumerate() {
        let values = chunks.iter().flat_map(|chunk| chunk.columns[at].iter());
        assert!(values.eq(column.iter()), "series {at}");
    }
}

/// An observation with all that a table could lose.
fn full() -> Observation {
    let mut own = Example { samples: 50, ..Example::day(1) }.observation(0);
    own.header.source.about.insert("seed".to_owned(), "1".to_owned());
    own.header.interval_ns = Some(u64::MAX);
    let file = own.header.contents.entities.last_mut().expect("a file");
    file.attributes.insert("large".to_owned(), Attribute::Number(u64::MAX));
    file.attributes.insert("odd".to_owned(), Attribute::Number((1 << 60) + 1));
    file.attributes.insert("empty".to_owned(), Attribute::Text(String::new()));
    file.attributes.insert("digits".to_owned(), Attribute::Text("12".to_owned()));
    own.header.contents.series[1].scale = -3;
    own.header.contents.series[2].scale = 5;
    own.notes.push(Note { at_ns: u64::MAX, text: "a restart".to_owned() });
    own.columns[2] = (0..50).map(|n| (n % 3 > 0).then_some(i64::MAX - n)).collect();
    own.columns[3] = (0..50).map(|_| None).collect();
    // A sample without any value.
    for column in &mut own.columns {
        *column = column.iter().enumerate().map(|(at, v)| v.filter(|_| at != 7)).collect();
    }
    own
}

#[test]
fn an_observation_returns_from_its_tables() {
    check(&full(), 50);
    check(&full(), 7);
    check(&Example::day(1).observation(4), 1_440);
    let endings = [
        Ending::Interrupted,
        Ending::Cut { left_over: 7 },
        Ending::Gaps { blocks: 2, at: 1 << 40, samples: Some(100) },
        Ending::Gaps { blocks: 1, at: 5, samples: None },
        Ending::Damaged { at: 9, reason: "a wrong checksum".to_owned() },
    ];
    for ending in endings {
        check(&Observation { ending, ..full() }, 50);
    }
}

#[test]
fn a_table_has_the_same_diagnosis_as_its_observation() {
    let catalog = Catalog::builtin();
    let answer = |header: Header, chunks: Chunks| {
        let kept = header.layout.clone();
        let layout = kept.as_ref().map(|own| Layout::parse(&own.name, &own.text, &catalog));
        let layout = layout.map(|own| own.expect("a layout"));
        let edition = layout.as_ref().map(|_| catalog.edition("azure-now").expect("an edition"));
        let question =
            Question { layout: layout.as_ref(), edition, catalog: &catalog, mapping: &Vec::new() };
        let mut joined = Joined::new(vec![(header, chunks)]);
        let text = kept.as_ref().map(|own| &*own.text);
        diagnose(&question, &mut joined, text, |_, report| report).expect("a diagnosis").0
    };
    let endings = [Ending::Complete, Ending::Interrupted, Ending::Cut { left_over: 0 }];
    for (number, ending) in [0, 1, 4, 9].into_iter().zip(endings.into_iter().cycle()) {
        let own = Observation { ending, ..Example::day(1).observation(number) };
        let folder = tempfile::tempdir().expect("a folder");
        let tables = Tables::open(write(folder.path(), &own, 500)).expect("tables");
        let mut samples = tables.samples();
        let next = move || Ok(samples.next_chunk().expect("a chunk"));
        let from_tables = answer(tables.described().header.clone(), Box::new(next));
        let mut whole = Some(Chunk { times: own.times.clone(), columns: own.columns.clone() });
        let from_file = answer(own.header.clone(), Box::new(move || Ok(whole.take())));
        assert_eq!(from_tables, from_file, "server {number}");
        assert_eq!(from_file.is_throttled(), number % 3 == 0, "{}", from_file.summary);
    }
}

/// Writes a table whose columns are those of an observation, except for one.
fn foreign(path: &Path, change: impl Fn(&'static str, Kind) -> Option<(&'static str, Kind)>) {
    let columns: Vec<_> = COLUMNS.iter().filter_map(|(name, kind)| change(name, *kind)).collect();
    let file = File::create(path).expect("a file");
    let mut writer = Writer::new(file, &columns, &[]).expect("a table");
    let values = columns.iter().map(|(_, kind)| match kind {
        Kind::Whole | Kind::Time => Values::Whole(vec![None]),
        Kind::Number => Values::Number(vec![None]),
        Kind::Text => Values::Text(vec![None]),
    });
    writer.rows(&values.collect::<Vec<_>>()).expect("rows");
    writer.finish().expect("a table");
}

#[test]
fn foreign_columns_and_types_are_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("x.parquet");
    let told = || Tables::open(vec![path.clone()]).expect_err("an error").to_string();
    foreign(&path, |name, kind| (name != "raw").then_some((name, kind)));
    assert!(
        told().contains("the column \"raw\" is missing, expected with the type INT64"),
        "{}",
        told()
    );
    foreign(&path, |name, kind| Some((name, if name == "value" { Kind::Whole } else { kind })));
    assert!(
        told().contains("the column \"value\" has the type INT64, expected DOUBLE"),
        "{}",
        told()
    );
    foreign(&path, |name, kind| Some((name, if name == "kind" { Kind::Number } else { kind })));
    assert!(
        told().contains("the column \"kind\" has the type DOUBLE, expected STRING"),
        "{}",
        told()
    );
    foreign(&path, |name, kind| Some((name, if name == "raw" { Kind::Time } else { kind })));
    assert!(
        told().contains("\"raw\" has the type TIMESTAMP(MICROS, UTC), expected INT64"),
        "{}",
        told()
    );
    foreign(&path, |name, kind| Some((name, kind)));
    assert!(told().contains("expected about, entity"), "{}", told());
    std::fs::write(&path, "hello").expect("a file");
    assert!(told().contains("this is no Parquet file"), "{}", told());
    let mut own = Writer::new(
        File::create(&path).expect("a file"),
        &[COLUMNS.as_slice(), &[("server", Kind::Text)]].concat(),
        &[],
    )
    .expect("a table");
    own.rows(
        &[
            &vec![Values::Whole(vec![]); 2][..],
            &vec![Values::Text(vec![]); 7],
            &vec![Values::Whole(vec![]); 2],
            &vec![Values::Text(vec![]); 2],
            &[Values::Whole(vec![]), Values::Number(vec![]), Values::Text(vec![])],
        ]
        .concat(),
    )
    .expect("rows");
    own.finish().expect("a table");
    assert!(
        told().contains("the column \"server\" (STRING) is not part of an observation"),
        "{}",
        told()
    );
}

#[test]
fn tables_of_different_observations_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let other = tempfile::tempdir().expect("a folder");
    let small = Example { samples: 10, ..Example::day(1) };
    let mut files = write(folder.path(), &small.observation(0), 10);
    files.extend(write(other.path(), &small.observation(3), 10));
    let told = read(files.clone()).expect_err("an error").to_string();
    assert!(told.contains("they are of different observations"), "{told}");
    // The same observation twice goes back in time.
    let twice = read(vec![files[0].clone(), files[0].clone()]).expect_err("an error").to_string();
    assert!(twice.contains("sort the rows by offset_ns"), "{twice}");
}

/// Writes a table with a value of series 0 at the start, and the given row after it.
fn with_last_row(path: &Path, row: &str, series: Option<i64>, value: Option<f64>, offset: i64) {
    let small = Example { samples: 1, ..Example::day(1) };
    let own = small.observation(0);
    let described = Described::new(own.header.clone(), Vec::new(), &own.ending);
    let (mut texts, mut keys, mut kinds) = (Vec::new(), Vec::new(), Vec::new());
    let (mut names, mut parents, mut units) = (Vec::new(), Vec::new(), Vec::new());
    let (mut countings, mut entities, mut numbers) = (Vec::new(), Vec::new(), Vec::new());
    let (mut raws, mut values, mut rows, mut offsets) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let sample = |row: &str, series, value, offset| {
        (Fact { row: row.to_owned(), series, value, ..Fact::default() }, Some(offset))
    };
    let facts = described.facts().into_iter().map(|fact| (fact, None));
    let samples = [sample("value", Some(0), Some(1.0), 0), sample(row, series, value, offset)];
    for (fact, offset) in facts.chain(samples) {
        rows.push(Some(fact.row));
        kinds.push(fact.kind);
        names.push(fact.name);
        parents.push(fact.parent);
        units.push(fact.unit);
        countings.push(fact.counting);
        entities.push(fact.entity);
        numbers.push(fact.series);
        keys.push(fact.key);
        texts.push(fact.text);
        raws.push(fact.raw);
        values.push(fact.value);
        offsets.push(offset);
    }
    let none = vec![None; rows.len()];
    let columns = [
        Values::Whole(vec![None; rows.len()]),
        Values::Whole(offsets),
        Values::Text(kinds),
        Values::Text(names),
        Values::Text(parents),
        Values::Text(none),
        Values::Text(units),
        Values::Text(countings),
        Values::Text(rows),
        Values::Whole(entities),
        Values::Whole(numbers),
        Values::Text(keys),
        Values::Text(texts),
        Values::Whole(raws),
        Values::Number(values),
    ];
    let mut writer =
        Writer::new(File::create(path).expect("a file"), &COLUMNS, &[]).expect("a table");
    writer.rows(&columns).expect("rows");
    writer.finish().expect("a table");
}

#[test]
fn rows_that_are_no_values_are_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("x.parquet");
    let check = |row: &str, series, value, offset, expect: &str| {
        with_last_row(&path, row, series, value, offset);
        let told = read(vec![path.clone()]).expect_err("an error").to_string();
        assert!(told.contains(expect), "{told}");
    };
    let no_series = "a value with the offset_ns 5 has no series";
    check("value", None, Some(2.0), 5, no_series);
    check("value", None, None, 5, no_series);
    check("value", Some(0), Some(2.0), 0, "two rows have the offset_ns 0 and the series 0");
    check("value", Some(0), None, 0, "two rows have the offset_ns 0 and the series 0");
    check("sample", Some(0), None, 5, "a row of kind \"sample\" with the offset_ns 5");
    check("sample", None, Some(2.0), 5, "a row of kind \"sample\" with the offset_ns 5");
    check("note", Some(0), Some(2.0), 5, "is of kind \"note\"; expected value or sample");
    with_last_row(&path, "sample", None, None, 5);
    let (_, chunks) = read(vec![path.clone()]).expect("an observation");
    assert_eq!(chunks.iter().map(|chunk| chunk.times.len()).sum::<usize>(), 2);
}

/// Any byte may be wrong; no reader may panic. Wrong values are not always found, since Parquet has
/// no checksum.
#[test]
fn damaged_tables_do_not_panic() {
    let folder = tempfile::tempdir().expect("a folder");
    let small = Example { samples: 20, ..Example::day(1) };
    let files = write(folder.path(), &small.observation(0), 20);
    let bytes = std::fs::read(&files[0]).expect("bytes");
    let mut rng = weir_random::Rng::new(&[7]);
    let mut errors = 0;
    for _ in 0..400 {
        let mut own = bytes.clone();
        let at = rng.index(own.len());
        own[at] ^= 1 << rng.index(8);
        if rng.chance(20) {
            own.truncate(rng.index(bytes.len()));
        }
        std::fs::write(&files[0], &own).expect("a file");
        errors += usize::from(read(files.clone()).is_err());
    }
    assert!(errors > 50, "{errors}");
}
