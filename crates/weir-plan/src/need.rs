//! Needs: rates, sizes and latencies by role, and constraints on the layout.
//!
//! Two of rate, request size and throughput determine the third. If all three are stated, the
//! throughput is a peak of its own, at another time than that of the operations. Numbers are
//! integers: shares are millionths, everything else operations and bytes. Derived operations and
//! request sizes are rounded up; a stated throughput stays as it is.

use crate::error::PlanError;
use crate::filesystem::FileSystem;
use crate::keep::Kept;
use crate::share::{WHOLE, in_percent};
use serde::Deserialize;
use std::path::PathBuf;
use weir_catalog::Architecture;
use weir_layout::Role;
use weir_units::{Bytes, BytesPerSec, Iops, Span};

/// The unit of sizes and requests in bytes.
const SECTOR: u64 = 512;

/// Upper limits of IOPS, bytes per second, request size and size. They are far above any offer, and
/// sums of all roles fit in 64 bits.
const MOST_IOPS: u64 = 1_000_000_000;
const MOST_RATE: u64 = 1_000_000_000_000_000;
const MOST_REQUEST: u64 = 1 << 30;
const MOST_SIZE: u64 = 1 << 56;

/// Returns the default request size of a role: database pages, log blocks, and backup transfers.
#[must_use]
pub fn usual_request(role: Role) -> Bytes {
    match role {
        Role::Data => Bytes::kib(8),
        Role::Log | Role::Tempdb => Bytes::kib(64),
        Role::Backup => Bytes::mib(1),
    }
}

/// The load and the size of a system, by role.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Need {
    /// The roles, each at most once.
    pub roles: Vec<RoleNeed>,
    /// Minimum number of virtual processors.
    pub vcpus: u32,
    /// Minimum memory.
    pub memory: Bytes,
}

/// Load and size of a role.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoleNeed {
    /// The role.
    pub role: Role,
    /// The stored size.
    pub size: Bytes,
    /// Operations per second.
    pub iops: u64,
    /// True if `iops` was derived from the throughput and rounded up. Limits then count the exact
    /// quotient.
    pub is_derived: bool,
    /// The request size in bytes.
    pub request: u64,
    /// Bytes per second: those of the operations, or more. It is less only if operations or request
    /// size were derived from it and rounded up.
    pub throughput: u64,
    /// The share of reads in millionths.
    pub reads: u64,
    /// Maximum median latency.
    pub latency: Option<Span>,
    /// The working set, if host caches may be counted on.
    pub working_set: Option<Bytes>,
}

impl RoleNeed {
    /// Returns the role with its rates scaled to `part` millionths, rounded up.
    #[must_use]
    pub fn scaled(&self, part: u64) -> Self {
        let of = |n: u64| {
            let scaled = u128::from(n) * u128::from(part);
            u64::try_from(scaled.div_ceil(u128::from(WHOLE))).unwrap_or(u64::MAX)
        };
        let throughput = of(self.throughput);
        let iops = match self.is_derived {
            true => throughput.div_ceil(self.request.max(1)),
            false => of(self.iops),
        };
        Self { iops, throughput, ..self.clone() }
    }
}

impl Need {
    /// Returns the need with all rates scaled to `part` millionths.
    #[must_use]
    pub fn scaled(&self, part: u64) -> Self {
        Self { roles: self.roles.iter().map(|role| role.scaled(part)).collect(), ..self.clone() }
    }

    /// Returns the need without its latencies. A layout that is used up to its limits has a queue.
    #[must_use]
    pub fn without_latencies(mut self) -> Self {
        self.roles.iter_mut().for_each(|role| role.latency = None);
        self
    }

    /// Returns the need with all sizes scaled to `part` millionths, in whole GiB.
    #[must_use]
    pub fn resized(&self, part: u64) -> Self {
        let of = |size: Bytes| {
            let scaled = u128::from(size.get()) * u128::from(part) / u128::from(WHOLE);
            Bytes::gib(u64::try_from(scaled >> 30).unwrap_or(u64::MAX).max(1)).min(size)
        };
        Self {
            roles: self
                .roles
                .iter()
                .map(|role: &RoleNeed| RoleNeed { size: of(role.size), ..role.clone() })
                .collect(),
            ..self.clone()
        }
    }

