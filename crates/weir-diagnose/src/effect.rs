//! The effect of a change: the observed load, simulated on the present and on the changed layout.

use crate::case::{Case, JudgedSubject};
use crate::change::Change;
use crate::report::groups::has_same_cause;
use crate::rules::{Candidate, InstanceStorage, storage_for};
use crate::seconds::at_s;
use crate::system::{On, SubjectId};
use std::fmt::Write as _;
use weir_layout::Layout;
use weir_report::diagnosis::{EffectPrice, EffectReport};
use weir_report::number::{Amount, Delta, percent, rate, whole};
use weir_report::run::RunReport;
use weir_sim::{Options, devices, simulate};
use weir_workload::{Isolated, fio, place};

/// Simulated time after the ramp, in seconds.
const SECONDS: u64 = 10;

/// Number of changes that are simulated.
const MOST: usize = 12;

/// Maximum relative difference between a simulated and an observed rate.
const ALIKE: f64 = 0.25;

/// Largest queue depth that is simulated.
const DEEPEST: f64 = 1024.0;

/// Simulates the proposed changes and adds their effects to the findings. `text` is the layout.
/// Returns notes on effects that could not be simulated. Of findings with the same cause, which a report
/// groups, only the first gets an effect.
#[must_use]
pub fn estimate(case: &Case<'_>, text: &str, found: &mut [Candidate]) -> Vec<String> {
    let mut changes: Vec<&mut Candidate> = Vec::new();
    for own in found.iter_mut().filter(|found| found.change.is_some()) {
        if !changes.iter().any(|first| has_same_cause(&first.finding, &own.finding)) {
            changes.push(own);
        }
    }
    if changes.is_empty() {
        return Vec::new();
    }
    let Some(jobs) = Jobs::new(case) else {
        let why = "effects of changes are not simulated: not all observed subjects are in the layout and under \
                   load";
        return vec![why.to_owned()];
    };
    let Some(before) = jobs.run(case, text, None) else {
        let why = "effects of changes are not simulated: the observed load does not fit the layout";
        return vec![why.to_owned()];
    };
    let mut notes = Vec::new();
    if changes.len() > MOST {
        let all = changes.len();
        notes.push(format!("the first {MOST} of {all} proposed changes are simulated"));
    }
    for found in changes.iter_mut().take(MOST) {
        let Some(change) = &found.change else { continue };
        if change.turns_cache_on() {
            notes.push(format!(
                "the effect of {} is not simulated: a cache serves repeated reads, and the observation does \
                 not show which reads repeat",
                change.words()
            ));
            continue;
        }
        let enlarged = with_storage(case, change);
        let fitting = [Some(change), enlarged.as_ref()].into_iter().flatten();
        let mut runs = fitting.map(|change| (change, jobs.run(case, text, Some(change))));
        let Some((change, after)) = runs.find_map(|(change, run)| Some((change, run?))) else {
            notes.push(format!(
                "the effect of {} is not simulated: the changed layout is invalid",
                change.words()
            ));
            continue;
        };
        // The figures are of the subject of the finding if it has load, otherwise of all.
        let own = jobs.index_of(case, &found.finding.subject);
        let (before, after) = (outcome(&before, own), outcome(&after, own));
        let observed = own.map_or(jobs.observed_iops, |job| jobs.each[job].1);
        if (before.iops / observed.max(1e-9) - 1.0).abs() > ALIKE {
            notes.push(format!(
                "no effect of {} on {} is stated: the simulation of the present layout does {} IOPS, and {} \
                 were observed",
                change.words(),
                found.finding.subject,
                rate(before.iops),
                rate(observed)
            ));
            continue;
        }
        let (price, price_note) = match price(case, text, change) {
            Ok((price, note)) => (Some(price), note),
            Err(note) => (None, Some(note)),
        };
        found.finding.effect = Some(EffectReport {
            change: change.words(),
            iops_before: before.iops,
            iops_after: after.iops,
            latency_before_ns: before.latency_ns,
            latency_after_ns: after.latency_ns,
            basis: format!(
                "simulated for {SECONDS} s; the simulation of the present layout does {} of the {} observed \
                 IOPS; throttled subjects keep their queue depth",
                percent(before.iops / observed.max(1e-9)),
                rate(observed)
            ),
            price,
            price_note,
        });
    }
    notes
}

