//! Metrics of a tuned layout.
//!
//! | metric | is |
//! |---|---|
//! | `tune_end` | the reason for the end, for example `reached` |
//! | `tune_steps` | the number of steps |
//! | `tune_change:N` | the change of step N, from 1 |
//! | `tune_limit:N` | the limit that held the load back before step N, and the file or disk that has it |
//! | `tune_before:METRIC`, `tune_after:METRIC` | a metric of the record, for example `transactions_per_min` |
//! | `tune_gain:METRIC` | the second divided by the first |

use super::name::{Unknown, split};
use weir_report::lab::Value;
use weir_report::number::float;
use weir_report::tune::{TuneReport, TuneState};

pub(super) fn read(metric: &str, report: &TuneReport) -> Result<Option<Value>, Unknown> {
    let (name, of) = split(metric);
    let step = || of.parse::<usize>().ok().and_then(|at| at.checked_sub(1)).ok_or(Unknown);
    let metric =
        |state: &TuneState| state.metrics.iter().find(|own| own.name == of).map(|own| own.value);
    let number = |value: Option<f64>| value.map(Value::Number);
    Ok(match name {
        "tune_end" => Some(Value::Text(report.end.name().to_owned())),
        "tune_steps" => Some(Value::Number(float(report.steps.len() as u64))),
        "tune_change" => report.steps.get(step()?).map(|own| Value::Text(own.change.clone())),
        "tune_limit" => {
            let at = step()?;
            let before = match at.checked_sub(1) {
                None => Some(&report.before),
                Some(last) => report.steps.get(last).map(|own| &own.state),
            };
            let words = before.filter(|_| at < report.steps.len()).and_then(|state| {
                Some(format!("{} of {}", state.binding_limit.as_ref()?, state.limit_of.as_ref()?))
            });
            words.map(Value::Text)
        }
        "tune_before" => number(metric(&report.before)),
        "tune_after" => number(metric(&report.after)),
        "tune_gain" => {
            let (before, after) = (metric(&report.before), metric(&report.after));
            number(before.zip(after).map(|(before, after)| after / before))
        }
        _ => return Err(Unknown),
    })
}