    /// Returns the needs of a role.
    #[must_use]
    pub fn role(&self, role: Role) -> Option<&RoleNeed> {
        self.roles.iter().find(|need| need.role == role)
    }
}

/// A database of a fleet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// The name of the database.
    pub name: String,
    /// The needs of the database.
    pub need: Need,
    /// CPU use, in thousandths of a virtual processor.
    pub millicores: u64,
}

/// Default maximum number of data files. Many small files may cost a little less than a few large
/// ones, but each of them is throttled sooner (article 000, practice 6). SQL Server's advice for
/// tempdb also stops at eight files.
pub const MOST_FILES: u64 = 8;

/// Constraints on the layout.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Wishes {
    /// The region of the edition's prices, which the layout names.
    pub region: Option<String>,
    /// The families: `vm`, `gp`, `next-gen-gp`, `bc`, `rds` or `postgres`; all of the edition if
    /// empty.
    pub families: Vec<String>,
    /// The disk families; if empty, those that are no slower than the edition's default family.
    pub disks: Vec<String>,
    /// The only machine or instance size to use.
    pub host: Option<String>,
    /// The instruction set of machines; any if `None`.
    pub architecture: Option<Architecture>,
    /// Maximum number of disks.
    pub max_disks: Option<u64>,
    /// Maximum number of data files of an instance; [`MOST_FILES`] by default.
    pub max_files: Option<u64>,
    /// True if each role has disks of its own.
    pub is_apart: bool,
    /// True if a backup may share disks with data and log. It would be lost together with them.
    pub shares_backup: bool,
    /// The file system whose usable room must hold the sizes.
    pub filesystem: FileSystem,
    /// Maximum storage of an instance or a service.
    pub storage: Option<Bytes>,
    /// True if the licence is owned: of the database for an instance or a service, of Windows
    /// Server for a machine.
    pub has_licence: bool,
    /// The database engine, for a service that has several.
    pub engine: Option<String>,
    /// The layout in use, which the plan extends.
    pub keep: Option<Kept>,
    /// The longest peak that burst credits may carry.
    pub peaks: Option<Span>,
    /// The operating system whose licence prices of machines include.
    pub os: Option<String>,
    /// True if a limit that is not published carries nothing, not even on a machine that is named or
    /// in use. Set by searches for the highest rates.
    pub needs_limits: bool,
}

impl Wishes {
    /// Returns whether the licence is owned, as asked for or by the machine in use.
    #[must_use]
    pub fn owns_licence(&self) -> bool {
        self.has_licence || self.keep.as_ref().is_some_and(|kept| kept.has_licence)
    }

    /// Returns the file system of the disks: as asked for, or that of the machine in use.
    #[must_use]
    pub fn file_system(&self) -> FileSystem {
        let kept = self.keep.as_ref().map_or(FileSystem::None, |kept| kept.filesystem);
        if self.filesystem == FileSystem::None { kept } else { self.filesystem }
    }
}

/// A number of virtual processors in thousandths. A database may use less than one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Vcpus(u64);

impl Vcpus {
    /// Returns `n` whole processors.
    #[must_use]
    pub fn whole(n: u32) -> Self {
        Self(u64::from(n) * 1_000)
    }

    /// Returns the number in thousandths.
    #[must_use]
    pub fn millicores(self) -> u64 {
        self.0
    }

    /// Returns the number rounded up to whole processors.
    #[must_use]
    pub fn rounded_up(self) -> u32 {
        u32::try_from(self.0.div_ceil(1_000)).unwrap_or(u32::MAX)
    }
}

impl<'de> Deserialize<'de> for Vcpus {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Number;

        impl serde::de::Visitor<'_> for Number {
            type Value = Vcpus;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a number of virtual processors, like 8 or 0.25")
            }

            fn visit_i64<E: serde::de::Error>(self, n: i64) -> Result<Vcpus, E> {
                u32::try_from(n).map(Vcpus::whole).map_err(|_| {
                    E::custom(format!(
                        "{n} is not a number of virtual processors, for example 8 or 0.25"
                    ))
                })
            }

            fn visit_f64<E: serde::de::Error>(self, n: f64) -> Result<Vcpus, E> {
                // Printing returns the decimals that were written, as far as they matter here.
                let text = n.to_string();
                let (whole, decimals) = text.split_once('.').unwrap_or((&text, ""));
                let digits = format!("{whole}{decimals:0<3}");
                let is_number = decimals.len() <= 3 && digits.bytes().all(|b| b.is_ascii_digit());
                let parsed = if is_number { digits.parse().ok() } else { None };
                parsed.filter(|n| *n <= u64::from(u32::MAX)).map(Vcpus).ok_or_else(|| {
                    E::custom(format!(
                        "{text} is not a number of virtual processors with up to three decimals, \
                         for example 8 or 0.25"
                    ))
                })
            }
        }

        deserializer.deserialize_any(Number)
    }
}

