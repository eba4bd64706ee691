//! The rates of the past.
//!
//! A column that never changed is one number, so an idle volume takes little memory.

use crate::sample::{Row, Sampled, WIDTH, columns};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, VecDeque};

/// A volume, or with `None` a host.
type Key = (String, Option<String>);

/// The samples of all volumes and hosts.
#[derive(Debug)]
pub struct History {
    /// The number of samples that are kept.
    kept: usize,
    /// The number of the next sample.
    next: u64,
    /// The time of each kept sample, in milliseconds since 1970.
    times: VecDeque<u64>,
    tracks: BTreeMap<Key, Track>,
}

/// The samples of a volume or host.
#[derive(Debug)]
struct Track {
    len: usize,
    columns: Vec<Column>,
}

#[derive(Debug)]
enum Column {
    Same(f32),
    Series(VecDeque<f32>),
}

/// Returns whether two numbers are equal or both do not exist.
fn is_same(a: f32, b: f32) -> bool {
    a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan())
}

impl Track {
    fn new(row: &Row) -> Self {
        Self { len: 0, columns: row.iter().map(|value| Column::Same(*value)).collect() }
    }

    fn push(&mut self, row: &Row, kept: usize) {
        let is_full = self.len == kept;
        for (column, value) in self.columns.iter_mut().zip(row) {
            match column {
                Column::Same(same) if is_same(*same, *value) => {}
                Column::Same(same) => {
                    let mut series: VecDeque<f32> =
                        std::iter::repeat_n(*same, self.len - usize::from(is_full)).collect();
                    series.push_back(*value);
                    *column = Column::Series(series);
                }
                Column::Series(series) => {
                    if is_full {
                        series.pop_front();
                    }
                    series.push_back(*value);
                }
            }
        }
        self.len = (self.len + 1).min(kept);
    }
}

impl History {
    /// Creates a history of this many samples.
    #[must_use]
    pub const fn keeping(samples: usize) -> Self {
        Self { kept: samples, next: 0, times: VecDeque::new(), tracks: BTreeMap::new() }
    }

    /// Adds a sample, and forgets volumes that it does not have. Returns its number.
    pub fn push(&mut self, ms: u64, sampled: &[Sampled]) -> u64 {
        if self.times.len() == self.kept {
            self.times.pop_front();
        }
        self.times.push_back(ms);
        let key = |one: &Sampled| (one.host.clone(), one.volume.clone());
        let present: std::collections::BTreeSet<Key> = sampled.iter().map(key).collect();
        self.tracks.retain(|key, _| present.contains(key));
        for one in sampled {
            let track = self.tracks.entry(key(one)).or_insert_with(|| Track::new(&one.row));
            track.push(&one.row, self.kept);
        }
        self.next += 1;
        self.next - 1
    }

    /// Returns the samples of a volume or host: their times, and each column as a list or, if all
    /// its values are the same, as a number.
    #[must_use]
    pub fn samples(&self, host: &str, volume: Option<&str>) -> Option<Value> {
        let track = self.tracks.get(&(host.to_owned(), volume.map(str::to_owned)))?;
        let start = self.times.len().saturating_sub(track.len);
        let times: Vec<u64> = self.times.iter().skip(start).copied().collect();
        let mut all = Map::new();
        for (name, column) in columns().into_iter().zip(&track.columns) {
            let values = match column {
                Column::Same(value) => json!(value),
                Column::Series(series) => json!(series),
            };
            all.insert(name, values);
        }
        Some(json!({ "next": self.next, "ms": times, "columns": all }))
    }

    /// Returns up to `len` values of a column of a volume or host, the oldest first, without the
    /// newest `skip` ones.
    #[must_use]
    pub fn last(
        &self,
        host: &str,
        volume: Option<&str>,
        column: usize,
        (skip, len): (usize, usize),
    ) -> Vec<f32> {
        let Some(track) = self.tracks.get(&(host.to_owned(), volume.map(str::to_owned))) else {
            return Vec::new();
        };
        let end = track.len.saturating_sub(skip);
        let range = end.saturating_sub(len)..end;
        match &track.columns[column] {
            Column::Same(value) => vec![*value; range.len()],
            Column::Series(series) => series.range(range).copied().collect(),
        }
    }
}

const _: () = assert!(WIDTH < 64, "a row is small");

#[cfg(test)]
mod tests {
    use super::*;

    fn sampled(volume: &str, first: f32, second: f32) -> Sampled {
        let mut row = [f32::NAN; WIDTH];
        (row[0], row[1]) = (first, second);
        Sampled { host: "h".into(), volume: Some(volume.into()), row }
    }

    #[test]
    fn an_hour_is_kept_and_equal_numbers_are_one() {
        let mut history = History::keeping(3_600);
        for n in 0..5_000_u16 {
            let row = sampled("a", f32::from(n), if n < 4_000 { 7.0 } else { 8.0 });
            let idle = sampled("b", 0.0, f32::NAN);
            let number = history.push(u64::from(n) * 1_000, &[row, idle]);
            assert_eq!(number, u64::from(n));
        }
        let a = history.samples("h", Some("a")).expect("a volume");
        assert_eq!(a["next"], 5_000);
        let times = a["ms"].as_array().expect("times");
        assert_eq!(
            (times.len(), &times[0], &times[3_599]),
            (3_600, &1_400_000.into(), &4_999_000.into())
        );
        let first = a["columns"]["read_iops"].as_array().expect("a series");
        assert_eq!(
            (first.len(), first[0].as_f64(), first[3_599].as_f64()),
            (3_600, Some(1_400.0), Some(4_999.0))
        );
        let second = a["columns"]["write_iops"].as_array().expect("a series");
        assert_eq!(second.len(), 3_600);
        assert_eq!((second[2_599].as_f64(), second[2_600].as_f64()), (Some(7.0), Some(8.0)));
        let last = |column, skip| history.last("h", Some("a"), column, (skip, 3));
        assert_eq!(last(0, 0), [4_997.0, 4_998.0, 4_999.0]);
        assert_eq!(last(0, 3_598), [1_400.0, 1_401.0]);
        assert_eq!(last(0, 5_000), [0.0_f32; 0]);
        assert_eq!(history.last("h", Some("b"), 0, (0, 2)), [0.0, 0.0]);
        assert_eq!(history.last("h", Some("other"), 0, (0, 2)), [0.0_f32; 0]);
        let b = history.samples("h", Some("b")).expect("a volume");
        assert_eq!(b["columns"]["read_iops"], json!(0.0));
        assert_eq!(b["columns"]["write_iops"], Value::Null);
        assert_eq!(history.samples("h", None), None);
        // A volume that is deleted is forgotten, and one of its name starts anew.
        history.push(5_000_000, &[sampled("a", 1.0, 1.0)]);
        assert_eq!(history.samples("h", Some("b")), None);
        history.push(5_001_000, &[sampled("a", 1.0, 1.0), sampled("b", 2.0, 2.0)]);
        let b = history.samples("h", Some("b")).expect("a volume");
        assert_eq!(b["ms"], json!([5_001_000]));
    }
}
