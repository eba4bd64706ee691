//! A target of backups at its limit in bytes while the machine has room.

use super::backup::{FILES, FILES_PER_DISK, Target, command, targets, waits};
use super::rule::{Candidate, Rule, source};
use super::signs::{is_near, throttling_caps};
use crate::case::{Case, amount};
use crate::change::Change;
use crate::follow::NEAR;
use crate::system::{Cap, On};
use weir_core::Cap as Kind;
use weir_report::diagnosis::{Confidence, Group};
use weir_report::number::percent;

pub(super) const RULE: Rule = Rule {
    id: 219,
    name: "backup-targets",
    group: Group::Layout,
    priority: 100,
    source: source::BACKUP,
    finds: "backups are throttled by their disks while the machine has headroom",
    find,
};

/// Reads of what is backed up take as much of the machine's limit as the writes (article 004).
const HALF: f64 = 0.5;

fn find(case: &Case<'_>, rule: &Rule) -> Vec<Candidate> {
    targets(case).into_iter().filter_map(|target| candidate(case, rule, &target)).collect()
}

fn candidate(case: &Case<'_>, rule: &Rule, target: &Target) -> Option<Candidate> {
    let written = target.written(case)?;
    let is_full =
        |cap: &usize| case.system.caps[*cap].kind == Kind::DiskBytes && is_near(case, *cap);
    let full = target.caps(case).into_iter().find(is_full)?;
    // A target that is only sometimes near its limit has enough throughput.
    let throttling_caps = throttling_caps(case);
    target.caps(case).iter().find(|cap| throttling_caps.contains(*cap))?;
    let each = case.system.caps[full].limit.rate;
    let first = &case.system.disks[*target.disks.first()?];
    let machine = first.host.filter(|_| !first.is_local).and_then(|host| {
        let is = |cap: &&Cap| cap.kind == Kind::HostUncachedBytes;
        let caps = case.caps_of_host(host).find(|(cap, _)| is(cap))?;
        Some((case.system.hosts[host].name.clone(), caps.0.limit.rate, caps.1.used.max()))
    });
    let (host, limit, used) = machine?;
    let now = target.disks.len();
    let wanted = disks_for(limit * HALF, each);
    if used >= NEAR || wanted <= now {
        return None;
    }
    let name = target.name.clone();
    let text = format!(
        "backups to {name} are throttled at {} by {now} {}, and {host} could write {}: {wanted} of these \
         disks would saturate it",
        amount(true, each * weir_report::number::float(now as u64)),
        if now == 1 { "disk" } else { "disks" },
        amount(true, limit * HALF)
    );
    let mut finding = rule.finding(name.clone(), text);
    finding.cap = Some(Kind::DiskBytes.name().to_owned());
    finding.confidence = Confidence::High;
    finding.evidence.push(format!("write rate {} on average", amount(true, written)));
    finding.evidence.push(format!(
        "the machine's limit on remote storage, {}, is used to {} at most; half of it is for reads of \
         the source",
        amount(true, limit),
        percent(used)
    ));
    finding.evidence.extend(waits(case));
    let files = (wanted * FILES_PER_DISK).min(FILES);
    finding.action = format!(
        "write backups to {wanted} disks of this kind, single or striped, with {files} files in total: {}",
        command(files)
    );
    let change = match (target.on, case.layout, u32::try_from(wanted)) {
        (On::Stripe(_), Some(_), Ok(columns)) => Some(Change::Columns { name, columns }),
        _ => None,
    };
    Some(Candidate::new(finding, change))
}

/// Returns the number of disks that reach a rate together.
fn disks_for(rate: f64, each: f64) -> usize {
    let disks = (rate / each.max(1.0) - 1e-9).ceil().max(1.0);
    // Above any number of disks a machine takes.
    usize::try_from(weir_report::number::whole(disks)).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use crate::bed::{EntityLoad, TestBed};
    use crate::change::Change;

    fn layout(columns: u32) -> String {
        format!(
            "edition = \"azure-premium-2015\"\nhost = {{ size = \"DS14\" }}\n[[stripe]]\nname = \
             \"target\"\nunit = \"64 KiB\"\nvolumes = {{ count = {columns}, tier = \"P10\" \
             }}\n[[file]]\nname = \"full\"\nrole = \"backup\"\nsize = \"50 GiB\"\non = \
             \"target\"\n"
        )
    }

    #[test]
    fn article_004_two_p30_saturate_a_ds14() {
        // 191.6 of 200 MiB/s, as four files on one disk come to.
        let text = "edition = \"azure-premium-2015\"\nhost = { size = \"DS14\" }\n[[volume]]\nname \
                    = \"target\"\ntier = \"P30\"\n[[file]]\nname = \"full\"\nrole = \
                    \"backup\"\nsize = \"50 GiB\"\non = \"target\"\n";
        let bed =
            TestBed::layout(text).disk("target", EntityLoad::writes(191.6).kib(1024.0).ms(94.0));
        let found = bed.found("backup-targets");
        let [finding] = &found[..] else { panic!("{found:?}") };
        assert!(finding.action.contains("2 disks"), "{}", finding.action);
        assert!(finding.action.contains("8 files"), "{}", finding.action);
    }

    #[test]
    fn a_stripe_gets_columns_only_if_it_needs_them() {
        let bed = |columns, rate| {
            let does = EntityLoad::writes(rate).kib(1024.0).ms(94.0);
            TestBed::layout(&layout(columns)).disk("target", does).findings()
        };
        let change = |found: Vec<crate::rules::Candidate>| {
            let own = found.into_iter().find(|own| own.finding.rule == "backup-targets")?;
            own.change
        };
        let more = Change::Columns { name: "target".to_owned(), columns: 3 };
        assert_eq!(change(bed(2, 195.0)), Some(more));
        assert_eq!(change(bed(3, 290.0)), None);
        // Three quarters of the limit, as with one file.
        assert_eq!(change(bed(2, 150.0)), None);
    }
}
