//! The price of a plan that leaves stripes as they are, beside one that rebuilds them.

use super::kind::Kind;
use super::question::Question;
use super::search::{ALONE, cheapest, search};
use crate::answer::Plan;
use crate::error::PlanError;
use crate::keep::Kept;

/// Returns the price without rebuilding a stripe, where the plan rebuilds one.
pub(super) fn without_rebuilding(
    question: &Question<'_>,
    families: &[Kind],
    plan: &Plan,
) -> Result<Option<String>, PlanError> {
    let Some(kept) = question.wishes.keep.as_ref().filter(|kept| kept.may_rebuild()) else {
        return Ok(None);
    };
    let mut wishes = question.wishes.clone();
    wishes.keep = Some(Kept { keeps_units: true, ..kept.clone() });
    let searched = search(&Question { wishes: &wishes, ..*question }, families, ALONE)?;
    Ok(match cheapest(&searched) {
        Some(other) if other.layout == plan.layout => None,
        Some(other) if other.cost.unpriced > 0 => {
            Some(format!("without rebuilding a stripe: {}", other.title))
        }
        Some(other) => Some(format!(
            "without rebuilding a stripe: {}, {} a month",
            other.title, other.cost.month
        )),
        None => Some("without rebuilding a stripe, no layout meets the need".to_owned()),
    })
}