/// A need file.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NeedFile {
    /// The edition to plan with.
    pub edition: Option<String>,
    /// The region of prices.
    pub region: Option<String>,
    /// The currency of prices.
    pub currency: Option<String>,
    /// The operating system of machines.
    pub os: Option<String>,
    /// Extra capacity on top of the stated rates, for example `"20 %"`.
    pub headroom: Option<String>,
    /// Minimum number of virtual processors; for a database of a fleet, its CPU use.
    pub vcpus: Option<Vcpus>,
    /// Minimum memory.
    pub memory: Option<Bytes>,
    /// As [`Wishes::families`].
    #[serde(default, deserialize_with = "not_empty")]
    pub families: Vec<String>,
    /// As [`Wishes::disks`].
    #[serde(default, deserialize_with = "not_empty")]
    pub disks: Vec<String>,
    /// As [`Wishes::host`].
    pub host: Option<String>,
    /// As [`Wishes::architecture`].
    #[serde(default, deserialize_with = "architecture")]
    pub architecture: Option<Architecture>,
    /// As [`Wishes::max_disks`].
    pub max_disks: Option<u64>,
    /// As [`Wishes::max_files`].
    pub max_files: Option<u64>,
    /// `true` gives each role disks of its own, `false` lets all roles share disks. By default
    /// only a backup is kept apart, from data and log.
    pub apart: Option<bool>,
    /// As [`Wishes::filesystem`].
    pub filesystem: Option<FileSystem>,
    /// As [`Wishes::storage`].
    pub storage: Option<Bytes>,
    /// As [`Wishes::peaks`].
    pub bursting: Option<Span>,
    /// The file of the layout in use, which the plan extends.
    pub keep: Option<PathBuf>,
    /// True if downtime must be avoided.
    #[serde(default)]
    pub no_downtime: bool,
    /// As [`Wishes::has_licence`].
    #[serde(default)]
    pub licence_owned: bool,
    /// As [`Wishes::engine`].
    pub engine: Option<String>,
    /// Pages of tables and indexes.
    pub data: Option<RoleKeys>,
    /// The transaction log.
    pub log: Option<RoleKeys>,
    /// Temporary objects.
    pub tempdb: Option<RoleKeys>,
    /// Backups on disks of the machine.
    pub backup: Option<RoleKeys>,
    /// The name of the file, for messages.
    #[serde(skip)]
    pub file: Option<String>,
}

/// Deserializes a list, and rejects an empty one, which would mean the same as none.
fn not_empty<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let all = Vec::deserialize(deserializer)?;
    match all.is_empty() {
        true => Err(serde::de::Error::custom("the list is empty; name some, or leave it out")),
        false => Ok(all),
    }
}

/// Deserializes an architecture from its name.
fn architecture<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Architecture>, D::Error> {
    let text = String::deserialize(deserializer)?;
    text.parse().map(Some).map_err(serde::de::Error::custom)
}

/// Keys of a role in a need file.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RoleKeys {
    /// The stored size.
    pub size: Option<Bytes>,
    /// Operations per second.
    pub iops: Option<Iops>,
    /// Bytes per second.
    pub throughput: Option<BytesPerSec>,
    /// The request size.
    pub request: Option<Bytes>,
    /// The share of reads, for example `"70 %"`.
    pub reads: Option<String>,
    /// Maximum median latency.
    pub latency: Option<Span>,
    /// The working set.
    pub working_set: Option<Bytes>,
    /// The name of the file that they are from, for messages.
    #[serde(skip)]
    pub file: Option<String>,
}

