//! A backup that was observed, simulated with other options.

use super::one::{Backup, count};
use crate::case::Case;
use weir_layout::Layout;
use weir_observe::attribute;
use weir_pipeline::{CompressionText, Description, DescriptionText};
use weir_report::number::{float, whole};
use weir_sim::{OltpOptions, OltpSimulation};
use weir_units::{Bytes, Instant, Span};

/// Simulated bytes. The rate is constant by then.
const SAMPLE: u64 = 4 << 30;

/// Maximum relative difference between a simulated and an observed rate.
const ALIKE: f64 = 0.25;

/// The options of a backup that differ in a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Trial {
    pub(crate) stripes: u64,
    pub(crate) max_transfer: u64,
    /// Buffers, or as many as are computed.
    pub(crate) buffers: Option<u64>,
}

impl Trial {
    /// Returns the options that a backup had.
    pub(crate) fn of_backup(backup: &Backup<'_>) -> Option<Self> {
        let own = backup.entity.number(attribute::BUFFER_COUNT_SET);
        let printed = backup.entity.number(attribute::BUFFER_COUNT);
        let buffers = own.or(printed).filter(|own| Some(*own) != backup.computed_buffers());
        Some(Self { stripes: backup.stripes()?, max_transfer: backup.max_transfer(), buffers })
    }

    /// Returns the bytes per second of a simulated backup with these options.
    fn rate(self, case: &Case<'_>, layout: &Layout, backup: &Backup<'_>) -> Option<f64> {
        let disks = Backup::disks(case, &backup.sources);
        let sizes: Option<u64> = disks.iter().map(|disk| case.system.disks[*disk].size).sum();
        let bytes = whole(backup.facts.bytes?).min(SAMPLE).min(sizes.unwrap_or(SAMPLE));
        let readers = backup.entity.number(attribute::READERS);
        let readers = readers.map(|own| own.max(count_of(&backup.sources)));
        let compression = match backup.is_compressed() {
            // The time of compression was not observed, and did not limit the backup.
            true => Some(CompressionText {
                ratio: (backup.ratio()?.clamp(0.001, 1.0) * 1000.0).round() / 1000.0,
                rate: Bytes::gib(64),
                threads: 64,
            }),
            false => None,
        };
        let text = DescriptionText {
            sources: Backup::names(case, &backup.sources),
            to: Backup::names(case, &backup.targets),
            stripes: self.stripes.max(count_of(&backup.targets)),
            size: Bytes::new(bytes),
            max_transfer_size: Bytes::new(
                self.max_transfer.clamp(64 << 10, 4 << 20) / (64 << 10) * (64 << 10),
            ),
            readers: readers.filter(|own| *own > 0),
            buffer_count: self.buffers.filter(|own| *own > 0),
            compression,
            ..DescriptionText::default()
        }
        .toml();
        let description = Description::parse("backup.toml", &text).ok()?;
        let backups = [description];
        let options =
            OltpOptions { edition: case.edition, backups: &backups, ..OltpOptions::default() };
        let mut run = OltpSimulation::new(layout, &[], &options).ok()?;
        let end = Instant::ZERO + Span::from_secs(LONGEST);
        while run.now() < end && run.run_until(run.now() + Span::from_secs(60)).is_some() {}
        let report = run.report();
        let own = report.backups.first().filter(|own| own.is_complete && own.elapsed_s > 0.0)?;
        Some(float(own.bytes) / own.elapsed_s)
    }

    /// Returns what these options bring, in words, if the simulation of the backup as it was is like
    /// what was observed.
    pub(crate) fn words(self, case: &Case<'_>, backup: &Backup<'_>) -> Option<String> {
        let layout = case.layout?;
        let (own, observed) = (Self::of_backup(backup)?, backup.facts.rate()?);
        if own == self || backup.sources.is_empty() || backup.targets.is_empty() {
            return None;
        }
        let before = own.rate(case, layout, backup)?;
        if (before / observed - 1.0).abs() > ALIKE {
            return None;
        }
        let after = self.rate(case, layout, backup)?;
        let size = weir_units::Bytes::new(self.max_transfer);
        Some(format!(
            "simulated, {} files with transfers of {size} read {} instead of {} ({} were observed)",
            self.stripes,
            crate::case::amount(true, after),
            crate::case::amount(true, before),
            crate::case::amount(true, observed)
        ))
    }
}

/// Maximum simulated time in seconds.
const LONGEST: u64 = 3600;

fn count_of<T>(all: &[T]) -> u64 {
    whole(count(all.len()))
}
