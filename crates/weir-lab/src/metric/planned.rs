//! Metrics of a plan.
//!
//! | metric | is |
//! |---|---|
//! | `plan_title` | the layout in a line |
//! | `plan_month` | the price per month, in the currency of its prices |
//! | `plan_line:WHAT` | the part of it in lines that begin with WHAT |

use super::name::{Unknown, split};
use crate::planned::Planned;
use weir_report::lab::Value;
use weir_report::number::float;
use weir_units::Money;

pub(super) fn read(metric: &str, planned: &Planned) -> Result<Option<Value>, Unknown> {
    let (name, of) = split(metric);
    let Some(plan) = &planned.plan else {
        return if name.starts_with("plan_") { Ok(None) } else { Err(Unknown) };
    };
    let number = |money: Money| Value::Number(float(money.micros()) / 1e6);
    Ok(match name {
        "plan_title" => Some(Value::Text(plan.title.clone())),
        "plan_month" => (plan.cost.unpriced == 0).then(|| number(plan.cost.month)),
        "plan_line" => {
            let lines = plan.lines.iter().filter(|line| line.what.starts_with(of));
            let months: Option<Vec<Money>> = lines.map(weir_plan::Line::month).collect();
            months.filter(|months| !months.is_empty()).map(|own| number(own.into_iter().sum()))
        }
        _ => return Err(Unknown),
    })
}
