//! The search of all families.

use super::kind::Kind;
use super::question::Question;
use crate::answer::Plan;
use crate::cost::Prices;
use crate::disks::usable_families;
use crate::error::PlanError;
use crate::family::Searched;
use crate::instance::Instances;
use crate::machine::Machines;
use crate::pooled;
use crate::rank::Aim;
use crate::service::{Service, Services};
use weir_catalog::Edition;
use weir_units::Money;

/// Finds the plan only.
pub(super) const ALONE: Aim = Aim { explains: false, budget: None };

/// Searches each of the families.
pub(super) fn search(
    question: &Question<'_>,
    families: &[Kind],
    aim: Aim,
) -> Result<Vec<Searched>, PlanError> {
    let prices = Prices(question.prices);
    let of = |family: &Kind| match *family {
        Kind::Machine => {
            let machines = machines(question)?;
            let shared = pooled::search(&machines, question.need, aim);
            let rival = shared.plan.as_ref().map(|plan| plan.cost);
            Ok(machines.search(question.need, aim, rival).merged(shared, aim))
        }
        Kind::Instance(kind) => {
            let (catalog, edition) = (question.catalog, question.edition);
            let instances = Instances { kind, catalog, edition, prices, wishes: question.wishes };
            instances.search(question.need, aim)
        }
        Kind::Service(service) => {
            let services = services(question, service, disk_families(question)?);
            services.search(question.need, aim)
        }
    };
    families.iter().map(of).collect()
}

/// Builds the search among machines.
pub(super) fn machines<'a>(question: &Question<'a>) -> Result<Machines<'a>, PlanError> {
    let editions = std::iter::once(question.edition).chain(question.catalog.editions());
    let mut striping = editions.filter_map(Edition::striping);
    let units = striping.next().map(|striping| striping.units.iter().map(|own| own.unit));
    let units = units.map(Iterator::collect).unwrap_or_default();
    let (edition, prices) = (question.edition, Prices(question.prices));
    let families = disk_families(question)?;
    Ok(Machines::new(edition, prices, question.wishes, (units, families)))
}

/// Builds the search among servers of a service.
pub(super) fn services<'a>(
    question: &Question<'a>,
    service: Service,
    families: Vec<&'a str>,
) -> Services<'a> {
    let (edition, prices) = (question.edition, Prices(question.prices));
    Services { service, edition, prices, families, wishes: question.wishes }
}

/// Returns the disk families to use.
pub(super) fn disk_families<'a>(question: &Question<'a>) -> Result<Vec<&'a str>, PlanError> {
    usable_families(question.edition, &question.wishes.disks)
}

/// Returns the cheapest plan of all families.
pub(super) fn cheapest(searched: &[Searched]) -> Option<&Plan> {
    searched.iter().filter_map(|own| own.plan.as_ref()).min_by_key(|plan| rank(plan))
}

/// Returns the key that orders plans of different families. Sizes of different families cannot be
/// compared, so plans without prices keep their order.
pub(super) fn rank(plan: &Plan) -> (u32, Money) {
    (plan.cost.unpriced, plan.cost.month)
}
