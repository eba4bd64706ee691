//! The price of the layout in use, beside the plan's.

use super::lines;
use crate::error::CliError;
use crate::input::read_layout_text;
use std::path::Path;
use weir_layout::{Bill, Layout};
use weir_plan::Question;
use weir_report::number::{Amount, Delta};
use weir_report::plan::{PlanPresent, PlanReport};

/// Adds the price of a layout to the report, and its difference from the plan's price. The prices
/// of another edition cannot be compared, so such a layout is left out.
pub(super) fn price(
    report: &mut PlanReport,
    path: &Path,
    question: &Question<'_>,
) -> Result<(), CliError> {
    let (_, layout) = read_layout_text(path, question.catalog)?;
    if layout.edition.as_deref() != Some(question.edition.name()) {
        let name = question.edition.name();
        let words = format!(
            "{}: has another edition than {name}, so its price is \
                             unknown",
            path.display()
        );
        report.notes.push(words);
        return Ok(());
    }
    let present = bill(&layout, question);
    let planned = report.plan.as_ref().and_then(|plan| {
        let layout = Layout::parse("plan", &plan.layout, question.catalog).ok()?;
        Some(bill(&layout, question))
    });
    let comparable = planned.filter(|planned| planned.is_comparable(&present));
    let difference = comparable.map(|planned| Delta::between(present.month(), planned.month()));
    report.present = Some(PlanPresent {
        name: path.display().to_string(),
        month: Amount(present.month()),
        unpriced: u32::try_from(present.unknown().count()).unwrap_or(u32::MAX),
        unknown: present.unknown().map(|line| format!("{} has no price", line.what)).collect(),
        lines: lines(&present.lines),
        difference,
    });
    Ok(())
}

fn bill(layout: &Layout, question: &Question<'_>) -> Bill {
    layout.bill(Some(question.edition), question.prices)
}
