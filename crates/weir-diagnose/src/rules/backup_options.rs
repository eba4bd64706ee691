//! Options of backups against the practices of article 004: buffers, transfers and files.

use super::backup::command;
use super::rule::{Candidate, Rule, source};
use crate::backup::{self, Backup, FILES, Limit, PER_DISK, TRANSFER};
use crate::case::{Case, size};
use weir_observe::attribute;
use weir_report::diagnosis::{Confidence, Finding, Group};

pub(super) const BUFFERS: Rule = Rule {
    id: 222,
    name: "backup-buffers",
    group: Group::Layout,
    priority: 150,
    source: source::BACKUP,
    finds: "BUFFERCOUNT of a backup was set by hand",
    find: |case, rule| each(case, rule, buffers),
};

pub(super) const TRANSFERS: Rule = Rule {
    id: 223,
    name: "backup-transfer-size",
    group: Group::Layout,
    priority: 150,
    source: source::BACKUP,
    finds: "the transfers of a backup are smaller than 4 MiB",
    find: |case, rule| each(case, rule, transfers),
};

pub(super) const STRIPES: Rule = Rule {
    id: 224,
    name: "backup-files",
    group: Group::Layout,
    priority: 150,
    source: source::BACKUP,
    finds: "a backup writes fewer than four files to each of its disks, or many to a local SSD",
    find: |case, rule| each(case, rule, stripes),
};

/// Priority of advice that changes nothing while a cap limits the backup.
const NOTE: u8 = 200;

/// The program whose options these are.
const SQL_SERVER: [&str; 2] = ["SQL Server", "Weir"];

fn each(
    case: &Case<'_>,
    rule: &Rule,
    of: fn(&Case<'_>, &Rule, &Backup<'_>) -> Option<Finding>,
) -> Vec<Candidate> {
    let all = backup::all(case).into_iter().filter(Backup::is_long);
    let own = all.filter(|own| {
        own.entity.text(attribute::TOOL).is_some_and(|tool| SQL_SERVER.contains(&tool))
    });
    own.filter_map(|own| of(case, rule, &own)).map(Candidate::from).collect()
}

/// Lowers the priority of advice that brings nothing while a cap holds the backup.
fn weighed(case: &Case<'_>, own: &Backup<'_>, mut finding: Finding) -> Finding {
    let known = backup::attribute(case, own);
    if let Some(Limit::Cap(_, cap)) = known.limit {
        finding.priority = NOTE;
        let cap = case.system.caps[cap].kind.name();
        finding.evidence.push(format!("no effect on this backup, which is limited by {cap}"));
    }
    finding
}

fn buffers(case: &Case<'_>, rule: &Rule, own: &Backup<'_>) -> Option<Finding> {
    let computed = own.computed_buffers();
    let set = own.entity.number(attribute::BUFFER_COUNT_SET);
    // A trace prints the number, and not how it was chosen.
    let printed = own.entity.number(attribute::BUFFER_COUNT);
    let has_readers = own.entity.number(attribute::READERS).is_some();
    let printed = printed.filter(|own| has_readers && computed.is_some_and(|other| *own != other));
    let count = set.or(printed)?;
    let mut text = format!("{} has {count} buffers that were set by hand", own.name());
    if let Some(computed) = computed {
        text += &format!("; SQL Server would take {computed}");
    }
    let mut finding = rule.finding(own.name(), text);
    finding.confidence = if set.is_some() { Confidence::High } else { Confidence::Medium };
    let memory = count.saturating_mul(own.max_transfer());
    let sets = own.entity.number(attribute::BUFFER_SETS).unwrap_or(1);
    finding.evidence.push(format!(
        "they take {} outside of the buffer pool",
        size(memory.saturating_mul(sets))
    ));
    "leave BUFFERCOUNT out: it is computed from stripes and readers; other numbers brought nothing, and \
     sometimes less"
        .clone_into(&mut finding.action);
    Some(weighed(case, own, finding))
}

fn transfers(case: &Case<'_>, rule: &Rule, own: &Backup<'_>) -> Option<Finding> {
    let bytes = own.entity.number(attribute::MAX_TRANSFER_BYTES).filter(|own| *own < TRANSFER)?;
    let text = format!("{} has transfers of {} at most", own.name(), size(bytes));
    let mut finding = rule.finding(own.name(), text);
    finding.confidence = Confidence::High;
    finding.action = format!("set MAXTRANSFERSIZE = {TRANSFER}, the largest");
    Some(weighed(case, own, finding))
}

fn stripes(case: &Case<'_>, rule: &Rule, own: &Backup<'_>) -> Option<Finding> {
    let stripes = own.stripes()?;
    let disks = Backup::disks(case, &own.targets).len() as u64;
    let best = own.best_stripes(case);
    if disks == 0 || own.is_to_local_ssd(case) || stripes >= best {
        return None;
    }
    // The finding of its limit says it.
    let limit = backup::attribute(case, own).limit;
    if matches!(limit, Some(Limit::Stripes | Limit::Buffers)) {
        return None;
    }
    let names = Backup::names(case, &own.targets).join(", ");
    let text = format!(
        "{} writes {stripes} files to {disks} disks ({names}): {best} are better",
        own.name()
    );
    let mut finding = rule.finding(own.name(), text);
    finding
        .evidence
        .push(format!("{PER_DISK} files for each disk and up to {FILES} in all were best"));
    finding.action = command(usize::try_from(best).unwrap_or(1));
    Some(weighed(case, own, finding))
}
