//! Systems side by side: rates, latencies, waits, verdict and price of each, their differences, and
//! which of these are more than noise.
//!
//! ```text
//!   observation, result --> profile --+
//!                                     +--> test of each metric --> correction --> report
//!   layout --> simulation --> profile-+
//! ```
//!
//! A [`profile`] holds the values of each metric over time, or of repeated runs. [`stats`]
//! decides whether two of them differ by more than noise. Consecutive samples of a system depend on
//! each other, so the values compared are means of ten batches, and the test allows for the
//! dependence that remains between neighbouring batches. `docs/COMPARE.md` states the method.
//!
//! | module | holds |
//! |---|---|
//! | [`side`] | the inputs of a comparison |
//! | [`profile`] | metrics of subjects, with their values |
//! | [`sequence`] | values over time in bounded memory |
//! | [`stats`] | the test and its correction for several metrics |
//! | `measured`, `price` | a side with its profile; its monthly price |
//! | `observed` | profiles of observations |
//! | `diagnosed` | one pass over an observation: its profile and its verdict |
//! | `results` | profiles of results in JSON |
//! | `simulated` | profiles of layouts |
//! | `judge` | differences, verdict and report |
//! | [`error`] | reasons why there is no comparison |

#![forbid(unsafe_code)]

mod diagnosed;
pub mod error;
mod judge;
mod measured;
mod observed;
mod price;
pub mod profile;
mod results;
pub mod sequence;
pub mod side;
mod simulated;
pub mod stats;

pub use error::CompareError;
pub use results::is_result;
pub use side::{Input, Observed, Options, Request, Side, Workload};

use measured::Measured;
use profile::Profile;
use side::Kind;
use weir_report::comparison::ComparisonReport;

/// Compares the sides with the first one.
///
/// # Errors
///
/// [`CompareError`] if the sides are of different kinds, cannot be read, are too short, or have
/// nothing in common.
pub fn compare(sides: Vec<Side>, request: &Request<'_>) -> Result<ComparisonReport, CompareError> {
    let kind = kind_of(&sides)?;
    match (kind, request.workload) {
        (Kind::Layout, None) => return Err(CompareError::NoWorkload),
        (Kind::Layout, Some(_)) => {}
        (kind, Some(_)) => return Err(CompareError::UselessWorkload { kind: kind.plural() }),
        (_, None) => {}
    }
    let sides = sides.into_iter().map(|side| measure(side, request));
    judge::report(kind, sides.collect::<Result<_, _>>()?, request)
}

/// Returns the kind of all inputs.
fn kind_of(sides: &[Side]) -> Result<Kind, CompareError> {
    let mut first: Option<(Kind, &Side)> = None;
    for side in sides {
        for input in &side.inputs {
            match first {
                None => first = Some((input.kind(), side)),
                Some((kind, _)) if kind == input.kind() => {}
                Some((kind, one)) => {
                    return Err(CompareError::Kinds {
                        one: one.name.clone(),
                        kind: kind.singular(),
                        other: side.name.clone(),
                        other_kind: input.kind().singular(),
                    });
                }
            }
        }
    }
    match first {
        Some((kind, _)) if sides.len() > 1 => Ok(kind),
        _ => Err(CompareError::OneSide),
    }
}

/// Measures a side. Several inputs are repetitions of one measurement.
fn measure(side: Side, request: &Request<'_>) -> Result<Measured, CompareError> {
    let Side { name, inputs } = side;
    let is_repeated = inputs.len() > 1;
    let mut all: Vec<Measured> = Vec::new();
    for input in inputs {
        all.push(match input {
            Input::Observation(observed) => diagnosed::measure(&name, *observed, request)?,
            Input::Result(result) => results::measure(&name, &result)?,
            Input::Layout(layout) => simulated::measure(&name, &layout, request)?,
        });
    }
    let Some(mut first) = all.pop() else { return Err(CompareError::Empty { name }) };
    if is_repeated {
        let mut profiles: Vec<Profile> = all.into_iter().map(|own| own.profile).collect();
        let last = std::mem::take(&mut first.profile);
        profiles.push(last);
        first.profile = Profile::repeated(profiles);
    }
    Ok(first)
}
