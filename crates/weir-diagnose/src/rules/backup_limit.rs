//! The limit of a backup: a cap, too little in flight, or compression.

use super::backup::command;
use super::rule::{BLIND, Candidate, Rule, source};
use crate::backup::{self, Attributed, Backup, Limit, PER_DISK, Refuted, Side, TRANSFER, Trial};
use crate::case::{Case, amount, cap_words, size};
use crate::system::{Cap, On, Owner};
use weir_core::Cap as Kind;
use weir_report::diagnosis::{Confidence, Finding, Group};
use weir_report::number::{float, percent, rate, time, whole};

pub(super) const RULE: Rule = Rule {
    id: 113,
    name: "backup-limit",
    group: Group::Throttling,
    priority: 5,
    source: source::BACKUP,
    finds: "the limit of a backup: its source, its target, the machine, its stripes and buffers, or \
            compression",
    find,
};

/// A limit that is no cap.
const PIPELINE: u8 = 15;

/// Caps that are named as not reached.
const MOST: usize = 5;

fn find(case: &Case<'_>, rule: &Rule) -> Vec<Candidate> {
    let all = backup::all(case).into_iter().filter(Backup::is_long);
    all.map(|own| limit_finding(case, rule, &own).into()).collect()
}

fn limit_finding(case: &Case<'_>, rule: &Rule, own: &Backup<'_>) -> Finding {
    let known = backup::attribute(case, own);
    if let Some(refuted) = known.refuted {
        return does_not_fit(case, rule, own, (&known, refuted));
    }
    let Some(limit) = known.limit else { return unknown(case, rule, own, &known) };
    let mut finding = rule.finding(own.name(), said(case, own, &known, limit));
    finding.confidence = known.confidence;
    if let Limit::Cap(_, cap) = limit {
        finding.cap = Some(case.system.caps[cap].kind.name().to_owned());
    } else {
        (finding.group, finding.priority) = (Group::NotTheStorage, PIPELINE);
    }
    finding.evidence = evidence(case, own, &known);
    finding.ruled_out = ruled_out(case, &known, limit);
    finding.action = action(case, own, limit);
    if let Some(trial) = trial(case, own, limit) {
        finding.evidence.extend(trial.words(case, own));
    }
    finding
}

/// Returns the rate of a backup in words.
fn speed(own: &Backup<'_>) -> String {
    own.facts.rate().map_or_else(String::new, |rate| format!(" reads {} and", amount(true, rate)))
}

fn said(case: &Case<'_>, own: &Backup<'_>, known: &Attributed, limit: Limit) -> String {
    let name = own.name();
    let highest = known.used.first().map_or_else(String::new, |(_, cap, used)| {
        let cap = &case.system.caps[*cap];
        let owner = case.system.owner_name(cap);
        format!(
            ", and no limit is used to more than {} ({} of {owner})",
            percent(*used),
            cap.kind.name()
        )
    });
    let stripes = own.stripes().map_or_else(String::new, |count| match count {
        1 => " to 1 file".to_owned(),
        count => format!(" to {count} files"),
    });
    match limit {
        Limit::Cap(side, cap) => {
            let own_cap = &case.system.caps[cap];
            let owner = case.system.owner_name(own_cap);
            let most = amount(own_cap.counts_bytes(), own_cap.limit.rate);
            let words = cap_words(own_cap.kind);
            let of_each = |what: &str, places: &[On]| match Backup::disks(case, places).len() {
                0 | 1 => format!("its {what} {owner}"),
                count => format!("each of the {count} disks of its {what}s"),
            };
            let whose = match side {
                Side::Source => of_each("source", &own.sources),
                Side::Target => of_each("target", &own.targets),
                Side::Machine => format!("the machine {owner}, which its reads and writes share"),
            };
            format!("{name}{} is limited by the {words} of {whose}: {most}", speed(own))
        }
        Limit::Stripes => format!(
            "{name}{stripes}{} keeps too few writes in flight{highest}: more files at a time are faster",
            speed(own)
        ),
        Limit::Buffers => format!(
            "{name}{stripes}{} is limited by its buffers{highest}: larger transfers and more files are faster",
            speed(own)
        ),
        Limit::LocalSsd => format!(
            "{name}{stripes}{} writes more than 2 files to the machine's own SSD, which is slower with \
             more{highest}",
            speed(own)
        ),
        Limit::Compression => format!(
            "{name}{} waits for compression: neither buffers nor writes are in flight{highest}",
            speed(own)
        ),
    }
}