/// Returns the prices before and after a change with their assumptions, or the reason why there are
/// none.
fn price(
    case: &Case<'_>,
    text: &str,
    change: &Change,
) -> Result<(EffectPrice, Option<String>), String> {
    let parsed = |text: &str| Layout::parse("layout.toml", text, case.catalog).ok();
    let layouts = parsed(text).zip(change.apply(text).as_deref().and_then(parsed));
    let (before, after) = layouts.ok_or("the changed layout is invalid")?;
    let edition = before.edition.as_deref().and_then(|name| case.catalog.edition(name).ok());
    let edition = edition.ok_or("the layout has no edition")?;
    let book = edition.price_book(before.region.as_deref(), None, None).ok().flatten();
    let book = book.ok_or_else(|| format!("{} has no prices", edition.name()))?;
    let [bill, changed] = [&before, &after].map(|own| own.bill(Some(edition), Some(&book)));
    let difference = bill.is_comparable(&changed);
    let mut unknown: Vec<String> = Vec::new();
    for line in bill.unknown().chain(changed.unknown()) {
        if !unknown.contains(&line.what) {
            unknown.push(line.what.clone());
        }
    }
    let price = EffectPrice {
        region: book.region().to_owned(),
        currency: book.currency().to_owned(),
        before: Amount(bill.month()),
        after: Amount(changed.month()),
        difference: difference.then(|| Delta::between(bill.month(), changed.month())),
        unknown,
    };
    let instances = before.hosts.iter().filter_map(|host| host.instance.as_ref());
    let is_assumed = instances.clone().any(|own| !own.is_storage_stated);
    let note = "the layout does not state the storage, so the size of the files is assumed";
    Ok((price, is_assumed.then(|| note.to_owned())))
}

/// Returns a change that also reserves the storage that larger files of an instance need.
fn with_storage(case: &Case<'_>, change: &Change) -> Option<Change> {
    let grown = change.sizes();
    let mut all = vec![change.clone()];
    for (host, own) in case.system.hosts.iter().enumerate() {
        let Some(room) = InstanceStorage::new(case, host) else { continue };
        let files = case.system.files.iter().enumerate();
        let files =
            files.filter(|(file, _)| case.system.host_of(SubjectId::File(*file)) == Some(host));
        let more = files.filter_map(|(_, file)| {
            let (_, to) = grown.iter().find(|(name, _)| *name == file.name)?;
            Some(to.saturating_sub(file.size?))
        });
        let needed = room.files + more.sum::<u64>();
        if needed > room.storage {
            let (host, bytes) = (own.name.clone(), storage_for(case, needed));
            all.push(Change::Storage { host, bytes });
        }
    }
    (all.len() > 1).then_some(Change::All(all))
}

/// Rates and latencies of jobs, together.
#[derive(Debug, Clone, Copy)]
struct Outcome {
    iops: f64,
    latency_ns: f64,
}

/// The load that was observed, as jobs.
struct Jobs {
    text: String,
    /// Export and observed IOPS of each job.
    each: Vec<(String, f64)>,
    observed_iops: f64,
}