impl NeedFile {
    /// Reads a need file; `file` names it in messages.
    ///
    /// # Errors
    ///
    /// [`PlanError::Syntax`] with the line.
    pub fn read(file: &str, text: &str) -> Result<Self, PlanError> {
        let mut own: Self = toml::from_str(text).map_err(|error| PlanError::Syntax {
            file: file.to_owned(),
            at: error.span().map(|span| place(&text[..span.start])),
            message: weir_units::parser_message(error.message()),
        })?;
        own.file = Some(file.to_owned());
        let roles = [&mut own.data, &mut own.log, &mut own.tempdb, &mut own.backup];
        for keys in roles.into_iter().flatten() {
            keys.file = Some(file.to_owned());
        }
        Ok(own)
    }

    /// Returns the need with its headroom, and notes about assumptions.
    ///
    /// # Errors
    ///
    /// [`PlanError::Need`] for contradictory or incomplete keys.
    pub fn need(&self) -> Result<(Need, Vec<String>), PlanError> {
        let nothing = [
            ("vcpus", self.vcpus.is_some_and(|vcpus| vcpus.millicores() == 0)),
            ("max_disks", self.max_disks == Some(0)),
            ("max_files", self.max_files == Some(0)),
            ("bursting", self.bursting == Some(Span::ZERO)),
            ("memory", self.memory == Some(Bytes::ZERO)),
            ("storage", self.storage == Some(Bytes::ZERO)),
        ];
        if let Some((key, _)) = nothing.into_iter().find(|(_, is_zero)| *is_zero) {
            return Err(PlanError::need(key, ZERO));
        }
        self.roles()
    }

    fn roles(&self) -> Result<(Need, Vec<String>), PlanError> {
        let headroom =
            self.headroom.as_deref().map(|text| share_of("headroom", text)).transpose()?;
        let all = [
            (Role::Data, &self.data),
            (Role::Log, &self.log),
            (Role::Tempdb, &self.tempdb),
            (Role::Backup, &self.backup),
        ];
        let mut notes = Vec::new();
        let mut roles = Vec::new();
        for (role, keys) in all {
            if let Some(keys) = keys {
                roles.push(keys.need(role, &mut notes)?.scaled(WHOLE + headroom.unwrap_or(0)));
            }
        }
        if roles.iter().all(|own| own.throughput == 0) && !roles.is_empty() {
            let words = "no rates are given, so only the size counts (add iops or throughput)";
            notes.push(words.to_owned());
        }
        if roles.is_empty() {
            let reason = "has no role; add [data], [log], [tempdb] or [backup] with size, and iops or \
                          throughput";
            let file = self.file.as_deref().unwrap_or("the need");
            return Err(PlanError::need(file, reason));
        }
        if let Some(headroom) = headroom {
            notes.push(format!("rates include {} % headroom", in_percent(headroom)));
        }
        let memory = self.memory.unwrap_or(Bytes::ZERO);
        Ok((Need { roles, vcpus: self.vcpus.map_or(0, Vcpus::rounded_up), memory }, notes))
    }

