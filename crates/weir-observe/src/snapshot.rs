//! A snapshot of all counters: a baseline to compare a later one with.
//!
//! A [`Newest`] takes samples and keeps the newest complete one of each entity. All counters of an
//! entity are therefore of one moment; gauges have their newest value. The result is an
//! observation with each entity in one sample, usually the same for all.

use crate::columns::Column;
use crate::format::Ending;
use crate::header::{Counting, Header};
use crate::observation::Observation;
use std::collections::BTreeSet;
use weir_units::Instant;

/// The newest values of every entity.
#[derive(Debug)]
pub struct Newest {
    header: Header,
    /// Series of each entity, and whether they are counters.
    series: Vec<Vec<(usize, bool)>>,
    /// Time of each entity's newest sample.
    at: Vec<Option<Instant>>,
    row: Vec<Option<i64>>,
}

impl Newest {
    /// Creates an empty snapshot of an observation with this header, which has all declarations of
    /// the file.
    #[must_use]
    pub fn new(header: &Header) -> Self {
        let contents = &header.contents;
        let mut series = vec![Vec::new(); contents.entities.len()];
        for (at, own) in contents.series.iter().enumerate() {
            if let Some(list) = series.get_mut(own.entity.0 as usize) {
                list.push((at, own.counting == Counting::Cumulative));
            }
        }
        let at = vec![None; contents.entities.len()];
        Self { header: header.clone(), series, at, row: vec![None; contents.series.len()] }
    }

    /// Takes a sample, which is later than the previous one.
    pub fn sample(&mut self, at: Instant, row: &[Option<i64>]) {
        for (own, newest) in self.series.iter().zip(&mut self.at) {
            let value = |place: usize| row.get(place).copied().flatten();
            let counts =
                own.iter().any(|(place, is_counter)| *is_counter && value(*place).is_some());
            let has_counters = own.iter().any(|(_, is_counter)| *is_counter);
            let mut has_any = counts;
            for (place, is_counter) in own {
                let now = value(*place);
                if (*is_counter && counts) || (!is_counter && now.is_some()) {
                    self.row[*place] = now;
                    has_any |= !has_counters;
                }
            }
            if has_any {
                *newest = Some(at);
            }
        }
    }

    /// Returns the time of the newest sample.
    #[must_use]
    pub fn taken(&self) -> Option<Instant> {
        self.at.iter().flatten().max().copied()
    }

    /// Converts to an observation. Entities with gauges alone, whose counters never came, are in
    /// the newest sample.
    #[must_use]
    pub fn into_observation(self) -> Observation {
        let times: BTreeSet<Instant> = self.at.iter().flatten().copied().collect();
        let times: Vec<Instant> = times.into_iter().collect();
        let mut columns = vec![Column::default(); self.row.len()];
        for (own, at) in self.series.iter().zip(&self.at) {
            let at = at.or(times.last().copied());
            for (place, _) in own {
                let value = |time: &Instant| self.row[*place].filter(|_| Some(*time) == at);
                columns[*place] = times.iter().map(value).collect();
            }
        }
        let (header, ending) = (self.header, Ending::Complete);
        let header = Header { interval_ns: None, ..header };
        Observation { header, times, columns, notes: Vec::new(), ending }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::header::{Entity, EntityKind, Source, SourceKind};
    use crate::metric as m;
    use weir_units::Span;

    #[test]
    fn the_newest_value_of_each_series_is_kept() {
        let about = std::collections::BTreeMap::new();
        let kind = SourceKind::Other("import".to_owned());
        let mut header = Header::new(Source { kind, by: "weir".to_owned(), about });
        let own = &mut header.contents;
        let file = own.add_entity(Entity::new(EntityKind::File, "f", None));
        own.add_series(m::NUM_OF_READS.series(file));
        own.add_series(m::NUM_OF_WRITES.series(file));
        own.add_series(m::SIZE_ON_DISK_BYTES.series(file));
        let wait = own.add_entity(Entity::new(EntityKind::Wait, "w", None));
        own.add_series(m::WAIT_TIME_MS.series(wait));
        let disk = own.add_entity(Entity::new(EntityKind::Volume, "d", None));
        own.add_series(m::READS_PER_S.series(disk));
        let mut newest = Newest::new(&header);
        assert_eq!(newest.taken(), None);
        let second = |n| Instant::ZERO + Span::from_secs(n);
        newest.sample(second(1), &[Some(1), Some(2), Some(8192), Some(5), Some(9)]);
        // Counters are of one moment: a value missing there is unknown.
        newest.sample(second(2), &[Some(3), None, None, None, Some(10)]);
        newest.sample(second(3), &[None, None, Some(16384), None, None]);
        assert_eq!(newest.taken(), Some(second(2)));
        let observation = newest.into_observation();
        let rows: Vec<Vec<_>> =
            (0..2).map(|n| observation.columns.iter().map(|c| c.get(n)).collect()).collect();
        assert_eq!(observation.times, [second(1), second(2)]);
        assert_eq!(rows[0], [None, None, None, Some(5), None]);
        assert_eq!(rows[1], [Some(3), None, Some(16384), None, Some(10)]);
    }
}
