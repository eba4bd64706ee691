//! Random needs, and the cheapest layout for them.

use weir_catalog::{Catalog, PriceBook};
use weir_plan::need::{Need, NeedFile};
use weir_plan::{Outcome, PlanError, Question, plan};
use weir_random::Rng;
use weir_units::Money;

/// Returns the layout that is taken of many, each as its disks and its price: within 1 % of the
/// cheapest price the fewest disks, and of those the cheapest.
pub(crate) fn taken(all: impl Iterator<Item = (u64, Money)> + Clone) -> Option<(u64, Money)> {
    let cheapest = all.clone().map(|(_, month)| month.micros()).min()?;
    all.filter(|(_, month)| u128::from(month.micros()) * 100 <= u128::from(cheapest) * 101).min()
}

/// A need as a file, of the roles that are given.
pub(crate) fn need_text(rng: &mut Rng, roles: &[&str], most_iops: u64) -> String {
    let mut text = String::new();
    for role in roles {
        let gib = rng.within(1, if *role == "data" { 1_500 } else { 120 });
        let request = match *role {
            "data" => *rng.one(&[4, 8, 8, 8, 16, 64, 256, 1024]),
            _ => *rng.one(&[4, 16, 64]),
        };
        // Not a round number: what is on the border to the last digit is another test's.
        let iops = rng.within(20, most_iops * 8 / (request.max(8))) / 2 * 2 + 1;
        text += &format!(
            "[{role}]\nsize = \"{gib} GiB\"\niops = {iops}\nrequest = \"{request} KiB\"\n"
        );
        if rng.chance(20) {
            let mib = iops * request / 1024 + rng.within(1, 150);
            text += &format!("throughput = \"{mib} MiB/s\"\n");
        }
        if *role != "log" {
            text += &format!("reads = \"{} %\"\n", rng.within(0, 10) * 10);
            if rng.chance(40) {
                text += &format!("working_set = \"{} GiB\"\n", rng.within(1, gib.min(200)));
            }
        }
    }
    text
}

/// A need file with its plan.
pub(crate) fn planned(
    text: &str,
    catalog: &Catalog,
    edition: &str,
) -> Result<(Need, Outcome), PlanError> {
    let file = NeedFile::read("need.toml", text)?;
    let (need, _) = file.need()?;
    let edition = catalog.edition(edition)?;
    let book = PriceBook::of(edition.prices(), None, None, None)?;
    let wishes = file.wishes();
    let prices = book.as_ref();
    let question = Question { catalog, edition, prices, need: &need, wishes: &wishes };
    let outcome = plan(&question)?;
    Ok((need, outcome))
}
