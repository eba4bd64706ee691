//! The demand of throttled entities, which exceeds their observed rates.

use super::Samples;
use weir_catalog::{Catalog, Edition};
use weir_diagnose::demand::{Demand, Estimate, estimate};
use weir_diagnose::system::Mapping;
use weir_diagnose::{Follow, Question};
use weir_layout::Layout;
use weir_observe::sizing::Sized;
use weir_observe::{Block, Contents};
use weir_report::number::{rate, time};

/// Diagnoses an observation and estimates the demand of all throttled entities.
pub(super) fn demands<S: Samples>(
    samples: &S,
    contents: &Contents,
    layout: Option<&Layout>,
    (catalog, planned): (&Catalog, Option<&Edition>),
) -> Result<Vec<Demand>, S::Error> {
    let mapping = Mapping::new();
    let edition = layout
        .and_then(|layout| layout.edition.as_deref())
        .and_then(|name| catalog.edition(name).ok());
    let question = |layout, edition| Question { layout, edition, catalog, mapping: &mapping };
    // A layout to keep may use other names for disks than the observation.
    let (question, system) = match question(layout, edition).system(contents) {
        Ok((system, _)) => (question(layout, edition), system),
        Err(_) => match question(None, None).system(contents) {
            Ok((system, _)) => (question(None, None), system),
            Err(_) => return Ok(Vec::new()),
        },
    };
    let mut pass = Follow::new(&system, contents);
    let mut block = Block::new(contents.series.len());
    samples.each(&mut |at, row| {
        block.push(at, row.iter().copied());
        if block.len() == Block::MOST {
            pass.samples(&block);
            block.clear();
        }
    })?;
    pass.samples(&block);
    let facts = pass.finish();
    Ok(question.answer(contents, &system, &facts, |case, found| estimate(case, &found, planned)))
}

/// Raises the rates of a role to the demand of its throttled members; returns notes about that.
pub(super) fn raise(own: &mut Sized, demands: &[Demand], is_as_observed: bool) -> Vec<String> {
    let mut notes = Vec::new();
    for demand in demands.iter().filter(|demand| own.entities.contains(&demand.entity)) {
        let (role, name) = (&own.role, &demand.name);
        let throttled = format!("{role}: {name} was throttled ({})", demand.because);
        let Some(estimate) = demand.estimate else {
            notes.push(format!(
                "{throttled}: its demand may exceed the observed rates by an unknown amount; \
                 allow for it with --growth"
            ));
            continue;
        };
        let Estimate { iops, in_flight, unloaded_ns, is_assumed, is_capped } = estimate;
        let how = format!(
            "with a queue depth of {}, it would reach {} IOPS at a latency of {}{}{}",
            rate(in_flight),
            rate(in_flight / (unloaded_ns / 1e9)),
            time(unloaded_ns),
            if is_assumed {
                ", the unloaded latency of the edition's medium, because every sample exceeded 1.5 \
                 times that"
            } else {
                ""
            },
            if is_capped { "; at most ten times the observed rate is assumed" } else { "" }
        );
        if is_as_observed {
            notes.push(format!("{throttled}; {how}: left out (--as-observed)"));
            continue;
        }
        let more = iops - demand.iops;
        own.iops += more;
        own.bytes = own.bytes.zip(own.request).map(|(bytes, request)| bytes + more * request);
        notes.push(format!(
            "{throttled}; {how}: planned for {} IOPS, an estimate of its demand, instead of the \
             observed {} (--as-observed plans for the observed rates)",
            rate(iops),
            rate(demand.iops)
        ));
    }
    notes
}