    /// Returns the need of a database of a fleet. Only roles, vcpus and headroom may differ between
    /// databases.
    ///
    /// # Errors
    ///
    /// As [`need`](Self::need), and for keys that belong to the whole fleet.
    pub fn member(&self, name: &str) -> Result<(Member, Vec<String>), PlanError> {
        let stray = [
            ("edition", self.edition.is_some()),
            ("region", self.region.is_some()),
            ("currency", self.currency.is_some()),
            ("os", self.os.is_some()),
            ("memory", self.memory.is_some()),
            ("families", !self.families.is_empty()),
            ("disks", !self.disks.is_empty()),
            ("host", self.host.is_some()),
            ("architecture", self.architecture.is_some()),
            ("max_disks", self.max_disks.is_some()),
            ("max_files", self.max_files.is_some()),
            ("apart", self.apart.is_some()),
            ("filesystem", self.filesystem.is_some()),
            ("storage", self.storage.is_some()),
            ("licence_owned", self.licence_owned),
            ("engine", self.engine.is_some()),
            ("bursting", self.bursting.is_some()),
            ("keep", self.keep.is_some()),
            ("no_downtime", self.no_downtime),
        ];
        if let Some((key, _)) = stray.into_iter().find(|(_, is_said)| *is_said) {
            let what = format!("{name}: {key}");
            let all = ["edition", "region", "currency", "families", "host", "max_files", "storage"];
            let reason = match all.contains(&key) || key == "licence_owned" {
                true => "applies to the whole fleet; set it on the command line",
                false => "does not apply to a fleet, which gets new instances; leave it out",
            };
            return Err(PlanError::need(what, reason));
        }
        if self.vcpus.is_some_and(|vcpus| vcpus.millicores() == 0) {
            return Err(PlanError::need(format!("{name}: vcpus"), ZERO));
        }
        // Names of files and layouts begin with the name of the database.
        if name.len() > MOST_NAME
            || name.starts_with('.')
            || !name
                .chars()
                .all(|c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'))
        {
            let reason = format!(
                "is not a valid name; rename its file: up to {MOST_NAME} letters, digits, '.', '_' \
                 and '-', not '.' first"
            );
            return Err(PlanError::need(format!("the database {name:?}"), reason));
        }
        let (need, notes) = self.roles().map_err(|error: PlanError| match error {
            PlanError::Need { what, reason } if self.file.is_none() => {
                PlanError::need(format!("{name}: {what}"), reason)
            }
            error => error,
        })?;
        let millicores = self.vcpus.map_or(0, Vcpus::millicores);
        let need = Need { vcpus: 0, ..need };
        Ok((Member { name: name.to_owned(), need, millicores }, notes))
    }

    /// Returns the constraints of the file.
    #[must_use]
    pub fn wishes(&self) -> Wishes {
        Wishes {
            region: self.region.clone(),
            families: self.families.clone(),
            disks: self.disks.clone(),
            host: self.host.clone(),
            architecture: self.architecture,
            max_disks: self.max_disks,
            max_files: self.max_files,
            is_apart: self.apart == Some(true),
            shares_backup: self.apart == Some(false),
            filesystem: self.filesystem.unwrap_or_default(),
            storage: self.storage,
            has_licence: self.licence_owned,
            engine: self.engine.clone(),
            keep: None,
            peaks: self.bursting,
            os: self.os.clone(),
            needs_limits: false,
        }
    }
}

/// The reason for which a number of 0 is rejected.
const ZERO: &str = "is 0; use a larger value, or leave it out";

/// Maximum length of a database name.
const MOST_NAME: usize = 80;

/// Returns line and column of the end of `before`.
fn place(before: &str) -> (usize, usize) {
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count();
    (before.matches('\n').count() + 1, column + 1)
}

fn share_of(what: &str, text: &str) -> Result<u64, PlanError> {
    weir_units::percent(text).map_err(|error| PlanError::need(what, error.to_string()))
}

impl RoleKeys {
    /// Returns the role with the file that it is from, for messages.
    fn named(&self, role: Role) -> String {
        match &self.file {
            Some(file) => format!("{file}: [{}]", role.name()),
            None => role.name().to_owned(),
        }
    }

