//! A synthetic fleet: database servers with ten files each, some of which are throttled.
//!
//! It is for tests and benchmarks. Equal settings give equal files.

use crate::error::FleetError;
use std::fs::{self, File};
use std::io::BufWriter;
use std::path::Path;
use weir_observe::{
    Column, Contents, Ending, Entity, EntityId, EntityKind, Header, LayoutText, Observation,
    Source, SourceKind, attribute, metric,
};
use weir_random::Rng;
use weir_units::{Instant, Span};

/// Start of all observations: 2025-11-28 in UTC, a Friday.
const START_NS: i64 = 1_764_288_000_000_000_000;

/// The limit of the disk with the data files, in operations per second, as in the layout.
const DATA_IOPS: f64 = 5_000.0;
/// Its limit in bytes per second.
const DATA_BYTES: u64 = 200_000_000;

/// Data files of a server; it also has a log file, and one of tempdb.
const DATA_FILES: usize = 8;

/// Latency of a request that does not wait, in milliseconds.
const UNLOADED_MS: f64 = 2.0;

/// The size of a fleet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Example {
    /// Number of servers.
    pub servers: u64,
    /// Samples of each.
    pub samples: u64,
    /// Seconds between two samples.
    pub interval_s: u64,
    /// Seed of the load.
    pub seed: u64,
}

impl Example {
    /// A day of samples at 60 s.
    #[must_use]
    pub const fn day(servers: u64) -> Self {
        Self { servers, samples: 1_440, interval_s: 60, seed: 1 }
    }

    /// Returns the name of a server.
    #[must_use]
    pub fn name(number: u64) -> String {
        format!("db{number:05}")
    }

    /// Returns the observation of a server. A third of the servers have more load during office hours
    /// than their disk allows; every fifth has limits in place of a layout.
    #[must_use]
    pub fn observation(&self, number: u64) -> Observation {
        let mut rng = Rng::new(&[self.seed, number]);
        let header = self.header(number);
        let series = header.contents.series.len();
        let mut columns = vec![Column::default(); series];
        let mut totals = vec![0_i64; series];
        let mut times = Vec::new();
        let peak = match number % 3 {
            0 => 1.1 + 0.4 * share(&mut rng),
            _ => 0.2 + 0.4 * share(&mut rng),
        };
        for sample in 0..self.samples {
            let seconds = sample * self.interval_s;
            let is_office = (8..18).contains(&(seconds / 3_600 % 24));
            let noise = 0.9 + 0.2 * share(&mut rng);
            let wanted = DATA_IOPS * peak * noise * if is_office { 1.0 } else { 0.2 };
            times.push(Instant::ZERO + Span::from_secs(seconds));
            if sample > 0 {
                self.advance(&mut totals, wanted, &mut rng);
            }
            for (column, total) in columns.iter_mut().zip(&totals) {
                column.push(Some(*total));
            }
        }
        Observation { header, times, columns, notes: Vec::new(), ending: Ending::Complete }
    }

    /// Adds the load of an interval to the counters.
    fn advance(&self, totals: &mut [i64], wanted: f64, rng: &mut Rng) {
        let iops = wanted.min(DATA_IOPS);
        // Beyond the limit, requests of sixty clients wait for each other.
        let latency_ms = if wanted > DATA_IOPS { 60.0 / DATA_IOPS * 1e3 } else { UNLOADED_MS };
        for (file, totals) in totals.chunks_exact_mut(METRICS.len()).enumerate() {
            let (share_of, latency_ms) = match file {
                0..DATA_FILES => (1.0 / float(DATA_FILES as u64), latency_ms),
                // The other disk has room.
                _ => (0.05, UNLOADED_MS),
            };
            let operations = iops * share_of * float(self.interval_s) * (0.98 + 0.04 * share(rng));
            let (reads, writes) = (whole(0.7 * operations), whole(0.3 * operations));
            let per_ms = float(10_u64.pow(u32::from(metric::IO_STALL_READ_MS.decimals)));
            let stall = |n: i64| whole(float(n.unsigned_abs()) * latency_ms * per_ms);
            let added = [reads, writes, reads * 8_192, writes * 8_192, stall(reads), stall(writes)];
            for (total, added) in totals.iter_mut().zip(added) {
                *total += added;
            }
        }
    }

    fn header(&self, number: u64) -> Header {
        let by = format!("weir {}", env!("CARGO_PKG_VERSION"));
        let kind = SourceKind::Other("example".to_owned());
        let mut header = Header::new(Source { kind, by, about: Default::default() });
        header.start_unix_ns = Some(START_NS);
        header.interval_ns = Some(self.interval_s * 1_000_000_000);
        let has_layout = number % 5 != 4;
        header.contents = contents(number, has_layout);
        let text = layout();
        header.layout = has_layout.then(|| LayoutText { name: "layout.toml".to_owned(), text });
        header
    }

