//! A running server as the system that is tuned.

use crate::cli::TuneArgs;
use crate::error::CliError;
use crate::output;
use crate::signals::Signals;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;
use weir_diagnose::Change;
use weir_layout::hot_plug::NewVolume;
use weir_layout::{Export, Host, Layout, Volume};
use weir_report::number::grouped;
use weir_report::status::Status;
use weir_server::ServerError;
use weir_server::control::{Request, ask};
use weir_tune::counters::of_counters;
use weir_tune::system::ALIKE;
use weir_tune::{Measured, System, SystemError, Undone};
use weir_units::{Bytes, BytesPerSec, Iops, Share, Span};

/// The interval at which a wait looks for signals.
const TICK: Duration = Duration::from_millis(50);

/// Seconds in a row in which added files get their share of the requests: a header or a probe takes less.
const SHARED_SECONDS: u32 = 3;

/// A change that is applied.
struct Applied {
    words: String,
    /// Requests that undo it, in reverse order.
    undo: Vec<Request>,
}

/// A running server with the layout that is tuned.
pub(super) struct Served {
    control: PathBuf,
    window: Duration,
    settle: Duration,
    /// True if volumes and hosts keep their burst credits.
    bursts: bool,
    signals: Signals,
    /// True once burst credits were emptied.
    has_spent: bool,
    /// Requests that fill the emptied buckets as before.
    credits: Vec<Request>,
    /// The size of each volume when the walk begins, in bytes.
    sizes: BTreeMap<String, u64>,
    applied: Vec<Applied>,
    /// The longest wait for requests to a file that was added.
    file_wait: Duration,
    /// Deletions of files that were added and stay.
    stay: Vec<Request>,
    /// Files that were added, and have no share of the requests yet.
    unused: Vec<String>,
}

impl Served {
    pub(super) fn new(control: &Path, args: &TuneArgs, bursts: bool) -> Result<Self, CliError> {
        let time = |given: Option<Span>, default| {
            Duration::from_nanos(given.unwrap_or(Span::from_secs(default)).nanos())
        };
        Ok(Self {
            control: control.to_owned(),
            window: time(args.window, 10),
            settle: time(args.settle, 2),
            file_wait: time(args.file_wait, 600),
            stay: Vec::new(),
            unused: Vec::new(),
            bursts,
            signals: Signals::catch()?,
            has_spent: false,
            credits: Vec::new(),
            sizes: BTreeMap::new(),
            applied: Vec::new(),
        })
    }

    /// Returns the exit code for a received signal.
    pub(super) fn signalled(&self) -> Option<u8> {
        self.signals.code()
    }

    /// Compares the layout with that of the server.
    pub(super) fn check(&mut self, name: &str, layout: &Layout) -> Result<(), CliError> {
        let status = self.status()?;
        let differences = differences(layout, &status);
        if differences.is_empty() {
            let volumes = status.hosts.into_iter().flat_map(|host| host.volumes);
            self.sizes = volumes.map(|own| (own.name, own.size_bytes)).collect();
            return Ok(());
        }
        Err(CliError::Refused(format!(
            "{name} is not the layout of the server: {}; give the layout that it serves now",
            differences.join("; ")
        )))
    }

    fn status(&self) -> Result<Status, ServerError> {
        let value = ask(&self.control, &Request::Status)?;
        serde_json::from_value(value).map_err(|error| ServerError::Control {
            path: self.control.clone(),
            reason: format!("its answer has another form: {error}"),
        })
    }

    /// Waits at least this time. Rates are those of the server's own clock.
    fn wait(&self, time: Duration) -> Result<(), SystemError> {
        let mut left = time;
        while !left.is_zero() {
            if self.signals.code().is_some() {
                return Err(SystemError::Interrupted);
            }
            let tick = left.min(TICK);
            #[expect(clippy::disallowed_methods, reason = "rates are measured over this time")]
            thread::sleep(tick);
            left -= tick;
        }
        Ok(())
    }

    /// Empties all buckets of burst credits, and notes how full they were the first time. Returns
    /// whether there were any.
    fn spend_credits(&mut self) -> Result<bool, ServerError> {
        let refills = refills(&self.status()?);
        if !std::mem::replace(&mut self.has_spent, true) {
            for (empty, fill) in &refills {
                output::talk(&format!(
                    "emptying burst credits: {}; they are filled again at the end: {}",
                    self.command(empty),
                    self.command(fill)
                ));
            }
            self.credits = refills.iter().map(|(_, fill)| fill.clone()).collect();
        }
        for (empty, _) in &refills {
            ask(&self.control, empty)?;
        }
        Ok(!refills.is_empty())
    }

