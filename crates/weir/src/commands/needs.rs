//! The need of `weir fit` and `weir tune`: a file, an observation, or both, on a layout.

use super::measured::{fill_for, measure_of};
use crate::cli::NeedArgs;
use crate::error::CliError;
use crate::input::{read, read_layout_text};
use std::path::Path;
use weir_catalog::Catalog;
use weir_layout::{Layout, Role};
use weir_observe::when::Hours;
use weir_plan::need::NeedFile;
use weir_plan::{Measure, Need};
use weir_tune::place::{assumed_places, size_of, with_files};

/// A need, and the layout with a file for each of its roles.
#[derive(Debug)]
pub(super) struct Needed {
    /// The need.
    pub(super) need: Need,
    /// The text of the layout.
    pub(super) text: String,
    /// True if the need counts on burst credits.
    pub(super) bursts: bool,
    /// Notes.
    pub(super) notes: Vec<String>,
}

/// Reads the need for a layout.
pub(super) fn needed(
    layout: &Path,
    args: &NeedArgs,
    catalog: &Catalog,
) -> Result<Needed, CliError> {
    let text = read_layout_text(layout, catalog)?.0;
    needed_on((layout, &text), args, None, catalog)
}

/// Reads the need of some hours of the day, or of all, for a layout with this text.
pub(super) fn needed_on(
    (layout, text): (&Path, &str),
    args: &NeedArgs,
    hours: Option<Hours>,
    catalog: &Catalog,
) -> Result<Needed, CliError> {
    let mut file = match &args.need {
        Some(path) => NeedFile::read(&path.display().to_string(), &read(path, "need file")?)?,
        None if args.load.is_empty() => {
            let words = "the load is missing: give --need FILE or --load OBSERVATION";
            return Err(CliError::Refused(words.to_owned()));
        }
        None => NeedFile::default(),
    };
    let name = layout.display().to_string();
    let resolved = Layout::parse(&name, text, catalog)?;
    let mut notes = Vec::new();
    let of_plans = for_plans(&file);
    if let (Some(path), false) = (&args.need, of_plans.is_empty()) {
        notes.push(format!(
            "{}: {} {} for weir plan, and not used here",
            path.display(),
            of_plans.join(", "),
            if of_plans.len() == 1 { "is" } else { "are" }
        ));
    }
    if !args.load.is_empty() {
        let own = measure_of(args.percentile, args.growth, &args.role, args.as_observed);
        // The rates of some hours are compared with others, so they stay as observed.
        let is_as_observed = own.is_as_observed || hours.is_some();
        let measure = Measure { hours, is_as_observed, ..own };
        notes.extend(fill_for(&mut file, &args.load, &measure, (resolved.clone(), catalog))?);
    }
    let roles = [
        (Role::Data, &mut file.data),
        (Role::Log, &mut file.log),
        (Role::Tempdb, &mut file.tempdb),
        (Role::Backup, &mut file.backup),
    ];
    let present: Vec<Role> =
        roles.iter().filter(|(_, keys)| keys.is_some()).map(|(role, _)| *role).collect();
    for (role, keys) in roles {
        if let Some(keys) = keys.as_mut().filter(|keys| keys.size.is_none()) {
            keys.size = size_of(&resolved, role, &present);
        }
    }
    let (need, assumed) = file.need()?;
    notes.extend(assumed);
    let text = with_files(&name, text, &need, catalog)?;
    notes.extend(assumed_places(&resolved, &Layout::parse(&name, &text, catalog)?));
    Ok(Needed { need, text, bursts: file.bursting.is_some(), notes })
}

/// Returns the keys of a need file that restrict layouts to choose from.
fn for_plans(file: &NeedFile) -> Vec<&'static str> {
    let all = [
        ("edition", file.edition.is_some()),
        ("region", file.region.is_some()),
        ("currency", file.currency.is_some()),
        ("os", file.os.is_some()),
        ("families", !file.families.is_empty()),
        ("disks", !file.disks.is_empty()),
        ("host", file.host.is_some()),
        ("architecture", file.architecture.is_some()),
        ("max_disks", file.max_disks.is_some()),
        ("max_files", file.max_files.is_some()),
        ("apart", file.apart.is_some()),
        ("filesystem", file.filesystem.is_some()),
        ("storage", file.storage.is_some()),
        ("licence_owned", file.licence_owned),
        ("engine", file.engine.is_some()),
        ("keep", file.keep.is_some()),
        ("no_downtime", file.no_downtime),
    ];
    all.into_iter().filter(|(_, is_given)| *is_given).map(|(key, _)| key).collect()
}