    /// Writes an observation for each server into a folder, which is created if needed.
    ///
    /// # Errors
    ///
    /// [`FleetError::Io`].
    pub fn write(&self, folder: &Path) -> Result<(), FleetError> {
        fs::create_dir_all(folder).map_err(FleetError::io(folder))?;
        for number in 0..self.servers {
            let path = folder.join(format!("{}.weirobs", Self::name(number)));
            let file = File::create(&path).map_err(FleetError::io(&path))?;
            let written = self.observation(number).write(BufWriter::new(file));
            written.map_err(|error| FleetError::io(&path)(std::io::Error::other(error)))?;
        }
        Ok(())
    }

    /// Writes a partition for each server into a tree of Parquet.
    ///
    /// # Errors
    ///
    /// [`FleetError`].
    #[cfg(feature = "parquet")]
    pub fn write_tables(&self, root: &Path) -> Result<(), FleetError> {
        use crate::partition::{day, day_folder, server_folder};
        use crate::table::{Described, Table};

        for number in 0..self.servers {
            let own = self.observation(number);
            let folder = root.join(server_folder(&Self::name(number)));
            let folder = folder.join(day_folder(&day(own.header.start_unix_ns)));
            fs::create_dir_all(&folder).map_err(FleetError::io(&folder))?;
            let path = folder.join("part.parquet");
            let file = File::create(&path).map_err(FleetError::io(&path))?;
            let described = Described::new(own.header, own.notes, &own.ending);
            let failed = || FleetError::table(&path);
            let mut table = Table::new(file, &described).map_err(failed())?;
            for (sample, at) in own.times.iter().enumerate() {
                let row: Vec<_> = own.columns.iter().map(|column| column.get(sample)).collect();
                table.sample(*at, &row).map_err(failed())?;
            }
            table.finish().map_err(failed())?;
        }
        Ok(())
    }
}

/// The metrics of a file, in the order in which [`Example::advance`] adds to them.
const METRICS: [metric::Metric; 6] = [
    metric::NUM_OF_READS,
    metric::NUM_OF_WRITES,
    metric::NUM_OF_BYTES_READ,
    metric::NUM_OF_BYTES_WRITTEN,
    metric::IO_STALL_READ_MS,
    metric::IO_STALL_WRITE_MS,
];

/// The names of the files with their roles and volumes.
fn files() -> impl Iterator<Item = (String, &'static str, &'static str)> {
    let data = (1..=DATA_FILES).map(|n| (format!("data-{n}"), "data", "data"));
    let others = [("log", "log", "log"), ("temp", "tempdb", "log")];
    data.chain(others.map(|(name, role, on)| (name.to_owned(), role, on)))
}

fn contents(number: u64, has_layout: bool) -> Contents {
    let mut contents = Contents::default();
    let mut add = |kind, name: &str, parent, attributes: &[(&str, weir_observe::Attribute)]| {
        let own = attributes.iter().map(|(key, value)| ((*key).to_owned(), value.clone()));
        let entity = Entity { attributes: own.collect(), ..Entity::new(kind, name, parent) };
        contents.add_entity(entity)
    };
    let host = add(EntityKind::Host, &Example::name(number), None, &[]);
    if !has_layout {
        let limits = [
            (attribute::IOPS_LIMIT, (whole(DATA_IOPS).unsigned_abs()).into()),
            (attribute::BYTES_PER_S_LIMIT, DATA_BYTES.into()),
        ];
        for name in ["data", "log"] {
            add(EntityKind::Volume, name, Some(host), &limits);
        }
    }
    let database = add(EntityKind::Database, "sales", Some(host), &[]);
    let ids: Vec<EntityId> = files()
        .map(|(name, role, on)| {
            let facts = [(attribute::ROLE, role.into()), (attribute::VOLUME, on.into())];
            add(EntityKind::File, &name, Some(database), &facts)
        })
        .collect();
    for id in ids {
        contents.series.extend(METRICS.iter().map(|metric| metric.series(id)));
    }
    contents
}

fn layout() -> String {
    let mut text = "edition = \"azure-now\"\nhost = { size = \"D8s_v3\" }\n\n[[volume]]\n\
                    name = \"data\"\ntier = \"P30\"\n\n[[volume]]\nname = \"log\"\ntier = \"P30\"\n"
        .to_owned();
    for (name, role, on) in files() {
        text += &format!(
            "\n[[file]]\nname = \"{name}\"\ndatabase = \"sales\"\nrole = \"{role}\"\n\
             size = \"40 GiB\"\non = \"{on}\"\n"
        );
    }
    text
}

/// Returns a random number from 0 to 1.
fn share(rng: &mut Rng) -> f64 {
    float(rng.below(1 << 20)) / float(1 << 20)
}

fn float(n: u64) -> f64 {
    weir_report::number::float(n)
}

fn whole(x: f64) -> i64 {
    i64::try_from(weir_report::number::whole(x)).unwrap_or(i64::MAX)
}
