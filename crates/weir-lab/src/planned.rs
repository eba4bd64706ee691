//! A need, and the cheapest layout that meets it.

use crate::error::LabError;
use crate::file::{Lab, RunKeys};
use weir_catalog::Catalog;
use weir_plan::need::NeedFile;
use weir_plan::{Outcome, Plan, Question, plan};

/// The outcome of planning for a need.
pub(crate) struct Planned {
    pub(crate) plan: Option<Plan>,
}

impl Planned {
    /// Plans for the need of a run.
    pub(crate) fn read(
        lab: &Lab,
        keys: &RunKeys,
        text: &str,
        catalog: &Catalog,
    ) -> Result<Self, LabError> {
        let file = NeedFile::read(&format!("labs/{}/lab.toml, run {:?}", lab.name, keys.id), text)?;
        let (need, _) = file.need()?;
        let Some(name) = &file.edition else {
            let reason = format!("run {:?} has a need without edition", keys.id);
            return Err(LabError::Lab { lab: lab.name.clone(), reason });
        };
        let edition = catalog.edition(name).map_err(weir_plan::PlanError::from)?;
        let (region, currency) = (file.region.as_deref(), file.currency.as_deref());
        let book = edition
            .price_book(region, currency, file.os.as_deref())
            .map_err(weir_plan::PlanError::from)?;
        let (prices, wishes) = (book.as_ref(), file.wishes());
        let question = Question { catalog, edition, prices, need: &need, wishes: &wishes };
        Ok(Self {
            plan: match plan(&question)? {
                Outcome::Met(answer) => Some(answer.plan),
                Outcome::NotMet(_) => None,
            },
        })
    }
}