impl Jobs {
    /// Builds a job for each metered subject. A throttled one keeps the observed queue depth;
    /// others repeat the observed rate.
    fn new(case: &Case<'_>) -> Option<Self> {
        let mut text = format!(
            "[global]\nioengine=libaio\ndirect=1\ntime_based\nruntime={SECONDS}\nramp_time=2\n"
        );
        let mut each = Vec::new();
        let mut exports: Vec<(String, Vec<JudgedSubject<'_>>)> = Vec::new();
        for judged in case.all().filter(|judged| judged.subject.is_meter) {
            let name = export(case, judged.subject.id)?;
            match exports.iter_mut().find(|(own, _)| *own == name) {
                Some((_, all)) => all.push(judged),
                None => exports.push((name, vec![judged])),
            }
        }
        for (name, all) in &exports {
            let iops: f64 = all.iter().map(busy_iops).sum();
            let load = Load::new(case, all);
            if iops < 0.5 || load.bytes < 512.0 {
                continue;
            }
            load.write(&mut text, each.len(), name, iops);
            each.push((name.clone(), iops));
        }
        let observed_iops = each.iter().map(|(_, iops)| iops).sum();
        (!each.is_empty()).then_some(Self { text, each, observed_iops })
    }

    /// Returns the index of a subject's job.
    fn index_of(&self, case: &Case<'_>, subject: &str) -> Option<usize> {
        let judged = case.all().find(|judged| judged.name(case) == subject);
        let name = judged.and_then(|judged| export(case, judged.subject.id));
        let name = name.unwrap_or_else(|| subject.to_owned());
        self.each.iter().position(|(export, _)| *export == name)
    }

    fn run(&self, case: &Case<'_>, layout: &str, change: Option<&Change>) -> Option<RunReport> {
        let text = match change {
            Some(change) => change.apply(layout)?,
            None => layout.to_owned(),
        };
        let layout = Layout::parse("layout.toml", &text, case.catalog).ok()?;
        let file = fio::parse("observed.fio", &self.text, &Isolated).ok()?;
        let placed = place(&file, &devices(&layout), &[]).ok()?;
        simulate(&layout, placed, &Options { seed: 1, ..Options::default() }).ok()
    }
}

/// Returns the result of a run, of one job or all.
fn outcome(report: &RunReport, of: Option<usize>) -> Outcome {
    let (mut iops, mut ns) = (0.0, 0.0);
    let own = report.jobs.iter().enumerate().filter(|(index, _)| of.is_none_or(|of| of == *index));
    for (_, job) in own {
        for side in [&job.read, &job.write] {
            iops += side.iops;
            ns += side.iops * side.latency.mean;
        }
    }
    Outcome { iops, latency_ns: if iops > 0.0 { ns / iops } else { 0.0 } }
}

/// Returns the export of a subject in the layout; that of a column is its stripe.
fn export(case: &Case<'_>, id: SubjectId) -> Option<String> {
    let of_disk = |disk: usize| match case.system.disks[disk].stripe {
        Some(stripe) => case.system.stripes[stripe].name.clone(),
        None => case.system.disks[disk].name.clone(),
    };
    Some(match id {
        SubjectId::Disk(disk) => of_disk(disk),
        SubjectId::Stripe(stripe) => case.system.stripes[stripe].name.clone(),
        SubjectId::File(file) => match case.system.files[file].on? {
            On::Disk(disk) => of_disk(disk),
            On::Stripe(stripe) => case.system.stripes[stripe].name.clone(),
        },
    })
}

/// Returns the IOPS at the time of the longest waits, otherwise the mean.
fn busy_iops(judged: &JudgedSubject<'_>) -> f64 {
    let moments = &judged.facts.moments;
    let seconds = |moment: &crate::follow::Moment| at_s(moment.to) - at_s(moment.from);
    let (operations, all): (f64, f64) = moments
        .iter()
        .fold((0.0, 0.0), |sum, moment| (sum.0 + moment.operations, sum.1 + seconds(moment)));
    if judged.waited.throttled().is_some() && all > 0.0 {
        operations / all
    } else {
        judged.facts.iops.mean().unwrap_or(0.0)
    }
}

/// Returns the total of all subjects on an export.
struct Load {
    bytes: f64,
    read_percent: f64,
    depth: f64,
    is_sequential: bool,
    is_throttled: bool,
}

impl Load {
    fn new(case: &Case<'_>, all: &[JudgedSubject<'_>]) -> Self {
        let sum = |of: fn(&JudgedSubject<'_>) -> f64| all.iter().map(of).sum::<f64>();
        let operations = sum(|judged| judged.facts.total.operations.unwrap_or(0.0)).max(1e-9);
        let bytes = sum(|judged| judged.facts.total.bytes.unwrap_or(0.0));
        let reads = sum(|judged| judged.facts.total.reads.unwrap_or(0.0));
        let is_throttled = all.iter().any(|judged| judged.waited.throttled().is_some());
        // A column has a part of each request: the stripe has them whole.
        let pieces =
            all.iter().filter(|judged| matches!(judged.subject.id, SubjectId::Disk(_))).count();
        let is_stripe = pieces > 1;
        let depth = sum(depth_when_busy);
        let is_log = all
            .iter()
            .any(|judged| case.roles(judged.subject.id).contains(&weir_layout::Role::Log));
        let depth = if is_stripe { depth.max(1.0) } else { depth };
        let read_percent = 100.0 * reads / operations;
        Self { bytes: bytes / operations, read_percent, depth, is_sequential: is_log, is_throttled }
    }

    fn write(&self, text: &mut String, number: usize, export: &str, iops: f64) {
        let block = (whole(self.bytes / 512.0) * 512).clamp(512, 4 << 20);
        let (read, write) =
            if self.is_sequential { ("read", "write") } else { ("randread", "randwrite") };
        let mixed = if self.is_sequential { "rw" } else { "randrw" };
        let percent = whole(self.read_percent).min(100);
        let rw = match percent {
            100 => read,
            0 => write,
            _ => mixed,
        };
        let _ = writeln!(text, "[job{number}]\nfilename=/dev/{export}\nrw={rw}\nbs={block}");
        if rw == mixed {
            let _ = writeln!(text, "rwmixread={percent}");
        }
        if self.is_throttled {
            let depth = whole(self.depth.clamp(1.0, DEEPEST));
            let _ = writeln!(text, "iodepth={depth}");
            return;
        }
        // Reads and writes have separate rates.
        let part = |percent: u64| whole(iops * weir_report::number::float(percent) / 100.0).max(1);
        let rate = match rw {
            rw if rw == mixed => format!("{},{}", part(percent), part(100 - percent)),
            _ => whole(iops).max(1).to_string(),
        };
        let _ = writeln!(text, "iodepth=64\nrate_iops={rate}");
    }
}

/// Returns the queue depth at the time of the longest waits, by Little's law.
fn depth_when_busy(judged: &JudgedSubject<'_>) -> f64 {
    let moments = &judged.facts.moments;
    let (ns, seconds) = moments.iter().fold((0.0, 0.0), |sum, moment| {
        let seconds = at_s(moment.to) - at_s(moment.from);
        (sum.0 + moment.ns, sum.1 + seconds)
    });
    if seconds > 0.0 { ns / 1e9 / seconds } else { judged.facts.depth.mean().unwrap_or(1.0) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bed::{EntityLoad, TestBed, with_case};
    use weir_report::diagnosis::Group;

    #[test]
    fn files_grow_into_storage_that_is_raised_for_them() {
        // 96 GiB are reserved and 32 used; the next tier begins at 129 GiB.
        let text = "edition = \"azure-mi-2018\"\nhost = { managed_instance = \"gp\", vcores = 8, storage \
                    = \"96 GiB\" }\n[[file]]\nname = \"data\"\nrole = \"data\"\nsize = \"32 GiB\"\n";
        let bed = TestBed::layout(text).file("db", "data", EntityLoad::reads(498.0).ms(40.0));
        let (notes, effect) = with_case(bed, |case, mut found| {
            let notes = estimate(case, text, &mut found);
            (notes, found.into_iter().find_map(|found| found.finding.effect))
        });
        assert_eq!(notes, [""; 0]);
        let effect = effect.expect("an effect");
        assert!(effect.change.ends_with("129 GiB of instance storage"), "{}", effect.change);
        assert!(effect.iops_after > 1.9 * effect.iops_before, "{effect:?}");
    }

    /// Returns the first effect that is simulated for a layout and a load.
    fn effect_on(text: &str, bed: TestBed) -> EffectReport {
        let effect = with_case(bed, |case, mut found| {
            let notes = estimate(case, text, &mut found);
            let effect = found.into_iter().find_map(|found| found.finding.effect);
            effect.ok_or(notes)
        });
        effect.expect("an effect")
    }

    #[test]
    fn findings_with_the_same_cause_have_one_effect() {
        let text = "edition = \"azure-mi-2018\"\nhost = { managed_instance = \"gp\", vcores = 8 }\n\
                    [[file]]\nname = \"one\"\nrole = \"data\"\nsize = \"64 GiB\"\n\
                    [[file]]\nname = \"two\"\nrole = \"data\"\nsize = \"64 GiB\"\n";
        let load = || EntityLoad::reads(498.0).ms(40.0);
        let bed = TestBed::layout(text).file("db", "one", load()).file("db", "two", load());
        let (changes, effects) = with_case(bed, |case, mut found| {
            assert_eq!(estimate(case, text, &mut found), [""; 0]);
            found.retain(|own| own.finding.group == Group::Throttling);
            let changes = found.iter().filter(|own| own.change.is_some()).count();
            (changes, found.iter().filter(|own| own.finding.effect.is_some()).count())
        });
        assert_eq!((changes, effects), (2, 1));
    }

    #[test]
    fn an_effect_states_the_price() {
        // The next tier begins at 129 GiB: 33 GiB more in steps of 32 are 64 at 0.137. Of 96 GiB
        // 32 are free, 8 vCores cost 8 x (122.230625 + 72.975) = 1,561.645.
        let text = "edition = \"azure-mi-now\"\nhost = { managed_instance = \"gp\", vcores = 8, storage \
                    = \"96 GiB\" }\n[[file]]\nname = \"data\"\nrole = \"data\"\nsize = \"32 GiB\"\n";
        let bed = TestBed::layout(text).file("db", "data", EntityLoad::reads(498.0).ms(40.0));
        let effect = effect_on(text, bed);
        assert!(effect.change.ends_with("160 GiB of instance storage"), "{}", effect.change);
        let price = effect.price.clone().expect("a price");
        assert_eq!(price.before.to_string(), "1,570.41");
        assert_eq!(price.after.to_string(), "1,579.18");
        assert_eq!(price.difference.map(|own| own.to_string()).as_deref(), Some("+8.77"));
        assert_eq!((price.currency.as_str(), effect.price_note.as_ref()), ("USD", None));
        let words = effect.words();
        let said = "1,579.18 instead of 1,570.41 USD a month (+8.77; West Europe)";
        assert!(words.contains(said), "{words}");
    }

    #[test]
    fn an_unknown_price_is_said_and_never_zero() {
        // A P20 costs 53.51 more than a P10, whatever the machine does.
        let disk = "[[volume]]\nname = \"data\"\ntier = \"P10\"\n[[file]]\nname = \"f\"\nrole = \
                    \"data\"\nsize = \"100 GiB\"\non = \"data\"\n";
        let text = format!("edition = \"azure-premium-2015\"\nhost = {{ size = \"DS4\" }}\n{disk}");
        let bed = TestBed::layout(&text).disk("data", EntityLoad::reads(498.0).ms(40.0));
        let effect = effect_on(&text, bed);
        let price = effect.price.clone().expect("a price");
        assert_eq!(price.difference.map(|own| own.to_string()).as_deref(), Some("+53.51"));
        assert_eq!(price.unknown, ["machine DS4"]);
        let words = effect.words();
        assert!(words.contains("without machine DS4, whose price is unknown"), "{words}");
        // An edition without prices.
        let text = "edition = \"azure-mi-2018\"\nhost = { managed_instance = \"gp\", vcores = 8, storage \
                    = \"1 TiB\" }\n[[file]]\nname = \"data\"\nrole = \"data\"\nsize = \"32 GiB\"\n";
        let bed = TestBed::layout(text).file("db", "data", EntityLoad::reads(498.0).ms(40.0));
        let effect = effect_on(text, bed);
        assert_eq!(effect.price, None);
        assert!(effect.words().contains("price unknown, azure-mi-2018 has no prices"));
    }
}
