//! Observations of a database.

use super::Load;
use crate::observing::{self, DatabaseAbout};
use weir_layout::Layout;
use weir_layout::files::Place;
use weir_observe::run::{DatabaseCounters, LimitsNow, Sample, Shape};
use weir_oltp::Counters;
use weir_oltp::model::PAGE;
use weir_units::Bytes;

impl Load {
    /// Adds the database and its files.
    pub(in crate::oltp) fn declare(&self, shape: &mut Shape, layout: &Layout, places: &[Place]) {
        let about = DatabaseAbout {
            name: self.tally.name(),
            mix: self.tally.mix(),
            users: self.tally.users(),
            vcores: self.tally.vcores(),
            files: &self.files,
        };
        observing::declare_database(shape, layout, places, &about);
    }

    /// Adds the counters of the database and its files.
    pub(in crate::oltp) fn sample(
        &self,
        sample: &mut Sample,
        sizes: &[Bytes],
        limits: impl Fn(usize) -> LimitsNow,
    ) {
        let counters = self.tally.counters(&self.database);
        sample.databases.push(self.counted(&counters));
        for (file, _) in &self.files {
            let file = *file as usize;
            sample.files.push(observing::file_counters(
                &self.stats[file],
                sizes[file],
                limits(file),
            ));
        }
    }

    fn counted(&self, counters: &Counters) -> DatabaseCounters {
        DatabaseCounters {
            buffer_bytes: (self.database.pages_in_memory() as u64).saturating_mul(PAGE),
            dirty_bytes: self.database.pages_dirty().saturating_mul(PAGE),
            ..observing::database_counters(counters)
        }
    }
}
