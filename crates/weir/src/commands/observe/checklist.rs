//! `weir observe checklist`: the storage requirements of an application.

use super::requirements::{Row, Rows, wanted};
use super::source::Source;
use crate::cli::ObserveChecklistArgs;
use crate::error::CliError;
use crate::output;
use std::collections::BTreeMap;
use weir_observe::load::{Load, Loads};
use weir_observe::metric as m;
use weir_observe::rates::{Track, Tracker};
use weir_observe::{Contents, EntityId, EntityKind};
use weir_report::checklist::{Checklist, ChecklistReport, Measured};

/// Name of the total.
const ALL: &str = "all together";

/// Metrics of hosts: processors and memory.
const OF_HOSTS: [(&str, Measured, m::Metric); 2] =
    [("CPU", Measured::Share, m::CPU), ("memory", Measured::Share, m::MEMORY_SHARE)];

pub(super) fn run(args: &ObserveChecklistArgs) -> Result<u8, CliError> {
    let source = Source::observation(&args.file)?;
    let (header, _) = source.survey()?;
    let contents = &header.contents;
    let wanted = wanted(contents, &args.only)?;
    let mut loads = Loads::new(contents);
    let mut each: BTreeMap<EntityId, Rows> = BTreeMap::new();
    let mut all = Rows::default();
    let tracks: Vec<(EntityId, usize, Track)> = hosts(contents);
    let mut tracker =
        Tracker::new(contents, &tracks.iter().map(|(.., track)| track.clone()).collect::<Vec<_>>());
    let mut of_hosts: Vec<Row> = tracks.iter().map(|_| Row::default()).collect();
    source.each(|at, row| {
        let mut sum: Option<Load> = None;
        loads.sample(at, row, |entity, load| {
            if !wanted.contains(&entity) {
                return;
            }
            each.entry(entity).or_default().add(&load);
            match &mut sum {
                Some(sum) => sum.add(&load),
                sum => *sum = Some(load),
            }
        });
        if let Some(sum) = sum {
            all.add(&sum);
        }
        tracker.sample(at, row, |index, reading| {
            let (_, which, _) = &tracks[index];
            let unit = OF_HOSTS[*which].1;
            let weight = reading.seconds();
            of_hosts[index].add((reading.from, reading.to), unit, reading.rate(), weight);
        });
    })?;
    let name = |id: EntityId| contents.entity(id).map(|own| own.name.clone()).unwrap_or_default();
    let mut lists: Vec<_> = each.iter().map(|(id, rows)| rows.list(name(*id))).collect();
    if lists.len() > 1 {
        lists.push(all.list(ALL.to_owned()));
    }
    for ((id, which, _), row) in tracks.iter().zip(&of_hosts) {
        let (what, unit, _) = &OF_HOSTS[*which];
        let requirements = row.requirement(what, *unit).into_iter().collect();
        lists.push(Checklist { name: name(*id), requirements });
    }
    let mut notes = Vec::new();
    let is_volume =
        |id: &EntityId| contents.entity(*id).is_some_and(|own| own.kind == EntityKind::Volume);
    if each.len() > 1 && args.only.is_empty() && each.keys().any(is_volume) {
        notes.push(
            "devices on top of each other (partitions, LVM, encryption) count twice in the total: \
             choose with --only"
                .to_owned(),
        );
    }
    output::print(&ChecklistReport { lists, notes }, args.output.format())?;
    Ok(0)
}

/// The tracks of hosts: the entity, the index in [`OF_HOSTS`], and the subject.
fn hosts(contents: &Contents) -> Vec<(EntityId, usize, Track)> {
    let hosts = contents.entities.iter().zip(0..).filter(|(own, _)| own.kind == EntityKind::Host);
    let ids: Vec<_> = hosts.map(|(_, id)| EntityId(id)).collect();
    let track = |id: EntityId, which: usize| {
        let series = contents.find(id, OF_HOSTS[which].2.name)?;
        Some((id, which, Track(vec![series])))
    };
    let both = |id: EntityId| (0..OF_HOSTS.len()).filter_map(move |which| track(id, which));
    ids.into_iter().flat_map(both).collect()
}
