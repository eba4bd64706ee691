//! The price of the layout in use, beside the plan's.

use crate::error::CliError;
use crate::input::read_layout_text;
use std::path::Path;
use weir_layout::{Bill, Layout};
use weir_plan::Question;
use weir_plan::report::present;
use weir_report::plan::PlanReport;

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
        let words =
            format!("{}: has another edition than {name}, so its price is unknown", path.display());
        report.notes.push(words);
        return Ok(());
    }
    let present_bill = bill(&layout, question);
    let planned = report.plan.as_ref().and_then(|plan| {
        let layout = Layout::parse("plan", &plan.layout, question.catalog).ok()?;
        Some(bill(&layout, question))
    });
    report.present = Some(present(path.display().to_string(), &present_bill, planned.as_ref()));
    Ok(())
}

fn bill(layout: &Layout, question: &Question<'_>) -> Bill {
    layout.bill(Some(question.edition), question.prices)
}
