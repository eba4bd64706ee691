//! One pass over an observation: its profile, and the verdict of its diagnosis.

use crate::error::CompareError;
use crate::measured::{Measured, Verdict};
use crate::observed::Watcher;
use crate::price::{add_price, price_of};
use crate::profile::{Data, Profile};
use crate::side::{Observed, Request};
use crate::stats::LEAST_SAMPLES;
use weir_diagnose::{Follow, Question, System, question};
use weir_observe::joined::{Chunks, Joined};
use weir_observe::{Block, Contents, Header};

/// Samples that are read for gauges of sizes and limits.
const FIRST: usize = 8;

/// Measures an observation.
pub(crate) fn measure(
    name: &str,
    observed: Observed,
    request: &Request<'_>,
) -> Result<Measured, CompareError> {
    let Observed { header, chunks, layout, mut notes } = observed;
    let edition = layout.as_ref().and_then(|own| own.edition.as_deref());
    let edition = edition.map(|name| request.catalog.edition(name)).transpose()?;
    let mapping = Vec::new();
    let question =
        Question { layout: layout.as_ref(), edition, catalog: request.catalog, mapping: &mapping };
    let (mut profile, verdict) = pass(name, &question, header, chunks)?;
    let price = layout.as_ref().map(|own| price_of(own, request.catalog)).transpose()?.flatten();
    if verdict.is_none() {
        notes.push(format!("{name}: no diagnosis, since its names or limits are not known"));
    }
    check_length(name, &profile)?;
    add_price(&mut profile, price.as_ref());
    Ok(Measured { name: name.to_owned(), profile, verdict, price, notes })
}

/// Refuses an observation without enough samples for any metric.
fn check_length(name: &str, profile: &Profile) -> Result<(), CompareError> {
    let longest = profile.rows.iter().map(|row| match &row.data {
        Data::Over(own) => own.samples(),
        _ => 0,
    });
    let longest = longest.max().unwrap_or(0);
    if longest >= LEAST_SAMPLES {
        return Ok(());
    }
    Err(CompareError::TooShort {
        name: name.to_owned(),
        has: match longest {
            0 => "it has no two samples with reads and writes".to_owned(),
            1 => "it has one interval between two samples".to_owned(),
            n => format!("it has {n} intervals between two samples"),
        },
        needs: format!(
            "at least {LEAST_SAMPLES} are needed to tell a difference from noise; observe longer, or \
             with shorter intervals"
        ),
    })
}

/// Reads all samples once, for the profile and the diagnosis.
pub(crate) fn pass(
    name: &str,
    question: &Question<'_>,
    header: Header,
    chunks: Chunks,
) -> Result<(Profile, Option<Verdict>), CompareError> {
    let mut joined = Joined::new(vec![(header, chunks)]);
    let read = |joined: &mut Joined, most, block: &mut Block| {
        let failed = |(_, source)| CompareError::Read { name: name.to_owned(), source };
        joined.next_block(most, block).map_err(failed)
    };
    let (mut first, mut block) = (Block::new(joined.contents().series.len()), Block::default());
    while first.len() < FIRST {
        read(&mut joined, FIRST - first.len(), &mut block)?;
        if block.is_empty() {
            break;
        }
        block.iter().for_each(|(at, row)| first.push(at, row.iter().copied()));
    }
    let rows = first.iter().map(|(_, row)| row);
    let contents = question::with_gauges(joined.contents(), rows);
    let system = question.system(&contents).ok().map(|(system, _)| system);
    let mut watcher = Watcher::new(&contents);
    let mut follow = system.as_ref().map(|system| Follow::new(system, &contents));
    let mut take = |block: &Block| {
        watcher.samples(block);
        if let Some(follow) = &mut follow {
            follow.samples(block);
        }
    };
    take(&first);
    while !block.is_empty() {
        read(&mut joined, Block::MOST, &mut block)?;
        take(&block);
    }
    let verdict = follow
        .zip(system.as_ref())
        .map(|(follow, system)| verdict(question, &contents, system, follow));
    Ok((watcher.profile(&contents), verdict))
}

fn verdict(
    question: &Question<'_>,
    contents: &Contents,
    system: &System,
    follow: Follow<'_>,
) -> Verdict {
    let facts = follow.finish();
    question.answer(contents, system, &facts, |case, found| {
        let report = weir_diagnose::report::report(case, found);
        Verdict { verdict: report.verdict, summary: report.summary }
    })
}
