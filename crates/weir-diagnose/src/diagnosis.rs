//! The diagnosis of an observation, in one pass over its samples.

use crate::case::Case;
use crate::effect;
use crate::error::DiagnoseError;
use crate::follow::Follow;
use crate::question::{Question, with_gauges};
use crate::report::report;
use crate::system::Unmatched;
use weir_observe::joined::Joined;
use weir_observe::{Block, ReadError};
use weir_report::diagnosis::DiagnosisReport;

/// Samples that are read for gauges of sizes and limits.
const FIRST: usize = 8;

/// A reason why an observation has no diagnosis.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// An observation that cannot be read, with its place among the joined ones.
    #[error("{1}")]
    Read(usize, ReadError),
    /// An observation that answers no question.
    #[error("{0}")]
    Diagnose(#[from] DiagnoseError),
}

/// Reads all samples, runs the rules and passes the case and its report to `then`. Changes are
/// simulated if there is the `text` of a layout. Also returns the entities that are not in the layout.
///
/// # Errors
///
/// [`Failure`] if there is no diagnosis.
pub fn diagnose<T>(
    question: &Question<'_>,
    joined: &mut Joined,
    text: Option<&str>,
    then: impl FnOnce(&Case<'_>, DiagnosisReport) -> T,
) -> Result<(T, Vec<Unmatched>), Failure> {
    let (mut first, mut block) = (Block::new(joined.contents().series.len()), Block::default());
    let next = |joined: &mut Joined, most, block: &mut Block| {
        joined.next_block(most, block).map_err(|(index, source)| Failure::Read(index, source))
    };
    // The first samples contain the gauges of sizes and limits.
    while first.len() < FIRST {
        next(joined, FIRST - first.len(), &mut block)?;
        if block.is_empty() {
            break;
        }
        block.iter().for_each(|(at, row)| first.push(at, row.iter().copied()));
    }
    let rows = first.iter().map(|(_, row)| row);
    let contents = with_gauges(joined.contents(), rows);
    let (system, unmatched) = question.system(&contents)?;
    let mut pass = Follow::new(&system, &contents);
    pass.samples(&first);
    while !block.is_empty() {
        next(joined, Block::MOST, &mut block)?;
        pass.samples(&block);
    }
    let facts = pass.finish();
    let answer = question.answer(&contents, &system, &facts, |case, mut found| {
        let notes = text.map(|text| effect::estimate(case, text, &mut found));
        let mut report = report(case, found);
        report.notes.extend(notes.into_iter().flatten());
        report.notes.extend(joined.notes());
        then(case, report)
    });
    Ok((answer, unmatched))
}
