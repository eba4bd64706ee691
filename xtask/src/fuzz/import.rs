//! What must hold for an input of any kind: it is read, or refused with words; and what is read
//! is an observation that can be read again, whose loads are of stretches of time.

use std::io::{BufReader, Cursor};
use weir_observe::Observation;
use weir_observe::import::{Input, Kind, Options, import, kind};
use weir_observe::load::Loads;

/// As what it looks like, and as the kind that its first byte stands for.
pub(super) fn run(data: &[u8]) {
    read(data, None);
    let kinds: Vec<_> = kind::all().collect();
    if let Some((first, rest)) = data.split_first() {
        read(rest, Some(kinds[usize::from(*first) % kinds.len()]));
    }
}

fn read(data: &[u8], kind: Option<Kind>) {
    let bytes = Box::new(BufReader::with_capacity(512, Cursor::new(data.to_vec())));
    let input = Input { name: "fuzz".to_owned(), bytes, kind };
    match import(vec![input], &Options::default(), Vec::new()) {
        Err((_, error)) => assert!(!error.to_string().trim().is_empty(), "{error:?} says nothing"),
        Ok((bytes, summary)) => {
            let read = Observation::read(&bytes[..]);
            let observation = read.unwrap_or_else(|error| panic!("what was written: {error}"));
            assert_eq!(observation.contents().series.len(), summary.series);
            let mut loads = Loads::new(observation.contents());
            let mut row = Vec::new();
            for (sample, at) in observation.times.iter().enumerate() {
                row.clear();
                row.extend(observation.columns.iter().map(|column| column.get(sample)));
                loads.sample(*at, &row, |_, load| assert!(load.seconds() > 0.0, "{load:?}"));
            }
        }
    }
}