fn evidence(case: &Case<'_>, own: &Backup<'_>, known: &Attributed) -> Vec<String> {
    let mut all = Vec::new();
    if let (Some(bytes), Some(seconds)) = (own.facts.bytes, own.facts.seconds()) {
        all.push(format!("{} were read in {}", size(whole(bytes)), time(seconds * 1e9)));
    }
    if let (Some(written), Some(ratio)) = (own.facts.written, own.ratio()) {
        all.push(format!("{} were written, {} of it", size(whole(written)), percent(ratio)));
    }
    if let (Some(reads), Some(writes)) = (known.reads, known.writes) {
        let buffers =
            own.buffers().map_or_else(String::new, |count| format!(" of {count} buffers"));
        all.push(format!(
            "{} reads and {} writes of {} are in flight{buffers}",
            rate(reads),
            rate(writes),
            size(own.max_transfer())
        ));
    }
    for (what, places) in [("source", &own.sources), ("target", &own.targets)] {
        if !places.is_empty() {
            let names = Backup::names(case, places).join(", ");
            all.push(format!("{what}: {names}, disks: {}", Backup::disks(case, places).len()));
        }
    }
    if own.targets.is_empty() && !own.unknown_targets.is_empty() {
        all.push(format!(
            "its target {} is not in the layout, so the limits of its targets are unknown: state \
             where it is with --map TARGET=VOLUME",
            own.unknown_targets.join(", ")
        ));
    }
    if known.reads.is_none() && !known.used.is_empty() {
        all.push(
            "its disks were not observed: the use of limits follows from its rate, which includes the \
             time before its first transfer"
                .to_owned(),
        );
    }
    all.extend(super::backup::waits(case));
    all
}

/// Returns the caps that were not reached.
fn ruled_out(case: &Case<'_>, known: &Attributed, limit: Limit) -> Vec<String> {
    let is_it = |cap: usize| matches!(limit, Limit::Cap(_, own) if own == cap);
    let others = known.used.iter().filter(|(_, cap, _)| !is_it(*cap));
    let words = |(_, cap, used): &(Side, usize, f64)| {
        let cap = &case.system.caps[*cap];
        let owner = case.system.owner_name(cap);
        let most = amount(cap.counts_bytes(), cap.limit.rate);
        format!("{} of {owner}: {} of {most}", cap.kind.name(), percent(used.min(1.0)))
    };
    others.take(MOST).map(words).collect()
}

fn action(case: &Case<'_>, own: &Backup<'_>, limit: Limit) -> String {
    let best = own.best_stripes(case).max(own.stripes().unwrap_or(0).min(backup::FILES));
    let options =
        format!("{}; leave BUFFERCOUNT alone", command(usize::try_from(best).unwrap_or(1)));
    let compress = match own.is_compressed() {
        true => "",
        false => ", or compress it, so that less is written",
    };
    match limit {
        Limit::Cap(_, cap) if is_of_small_transfers(case, own, cap) => format!(
            "use larger transfers, which count as fewer operations: MAXTRANSFERSIZE = {TRANSFER}"
        ),
        Limit::Cap(Side::Source, _) => {
            "the source is saturated, so changes at the target do not help; use the next tier or more \
             disks for the data, or back up less data (differential)"
                .to_owned()
        }
        Limit::Cap(Side::Target, cap) => format!("{}{compress}", targets(case, own, cap)),
        Limit::Cap(Side::Machine, _) => format!(
            "more disks and more files do not help: use a machine with a higher limit, or write \
             elsewhere (a URL, or up to 2 files on the local SSD){compress}"
        ),
        Limit::Stripes | Limit::Buffers => format!(
            "write {best} files at a time, {PER_DISK} for each disk and up to {} in all, with the \
             largest transfers: {options}",
            backup::FILES
        ),
        Limit::LocalSsd => "write at most 2 files to the local SSD, and copy them away".to_owned(),
        Limit::Compression => {
            "use more or faster processors, or a lower compression level; larger disks and more files \
             do not help"
                .to_owned()
        }
    }
}