    fn need(&self, role: Role, notes: &mut Vec<String>) -> Result<RoleNeed, PlanError> {
        let wrong = |reason: String| PlanError::need(self.named(role), reason);
        let size = self.size.unwrap_or(Bytes::ZERO);
        let (iops, rate) = (self.iops.map(Iops::get), self.throughput.map(BytesPerSec::get));
        if self.size == Some(Bytes::ZERO) {
            return Err(wrong("size is 0; give the stored size, for example \"900 GiB\"".into()));
        }
        if self.latency == Some(Span::ZERO) {
            return Err(wrong(
                "latency is 0; give the highest median latency, for example \
                              \"2ms\""
                    .into(),
            ));
        }
        if size == Bytes::ZERO {
            return Err(wrong(
                "size is missing; give the stored size, for example \"900 \
                              GiB\""
                    .into(),
            ));
        }
        if self.request == Some(Bytes::ZERO) {
            return Err(wrong("request is 0; give the request size, for example \"8 KiB\"".into()));
        }
        let most = [
            ("iops", iops.unwrap_or(0), MOST_IOPS),
            ("throughput", rate.unwrap_or(0), MOST_RATE),
            ("request", self.request.map_or(0, Bytes::get), MOST_REQUEST),
            ("size", size.get(), MOST_SIZE),
        ];
        if let Some((key, said, most)) = most.into_iter().find(|(_, said, most)| said > most) {
            return Err(wrong(format!("{key} is {said}, above the maximum of {most}")));
        }
        let request = self.request(role, iops, rate, notes);
        if request > MOST_REQUEST {
            let rate = rate_words(rate.unwrap_or(0));
            return Err(wrong(format!(
                "{rate} at {} IOPS means requests of {}, above the maximum of {}; state more IOPS or less throughput",
                iops.unwrap_or(0),
                Bytes::new(request),
                Bytes::new(MOST_REQUEST)
            )));
        }
        // Files have whole sectors.
        let size = Bytes::new(size.get().next_multiple_of(SECTOR));
        let of_operations = iops.unwrap_or(0).saturating_mul(request);
        if self.request.is_some() && rate.is_some_and(|rate| rate < of_operations) {
            let (said, own) = (rate.unwrap_or(0), rate_words(of_operations));
            return Err(wrong(format!(
                "{} IOPS of {} are {own}, above the throughput of {}; leave out one of the three",
                iops.unwrap_or(0),
                Bytes::new(request),
                rate_words(said)
            )));
        }
        let throughput = rate.unwrap_or(of_operations);
        let is_derived = iops.is_none();
        let iops = iops.unwrap_or_else(|| throughput.div_ceil(request));
        let reads = self.reads(role, iops, notes)?;
        if self.working_set == Some(Bytes::ZERO) {
            return Err(wrong(
                "working_set is 0; give the size of the data in use, or leave it out".into(),
            ));
        }
        if let Some(set) = self.working_set.filter(|set| *set > size) {
            return Err(wrong(format!("working_set is {set}, above the size of {size}")));
        }
        Ok(RoleNeed {
            role,
            size,
            iops,
            is_derived,
            request,
            throughput,
            reads,
            latency: self.latency,
            working_set: self.working_set,
        })
    }

    /// Returns the request size: as stated, from both rates, or the default of the role.
    fn request(
        &self,
        role: Role,
        iops: Option<u64>,
        rate: Option<u64>,
        notes: &mut Vec<String>,
    ) -> u64 {
        let name = role.name();
        match (self.request.map(Bytes::get), iops, rate) {
            (Some(request), ..) => request,
            (None, Some(iops), Some(rate)) => {
                let request = rate.div_ceil(iops).next_multiple_of(SECTOR);
                notes.push(format!(
                    "{name}: {} at {iops} IOPS means requests of {}, rounded up to whole sectors; \
                     the throughput counts as stated",
                    rate_words(rate),
                    Bytes::new(request).exact()
                ));
                request
            }
            (None, ..) => {
                let usual = usual_request(role);
                if iops.or(rate).is_some() {
                    notes.push(format!("{name}: assumed a request size of {usual}"));
                }
                usual.get()
            }
        }
    }

    /// Returns the share of reads in millionths.
    fn reads(&self, role: Role, iops: u64, notes: &mut Vec<String>) -> Result<u64, PlanError> {
        let name = role.name();
        let default_reads = match role {
            Role::Data | Role::Tempdb => WHOLE / 2,
            Role::Log | Role::Backup => 0,
        };
        let reads = match &self.reads {
            Some(text) => share_of(&format!("{}: reads", self.named(role)), text)?,
            None => {
                if default_reads > 0 && iops > 0 && self.working_set.is_some() {
                    notes.push(format!("{name}: assumed 50 % reads"));
                }
                default_reads
            }
        };
        if reads > WHOLE {
            let reason = format!("reads are {} %, above 100 %", in_percent(reads));
            return Err(PlanError::need(self.named(role), reason));
        }
        if reads == 0 && self.working_set.is_some() {
            notes.push(format!("{name}: there are no reads, so the working set has no effect"));
        }
        Ok(reads)
    }
}

/// Formats a rate, which may be zero.
pub(crate) fn rate_words(rate: u64) -> String {
    match BytesPerSec::new(rate).map(|rate| rate.to_string()) {
        // Rates that are not whole numbers of a larger unit are rounded to a tenth.
        Some(words) if words.ends_with(" B/s") || words.ends_with(" KiB/s") => {
            let tenths = (u128::from(rate) * 10 + (1 << 19)) >> 20;
            format!("{}.{} MiB/s", tenths / 10, tenths % 10)
        }
        Some(words) => words,
        None => "0 B/s".to_owned(),
    }
}