    /// Fills the buckets of burst credits as they were before the walk.
    pub(super) fn refill(&mut self) -> Result<(), ServerError> {
        for fill in self.credits.drain(..) {
            match ask(&self.control, &fill) {
                // The new tier may have no credits.
                Ok(_) | Err(ServerError::Refused(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Undoes the last change, and returns the files that stay because they are in use. What could not be undone stays
    /// noted.
    fn undo_last(&mut self) -> Result<Vec<String>, ServerError> {
        let mut stay = Vec::new();
        while let Some(request) = self.applied.last().and_then(|last| last.undo.last()) {
            output::talk(&format!("undoing: {}", self.command(request)));
            match (ask(&self.control, request), request) {
                (Ok(_), _) => {}
                (Err(ServerError::Refused(reason)), Request::Delete { volume, .. }) => {
                    let (volume, request) = (volume.clone(), request.clone());
                    let hosts = self.status()?.hosts;
                    if hosts.iter().flat_map(|own| &own.volumes).any(|own| own.name == volume) {
                        output::talk(&format!("{volume} stays: {reason}"));
                        stay.push(volume);
                        self.stay.push(request);
                    }
                }
                (Err(error), _) => return Err(error),
            }
            if let Some(last) = self.applied.last_mut() {
                last.undo.pop();
            }
        }
        self.applied.pop();
        Ok(stay)
    }

    /// Waits until each file that was added gets at least half of an equal share of its role's requests.
    fn wait_for_files(&mut self, layout: &Layout) -> Result<(), SystemError> {
        if self.unused.is_empty() {
            return Ok(());
        }
        let failed = |error: ServerError| SystemError::Failed(error.to_string());
        output::talk(&format!(
            "waiting for a share of the requests to reach {}; add every new file to the database, and spread the \
             data over its files",
            self.unused.join(", ")
        ));
        let mut left = self.file_wait;
        let mut before = requests_of(&self.status().map_err(failed)?);
        let mut seconds = 0;
        loop {
            let tick = left.min(Duration::from_secs(1));
            self.wait(tick)?;
            left -= tick;
            let now = requests_of(&self.status().map_err(failed)?);
            let is_shared =
                self.unused.iter().all(|file| has_a_share(file, layout, (&before, &now)));
            seconds = if is_shared { seconds + 1 } else { 0 };
            if seconds == SHARED_SECONDS {
                self.unused.clear();
                return Ok(());
            }
            if left.is_zero() {
                return Err(SystemError::Failed(format!(
                    "{} got no share of the requests in {}; --file-wait sets a longer time",
                    self.unused.join(", "),
                    Span::from_nanos(u64::try_from(self.file_wait.as_nanos()).unwrap_or(u64::MAX))
                )));
            }
            before = now;
        }
    }

    fn command(&self, request: &Request) -> String {
        let control = self.control.display();
        match request {
            Request::Resize { volume, size } => {
                format!("weir volume resize {volume} \"{size}\" --control {control}")
            }
            Request::SetTier { volume, tier } => {
                format!("weir volume set-tier {volume} {tier} --control {control}")
            }
            Request::SetCache { volume, mode } => {
                format!("weir volume set-cache {volume} {mode} --control {control}")
            }
            Request::SetRates { volume, iops, throughput } => {
                let iops = iops.map(|own| format!(" --iops {}", own.get())).unwrap_or_default();
                let throughput =
                    throughput.map(|own| format!(" --throughput \"{own}\"")).unwrap_or_default();
                format!("weir volume set-rates {volume}{iops}{throughput} --control {control}")
            }
            Request::Create { host, volume } => {
                let option = |name: &str, value: Option<String>| {
                    value.map(|value| format!(" --{name} {value}")).unwrap_or_default()
                };
                format!(
                    "weir volume create {}{}{}{}{} --control {control}",
                    volume.name,
                    option("size", volume.size.map(|size| format!("\"{size}\""))),
                    option("role", volume.role.map(|role| role.name().to_owned())),
                    option("database", volume.database.clone()),
                    option("host", host.clone()),
                )
            }
            Request::Delete { volume, if_unused } => {
                let option = if *if_unused { "if-unused" } else { "yes" };
                format!("weir volume delete {volume} --{option} --control {control}")
            }
            Request::SetCredits { volume, credits } => {
                format!("weir volume set-credits {volume} \"{credits}\" --control {control}")
            }
            Request::SetHostCredits { host, credits } => {
                format!("weir host set-credits {host} \"{credits}\" --control {control}")
            }
            other => format!("{other:?}"),
        }
    }

    fn commands(&self, requests: &[Request]) -> Vec<String> {
        requests.iter().map(|own| self.command(own)).collect()
    }

    /// Returns the requests of a change, each with those that undo it; `None` if a running server cannot
    /// take it.
    fn requests(&self, change: &Change, layout: &Layout) -> Option<Vec<(Request, Vec<Request>)>> {
        let volumes = |name: &str| -> Option<(&Host, Vec<&Volume>)> {
            let mut all = layout.hosts.iter().flat_map(|host| {
                let exports = host.exports.iter().filter(|own| own.name == name);
                exports.map(move |own| (host, own))
            });
            let (host, export): (&Host, &Export) = all.next()?;
            let volumes = export.volumes.iter().map(|id| host.volumes.get(id.0));
            Some((host, volumes.collect::<Option<_>>()?))
        };
        let tier = |own: &Volume, tier: &str| Request::SetTier {
            volume: own.name.clone(),
            tier: tier.to_owned(),
        };
        match change {
            Change::Tier { name, tier: to } => {
                let (host, volumes) = volumes(name)?;
                let change =
                    |own: &&Volume| Some((tier(own, to), vec![tier(own, own.tier.as_deref()?)]));
                let all = volumes.iter().map(change).collect::<Option<_>>()?;
                host.instance.is_none().then_some(all)
            }
            Change::PerformanceTier { name, tier: Some(to) } => {
                let (_, volumes) = volumes(name)?;
                let change = |own: &&Volume| {
                    let present = own.choices().performance_tier?;
                    Some((tier(own, to), vec![tier(own, present)]))
                };
                volumes.iter().map(change).collect()
            }
            Change::Size { name, bytes } => {
                let (_, volumes) = volumes(name)?;
                let [own] = volumes.as_slice() else { return None };
                let resize = |size| Request::Resize { volume: own.name.clone(), size };
                let size =
                    self.sizes.get(&own.name).map_or(own.spec.size, |size| Bytes::new(*size));
                let back = std::iter::once(resize(size));
                let back = back.chain(own.named_tier().map(|named| tier(own, named)));
                Some(vec![(resize(Bytes::new(*bytes)), back.collect())])
            }
            Change::Bought { name, iops, throughput } => {
                let (host, volumes) = volumes(name)?;
                let to = (Iops::new(*iops), throughput.and_then(BytesPerSec::new));
                let set = |own: &Volume, (iops, throughput)| Request::SetRates {
                    volume: own.name.clone(),
                    iops,
                    throughput,
                };
                // Those that come with the size are not stated in the layout, but are the same if they are. A
                // throughput that follows from the IOPS cannot be stated.
                let present = |own: &Volume| {
                    let gate = own.spec.limits.gate;
                    let bytes = gate.bytes.filter(|_| throughput.is_some());
                    let bytes = bytes.and_then(|own| BytesPerSec::new(own.rate.get()));
                    (gate.iops.and_then(|own| Iops::new(own.rate.get())), bytes)
                };
                let change = |own: &&Volume| (set(own, to), vec![set(own, present(own))]);
                host.instance.is_none().then(|| volumes.iter().map(change).collect())
            }
            Change::Cache { name, mode } => {
                let (_, volumes) = volumes(name)?;
                let set = |own: &Volume, mode: &str| Request::SetCache {
                    volume: own.name.clone(),
                    mode: mode.to_owned(),
                };
                let change =
                    |own: &&Volume| (set(own, mode.name()), vec![set(own, own.spec.cache.name())]);
                Some(volumes.iter().map(change).collect())
            }
            Change::File { name, like, bytes } => {
                let delete = Request::Delete { volume: name.clone(), if_unused: true };
                Some(vec![(file_like(layout, like, (name, Bytes::new(*bytes)))?, vec![delete])])
            }
            Change::All(all) => {
                let all: Vec<_> =
                    all.iter().map(|own| self.requests(own, layout)).collect::<Option<_>>()?;
                let all: Vec<_> = all.into_iter().flatten().collect();
                (!all.is_empty()).then_some(all)
            }
            _ => None,
        }
    }
}

impl System for Served {
    fn is_simulated(&self) -> bool {
        false
    }

    fn tolerance(&self) -> f64 {
        ALIKE
    }

    fn is_interrupted(&self) -> bool {
        self.signals.code().is_some()
    }

    fn can_apply(&self, change: &Change, layout: &Layout) -> bool {
        self.requests(change, layout).is_some()
    }

    fn measure(
        &mut self,
        _text: &str,
        layout: &Layout,
        predicted: &Measured,
    ) -> Result<Measured, SystemError> {
        let failed = |error: ServerError| SystemError::Failed(error.to_string());
        self.wait_for_files(layout)?;
        let has_spent = !self.bursts && self.spend_credits().map_err(failed)?;
        if has_spent || !self.applied.is_empty() {
            self.wait(self.settle)?;
        }
        let before = self.status().map_err(failed)?;
        self.wait(self.window)?;
        let after = self.status().map_err(failed)?;
        let measured =
            of_counters(layout, predicted, (&before, &after)).map_err(SystemError::Failed)?;
        if measured.iops <= 0.0 {
            return Err(SystemError::Failed(format!(
                "no request arrived in {}; start the load, and tune while it runs",
                Span::from_nanos(u64::try_from(self.window.as_nanos()).unwrap_or(u64::MAX))
            )));
        }
        Ok(measured)
    }

    fn apply(&mut self, change: &Change, before: &Layout) -> Result<(), SystemError> {
        if self.is_interrupted() {
            return Err(SystemError::Interrupted);
        }
        let Some(requests) = self.requests(change, before) else {
            return Err(SystemError::Failed("a running server cannot take it".to_owned()));
        };
        self.applied.push(Applied { words: change.words(), undo: Vec::new() });
        for (request, undo) in requests {
            output::talk(&format!(
                "applying: {}; to undo: {}",
                self.command(&request),
                self.commands(&undo).join(" && ")
            ));
            let failed = ask(&self.control, &request).err();
            // Without an answer, the server may have carried it out.
            let is_refused = matches!(failed, Some(ServerError::Refused(_)));
            if let Some(last) = self.applied.last_mut().filter(|_| !is_refused) {
                last.undo.extend(undo.into_iter().rev());
            }
            let Some(error) = failed else {
                if let Request::Create { volume, .. } = request {
                    self.unused.push(volume.name);
                }
                continue;
            };
            let more = match self.undo_last() {
                Ok(stay) if stay.is_empty() => String::new(),
                Ok(stay) => format!("; files in use stay: {}", stay.join(", ")),
                Err(error) => format!("; a part of the change may be applied: {error}"),
            };
            return Err(SystemError::Failed(format!("{error}{more}")));
        }
        Ok(())
    }

    fn undo(&mut self) -> Result<Undone, String> {
        let mut undone = Undone::default();
        while let Some(last) = self.applied.last() {
            undone.changes.push(last.words.clone());
            undone.stay.extend(self.undo_last().map_err(|error| error.to_string())?);
        }
        Ok(undone)
    }

    fn undo_commands(&self) -> Vec<String> {
        let requests = self.applied.iter().rev().flat_map(|own| own.undo.iter().rev());
        requests.chain(&self.stay).map(|own| self.command(own)).collect()
    }
}

/// Returns the number of requests to each volume.
fn requests_of(status: &Status) -> BTreeMap<String, u64> {
    let volumes = status.hosts.iter().flat_map(|host| &host.volumes);
    volumes.map(|own| (own.name.clone(), own.reads + own.writes)).collect()
}

/// Returns whether a file of an instance gets at least half of an equal share of its role's requests between two readings.
fn has_a_share(
    file: &str,
    layout: &Layout,
    (before, now): (&BTreeMap<String, u64>, &BTreeMap<String, u64>),
) -> bool {
    let files = || layout.hosts.iter().flat_map(|host| &host.files);
    let Some(role) = files().find(|own| own.name == file).map(|own| own.role) else { return false };
    let count = |name: &str| {
        let of = |all: &BTreeMap<String, u64>| all.get(name).copied().unwrap_or(0);
        of(now).saturating_sub(of(before))
    };
    let peers: Vec<u64> =
        files().filter(|own| own.role == role).map(|own| count(&own.name)).collect();
    let (all, own): (u64, u64) = (peers.iter().sum(), count(file));
    // A file that gets all requests has no share of a load: the others are idle.
    all > own && own.saturating_mul(2 * peers.len() as u64) >= all
}

/// Returns the request for a file with the role, the database and the host of another one.
fn file_like(layout: &Layout, like: &str, (name, size): (&str, Bytes)) -> Option<Request> {
    let mut hosts = layout.hosts.iter();
    let (host, file) =
        hosts.find_map(|host| Some((host, host.files.iter().find(|own| own.name == like)?)))?;
    let volume = NewVolume {
        name: name.to_owned(),
        size: Some(size),
        role: Some(file.role),
        database: file.database.clone(),
        ..NewVolume::default()
    };
    let host = (layout.hosts.len() > 1).then(|| host.name.clone());
    Some(Request::Create { host, volume })
}

/// Returns the requests that empty each bucket of burst credits that is not empty, and those that fill
/// it again. Buckets of one volume or host are filled alike, by the emptiest, so that a walk adds no
/// credits.
fn refills(status: &Status) -> Vec<(Request, Request)> {
    let least = |all: &mut dyn Iterator<Item = (Option<u64>, Option<u64>)>| {
        let shares = all.filter_map(|(left, full)| Some((left?, Share::from_part(left?, full?))));
        let shares: Vec<(u64, Share)> = shares.collect();
        let has_any = shares.iter().any(|(left, _)| *left > 0);
        shares.into_iter().map(|(_, share)| share).min().filter(|_| has_any)
    };
    let mut requests = Vec::new();
    for host in &status.hosts {
        let set = |credits| Request::SetHostCredits { host: host.name.clone(), credits };
        let share = least(&mut host.caps.iter().map(|cap| (cap.credits, cap.full)));
        requests.extend(share.map(|share| (set(Share::NONE), set(share))));
        for own in &host.volumes {
            let set = |credits| Request::SetCredits { volume: own.name.clone(), credits };
            let buckets = [
                (own.credits_operations, own.full_operations),
                (own.credits_bytes, own.full_bytes),
            ];
            let share = least(&mut buckets.into_iter());
            requests.extend(share.map(|share| (set(Share::NONE), set(share))));
        }
    }
    requests
}

/// Returns what differs between a layout and that of a server.
fn differences(layout: &Layout, status: &Status) -> Vec<String> {
    let mut all = Vec::new();
    for host in &layout.hosts {
        let Some(served) = status.hosts.iter().find(|own| own.name == host.name) else {
            all.push(format!("it has no host {}", host.name));
            continue;
        };
        let is_known = |name: &str| host.volumes.iter().any(|own| own.name == name);
        let more = served.volumes.iter().filter(|own| !is_known(&own.name));
        all.extend(more.map(|own| format!("it also has the volume {}", own.name)));
        for volume in &host.volumes {
            let name = &volume.name;
            let Some(own) = served.volumes.iter().find(|own| own.name == *name) else {
                all.push(format!("it has no volume {name}"));
                continue;
            };
            let tier = |tier: &Option<String>| tier.clone().unwrap_or_else(|| "no tier".to_owned());
            let iops = |most: Option<u64>| match most {
                Some(most) => format!("{} IOPS", grouped(most)),
                None => "unlimited IOPS".to_owned(),
            };
            let throughput = |most: Option<BytesPerSec>| match most {
                Some(most) => most.to_string(),
                None => "unlimited throughput".to_owned(),
            };
            let gate = &volume.spec.limits.gate;
            let (most_iops, most_bytes) =
                (gate.iops.map(|own| own.rate.get()), gate.bytes.map(|own| own.rate.get()));
            let pairs = [
                (tier(&volume.tier), tier(&own.tier)),
                (iops(most_iops), iops(own.limit_iops)),
                (
                    throughput(most_bytes.and_then(BytesPerSec::new)),
                    throughput(own.limit_bytes_per_s.and_then(BytesPerSec::new)),
                ),
                (format!("cache {}", volume.spec.cache.name()), format!("cache {}", own.cache)),
            ];
            let (size, served) = (volume.spec.size, Bytes::new(own.size_bytes));
            // An export keeps its size when its tier is raised.
            let has_kept_size = volume.tier.is_some() && volume.tier == own.tier && served < size;
            let sizes = (!has_kept_size).then(|| (size.to_string(), served.to_string()));
            let apart = pairs.into_iter().chain(sizes).filter(|(here, there)| here != there);
            all.extend(
                apart.map(|(here, there)| format!("{name} has {here} here and {there} there")),
            );
        }
    }
    all
}