/// Tells whether a cap counts operations, and larger transfers would take fewer.
fn is_of_small_transfers(case: &Case<'_>, own: &Backup<'_>, cap: usize) -> bool {
    let cap = &case.system.caps[cap];
    let unit = match cap.owner {
        Owner::Disk(disk) => case.system.disks[disk].io_unit,
        Owner::Host(_) => None,
    };
    let written = float(own.max_transfer()) * own.ratio().unwrap_or(1.0);
    let is_small = unit.map_or(own.max_transfer() < TRANSFER, |unit| written < unit);
    !cap.counts_bytes() && is_small
}

/// Returns how many disks of a target's kind come to half of the machine's limit.
fn targets(case: &Case<'_>, own: &Backup<'_>, cap: usize) -> String {
    let limit = &case.system.caps[cap];
    let disks = Backup::disks(case, &own.targets);
    let Owner::Disk(disk) = limit.owner else { return String::new() };
    let host = case.system.disks[disk].host;
    let is_machine = |cap: &&Cap| {
        cap.kind == Kind::HostUncachedBytes
            && matches!(cap.owner, Owner::Host(own) if Some(own) == host)
    };
    let machine = case.system.caps.iter().find(is_machine).map(|cap| cap.limit.rate / 2.0);
    let each = case.system.disks[disk].limits.bytes.map(|limit| limit.rate);
    let wanted = machine.zip(each).map(|(machine, each)| whole((machine / each.max(1.0)).ceil()));
    match wanted.filter(|wanted| *wanted > disks.len() as u64) {
        Some(wanted) => format!(
            "write to {wanted} disks of this kind, which come to half of the machine's limit ({}), with \
             {} files in all",
            amount(true, machine.unwrap_or(0.0)),
            (wanted * PER_DISK).min(backup::FILES)
        ),
        None => "write to more or larger disks".to_owned(),
    }
}

/// Returns the options that are worth a simulation.
fn trial(case: &Case<'_>, own: &Backup<'_>, limit: Limit) -> Option<Trial> {
    let is_pipeline = matches!(limit, Limit::Stripes | Limit::Buffers);
    let before = Trial::of_backup(own).filter(|_| is_pipeline)?;
    let stripes = own.best_stripes(case).max(before.stripes);
    Some(Trial { stripes, max_transfer: before.max_transfer.max(TRANSFER), buffers: None })
}

/// Says that a backup cannot be one of this layout: it is faster than the layout allows.
fn does_not_fit(
    case: &Case<'_>,
    rule: &Rule,
    own: &Backup<'_>,
    (known, refuted): (&Attributed, Refuted),
) -> Finding {
    let Refuted { side, cap, rate, most } = refuted;
    let cap = &case.system.caps[cap];
    let (rate, most) = (amount(true, rate), amount(true, most));
    let (did, whose) = match side {
        Side::Source => ("reads", names(case, "source", &own.sources)),
        Side::Target => ("writes", names(case, "target", &own.targets)),
        Side::Machine => {
            let owner = case.system.owner_name(cap);
            ("reads and writes", format!("the machine {owner} allows"))
        }
    };
    let text = format!(
        "the layout does not fit {}: it {did} {rate}, more than the {most} that {whose}",
        own.name()
    );
    let mut finding = rule.finding(own.name(), text);
    (finding.group, finding.priority) = (Group::Evidence, BLIND);
    finding.confidence = Confidence::High;
    finding.evidence = evidence(case, own, known);
    if side != Side::Source && own.facts.written.is_none() && !own.is_compressed() {
        finding.evidence.push(
            "the bytes written are taken to be those read; a compressed backup writes fewer, as the \
             statement or msdb says"
                .to_owned(),
        );
    }
    let target = own.unknown_targets.first().map_or("F:", String::as_str);
    finding.action = match side {
        Side::Target => {
            "give the layout of the system that made the backup, or say which volumes its targets are: \
             --map TARGET=VOLUME"
                .to_owned()
        }
        _ => format!(
            "give the layout of the system that made the backup, with its data files ([[file]], role = \
             \"data\") on the volumes that it reads, and say which volumes it writes to: --map \
             {target}=VOLUME"
        ),
    };
    finding
}

