//! `weir plan --compare`: one need on several clouds.

use super::need::observed_need;
use super::prices::is_currency;
use crate::cli::PlanArgs;
use crate::error::{CliError, NO};
use crate::output;
use weir_catalog::Catalog;
use weir_plan::compare::{Cloud, Contest, compare, compare_report};
use weir_plan::need::NeedFile;

pub(super) fn run(args: &PlanArgs, catalog: &Catalog) -> Result<u8, CliError> {
    let (file, mut notes) = observed_need(args, catalog)?;
    check(&file)?;
    let (need, assumed) = file.need()?;
    notes.extend(assumed);
    let wishes = file.wishes();
    let code = file.currency.as_deref().map(code).transpose()?;
    let (currency, os) = (code.as_deref(), file.os.as_deref());
    let cloud = |(name, region): &(String, Option<String>)| {
        Cloud::find(catalog, (name, region.as_deref()), currency, os)
    };
    let mut clouds: Vec<Cloud<'_>> = args.compare.iter().map(cloud).collect::<Result<_, _>>()?;
    check_names(&clouds)?;
    tell_apart(&mut clouds);
    let contest = Contest {
        catalog,
        need: &need,
        wishes: &wishes,
        budget: args.budget,
        currency,
        meets_latency: args.verify,
    };
    let contenders = compare(&contest, &clouds)?;
    let report = compare_report(&contest, &clouds, &contenders, notes);
    output::print_detailed(&report, args.output.format(), args.verbose)?;
    Ok(if report.is_met { 0 } else { NO })
}

/// Rejects keys of the need that belong to one cloud.
fn check(file: &NeedFile) -> Result<(), CliError> {
    let stray = [
        ("edition", file.edition.is_some(), "--compare names the editions"),
        ("region", file.region.is_some(), "write --compare CLOUD=REGION"),
        ("host", file.host.is_some(), "clouds have different machines"),
        ("disks", !file.disks.is_empty(), "clouds have different disks"),
        ("keep", file.keep.is_some(), "a layout in use is of one cloud"),
        ("no_downtime", file.no_downtime, "a layout in use is of one cloud"),
    ];
    match stray.into_iter().find(|(_, is_said, _)| *is_said) {
        Some((key, _, why)) => {
            let file = file.file.as_deref().unwrap_or("the need");
            let words = format!("{file}: {key} does not apply to --compare: {why}; leave it out");
            Err(CliError::Refused(words))
        }
        None => Ok(()),
    }
}

/// Returns a currency code as price lists spell it.
fn code(currency: &str) -> Result<String, CliError> {
    match is_currency(currency) {
        true => Ok(currency.to_ascii_uppercase()),
        false => Err(CliError::Refused(format!(
            "currency {currency:?} is not a currency code; use three letters, for example USD"
        ))),
    }
}

/// Adds the region to the names of clouds that are compared in several regions.
fn tell_apart(clouds: &mut [Cloud<'_>]) {
    let names: Vec<String> = clouds.iter().map(|own| own.name.clone()).collect();
    for cloud in clouds {
        let same = names.iter().filter(|own| own.eq_ignore_ascii_case(&cloud.name));
        let is_ambiguous = same.count() > 1;
        if let Some(book) = cloud.prices.as_ref().filter(|_| is_ambiguous) {
            cloud.name = format!("{} in {}", cloud.name, book.region());
        }
    }
}

/// Rejects an edition that is named twice with the same prices.
fn check_names(clouds: &[Cloud<'_>]) -> Result<(), CliError> {
    for (at, own) in clouds.iter().enumerate() {
        let is_same = |other: &&Cloud<'_>| {
            let region =
                |cloud: &Cloud<'_>| cloud.prices.as_ref().map(|book| book.region().to_owned());
            other.edition.name() == own.edition.name() && region(other) == region(own)
        };
        if let Some(other) = clouds[..at].iter().find(is_same) {
            return Err(CliError::Refused(format!(
                "--compare {},{}: both are {}; leave out one of the two",
                other.name,
                own.name,
                own.edition.name()
            )));
        }
    }
    Ok(())
}