/// Returns places with the limit that they give, as the end of a sentence.
fn names(case: &Case<'_>, what: &str, places: &[On]) -> String {
    let all = Backup::names(case, places);
    let verb = if all.len() == 1 { "gives" } else { "give together" };
    let plural = if all.len() == 1 { "" } else { "s" };
    format!("its {what}{plural} {} {verb}", all.join(", "))
}

fn unknown(case: &Case<'_>, rule: &Rule, own: &Backup<'_>, known: &Attributed) -> Finding {
    let has_limits = !known.used.is_empty();
    let missing = own.unknown_targets.first().filter(|_| own.targets.is_empty());
    let text = match (has_limits, missing) {
        (true, Some(target)) => format!(
            "the limit of {} cannot be told: its target {target} is not in the layout, and no limit of \
             its sources explains its rate",
            own.name()
        ),
        (true, None) => format!(
            "the limit of {} cannot be told: its rate is below all limits, and its disks were not \
             observed",
            own.name()
        ),
        (false, _) => {
            format!("the limit of {} cannot be told: no limit of its disks is known", own.name())
        }
    };
    let mut finding = rule.finding(own.name(), text);
    (finding.group, finding.priority) = (Group::Evidence, BLIND);
    finding.confidence = Confidence::Low;
    finding.evidence = evidence(case, own, known);
    if let Some(target) = missing.filter(|_| case.layout.is_some()) {
        finding.action = format!(
            "say on which volume of the layout its target lies, for example --map {target}=VOLUME"
        );
        return finding;
    }
    finding.action = if has_limits {
        "observe its disks while it runs (iostat -x, PerfMon), and diagnose that beside it"
    } else if own.targets.is_empty() && case.layout.is_some() {
        "say which volumes are its targets: --map TARGET=VOLUME, for example --map F:=backup1"
    } else {
        "give the limits with --layout, and its targets with --map TARGET=VOLUME"
    }
    .to_owned();
    finding
}

/// Drops findings that say the same of the disks of a backup as the finding of its limit.
pub(super) fn without_repeats(case: &Case<'_>, found: &mut Vec<Candidate>) {
    const REPEATS: [&str; 12] = [
        "disk-operations",
        "disk-bytes",
        "stripe-column",
        "host-uncached",
        "host-cached",
        "near-limit",
        "depth-low",
        "depth-high",
        "backup-stripes",
        "backup-targets",
        "bursts-or-slow",
        "vm-below-disks",
    ];
    let all = backup::all(case);
    // A short backup lasts some seconds, and throttles no other load.
    let are_short = !all.is_empty() && !all.iter().any(Backup::is_long);
    let is_limit =
        |own: &Candidate| own.finding.check_id == RULE.id && own.finding.group != Group::Evidence;
    if !are_short && !found.iter().any(is_limit) {
        return;
    }
    let mut own: Vec<String> = Vec::new();
    for backup in &all {
        for places in [&backup.sources, &backup.targets] {
            own.extend(Backup::names(case, places));
            for disk in Backup::disks(case, places) {
                let disk = &case.system.disks[disk];
                own.push(disk.name.clone());
                own.extend(disk.host.map(|host| case.system.hosts[host].name.clone()));
            }
        }
    }
    // The backup throttles other load on these disks, so their findings stay.
    let is_alone = case.named().all(|judged| {
        let is_own = own.contains(&judged.name(case));
        is_own || float(whole(judged.facts.total.operations.unwrap_or(0.0))) == 0.0
    });
    if is_alone {
        found.retain(|one| {
            !REPEATS.contains(&one.finding.rule)
                || !one.finding.subject.split(", ").all(|name| own.iter().any(|own| own == name))
        });
    }
}
