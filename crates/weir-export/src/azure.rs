//! Azure's names and rules for disks, caching, machines and instances, once for its four languages.

use crate::change::{Change, Fate};
use crate::disk;
use crate::error::ExportError;
use crate::options::{OperatingSystem, Options, refused};
use crate::script::Script;
use crate::site::{Cloud, Disk, Site, unique};
use weir_catalog::Interface;
use weir_core::CacheMode;
use weir_layout::file::FileSystem;
use weir_layout::{Instance, ManagedInstance};
use weir_units::Bytes;

const MB: u64 = 1_000_000;

/// The content of a script for Azure.
enum Azure<'a> {
    /// A machine and its disks.
    Machine(Machine<'a>),
    /// A managed instance.
    Instance(Sql<'a>),
}

/// A machine with its disks.
pub(crate) struct Machine<'a> {
    /// The size, as Azure names it, if the layout has one.
    pub(crate) size: Option<String>,
    /// The interface of the remote disks, if the edition states it for the size.
    pub(crate) interface: Option<Interface>,
    /// True if the Windows Server licence is owned.
    pub(crate) licence_owned: bool,
    pub(crate) disks: Vec<Fate<'a, Disk>>,
    /// True if a zone is required: disks whose limits are bought can be attached in one zone only.
    pub(crate) needs_zone: bool,
    pub(crate) has_ultra: bool,
}

/// A managed instance.
pub(crate) struct Sql<'a> {
    pub(crate) new: &'a Instance,
    pub(crate) old: Option<&'a Instance>,
    /// IOPS of a next-generation instance.
    pub(crate) iops: Option<u64>,
    old_iops: Option<u64>,
    /// True if the SQL Server licence is owned.
    licence_owned: bool,
    /// The new value of `licence_owned`, if it changes.
    new_licence: Option<bool>,
    changes: bool,
}

/// The changes of an instance between two layouts. Other properties are left alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SqlChange {
    pub(crate) edition: bool,
    pub(crate) vcores: bool,
    pub(crate) storage: bool,
    /// True if the storage grows; if so, a larger present value stays.
    pub(crate) grows: bool,
    pub(crate) next_gen: bool,
    /// IOPS, if they are bought.
    pub(crate) iops: Option<u64>,
    pub(crate) licence: bool,
}

/// A disk in Azure's units.
pub(crate) struct AzureDisk<'a> {
    pub(crate) disk: &'a Disk,
    pub(crate) sku: &'static str,
    pub(crate) gib: u64,
    /// IOPS and MB/s, if they are bought.
    pub(crate) bought: Option<(u64, u64)>,
    pub(crate) lun: u32,
    pub(crate) caching: &'static str,
}

/// Writes a machine or an instance in one of the languages.
pub(crate) type Writer<T> = fn(&mut Script, &Change, &Options, &T) -> Result<(), ExportError>;

/// Writes the layout for Azure. Without changes there is no script, but a module is always written.
pub(crate) fn write<'a>(
    script: &mut Script,
    change: &'a Change,
    options: &Options,
    of_machine: Writer<Machine<'a>>,
    of_instance: Writer<Sql<'a>>,
) -> Result<(), ExportError> {
    match Azure::from_change(script, change, options)? {
        Azure::Machine(machine) if machine.is_same(change) && !script.kind().is_module() => {
            script.nothing(change);
        }
        Azure::Machine(machine) => {
            check_machine(options)?;
            if machine.is_same(change) {
                script.same(change);
            }
            of_machine(script, change, options, &machine)?;
        }
        Azure::Instance(sql) if !sql.changes && !script.kind().is_module() => {
            script.nothing(change)
        }
        Azure::Instance(sql) => {
            if !sql.changes {
                script.same(change);
            }
            of_instance(script, change, options, &sql)?;
        }
    }
    Ok(())
}

/// Checks the length of a machine's name; that of Windows is shorter because it is also the
/// computer name.
fn check_machine(options: &Options) -> Result<(), ExportError> {
    const MOST: usize = 64;
    match options.machine.as_ref().map(|name| (name, name.chars().count())) {
        Some((name, count)) if count > MOST => Err(refused(
            format!("--machine {name}"),
            format!("it has {count} characters, above Azure's maximum of {MOST} for a machine"),
        )),
        _ => Ok(()),
    }
}

impl<'a> Azure<'a> {
    /// Returns the content for a layout.
    fn from_change(
        script: &mut Script,
        change: &'a Change,
        options: &Options,
    ) -> Result<Self, ExportError> {
        check_edition(script, &change.new)?;
        if change
            .old
            .as_ref()
            .is_some_and(|old| old.instance.is_some() != change.new.instance.is_some())
        {
            let reason = "one layout is a machine and the other a managed instance, and neither \
                          can become the other in place: export without --from, and move the data";
            return Err(cannot(script, &change.new, format!("host {:?}", change.new.host), reason));
        }
        match &change.new.instance {
            Some(instance) => {
                Sql::from_instance(script, change, instance, options).map(Azure::Instance)
            }
            None => Machine::from_change(script, change).map(Azure::Machine),
        }
    }
}

fn cannot(script: &Script, site: &Site, what: String, reason: &str) -> ExportError {
    ExportError::Cannot {
        layout: site.layout.clone(),
        what,
        kind: script.kind().name(),
        reason: reason.to_owned(),
    }
}

fn check_edition(script: &Script, site: &Site) -> Result<(), ExportError> {
    let kind = script.kind().name();
    let reason = match site.edition.as_deref() {
        Some(_) if site.cloud == Some(Cloud::Azure) => return Ok(()),
        Some(name) if site.cloud.is_some() => format!(
            "{kind} scripts are for Azure, not for the edition {name}; --as terraform creates its \
             disks, and --as mdadm, lvm, storage-spaces or fstab is for the machine itself"
        ),
        Some(name) => format!(
            "{kind} scripts are for Azure, not for the edition {name}; use an edition \
             with provider = \"azure\", or --as mdadm, lvm, storage-spaces or fstab for the machine \
             itself"
        ),
        None => format!(
            "{kind} creates disks and machines of Azure, but the layout has no edition; add \
             edition = \"..\""
        ),
    };
    Err(ExportError::Nothing { layout: site.layout.clone(), kind, reason })
}

impl<'a> Machine<'a> {
    fn from_change(script: &mut Script, change: &'a Change) -> Result<Self, ExportError> {
        let site = &change.new;
        let disks = change.disks();
        if disks.is_empty() && site.size.is_none() {
            return Err(ExportError::Nothing {
                layout: site.layout.clone(),
                kind: script.kind().name(),
                reason: "the layout has no remote volume and no machine size".to_owned(),
            });
        }
        // In a module, disks that go stay, and properties that cannot change keep their old value.
        let is_module = script.kind().is_module();
        let is_written = |fate: &&Fate<'_, Disk>| is_module || fate.wanted().is_some();
        let from = change.old.as_ref().unwrap_or(site);
        for fate in disks.iter().filter(is_written) {
            match *fate {
                Fate::New(disk) | Fate::Same(disk) => check_disk(script, site, disk)?,
                Fate::Gone(disk) => check_disk(script, from, disk)?,
                Fate::Changed(old, disk) => {
                    check_disk(script, site, disk)?;
                    check_disk(script, from, old)?;
                }
            }
        }
        // Azure ignores the case of names.
        let written = disks.iter().filter(is_written).map(|fate| fate.subject());
        unique(written.map(|disk| (&*disk.own, &*disk.name)), str::to_lowercase)?;
        let family = |name: &str| {
            disks.iter().any(|fate: &Fate<'_, Disk>| {
                fate.wanted().is_some_and(|disk| disk.family.as_deref() == Some(name))
            })
        };
        let has_ultra = family("ultra");
        Ok(Self {
            size: site.size.as_deref().map(machine_size),
            interface: site.interface(),
            licence_owned: site.licence_owned,
            needs_zone: has_ultra || family("premium-ssd-v2"),
            has_ultra,
            disks,
        })
    }

    /// Returns whether the machine needs an explicit NVMe disk controller. A size with both
    /// controllers gets SCSI by default.
    pub(crate) fn is_nvme(&self) -> bool {
        self.interface == Some(Interface::Nvme)
    }

    /// Returns whether nothing changes.
    pub(crate) fn is_same(&self, change: &Change) -> bool {
        change.is_known()
            && self.disks.iter().all(Fate::is_same)
            && change.resize().is_none()
            && change.interfaces().is_none()
            && change.licence().is_none()
    }
}

/// Returns the disks to create.
pub(crate) fn made<'a>(machine: &Machine<'a>) -> impl Iterator<Item = &'a Disk> {
    machine.disks.iter().filter_map(|fate| match *fate {
        Fate::New(disk) => Some(disk),
        _ => None,
    })
}

/// Returns the size as Azure names it. Sizes from old pages lack the prefix.
fn machine_size(name: &str) -> String {
    if name.starts_with("Standard_") { name.to_owned() } else { format!("Standard_{name}") }
}

fn check_disk(script: &Script, site: &Site, disk: &Disk) -> Result<(), ExportError> {
    let what = || format!("volume {:?}", disk.own);
    if disk.has_own_limits {
        let reason = "its limits are stated in the layout, but Azure sells no disk by its limits \
                      alone; give it a tier, a size or a family";
        return Err(cannot(script, site, what(), reason));
    }
    let name = &disk.name;
    let ends = name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
    if !ends
        || name.len() > 80
        || !name.chars().all(|c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-'))
    {
        return Err(ExportError::BadName {
            what: "a disk of Azure",
            name: name.clone(),
            rule: "1 to 80 letters, digits, '_', '.' and '-', a letter or digit first, a letter, digit \
                   or '_' last",
            own: disk.own.clone(),
        });
    }
    if sku(disk).is_none() {
        let family = disk.family.as_deref().unwrap_or("none");
        let reason = format!("Azure has no disks of the family {family}");
        return Err(cannot(script, site, what(), &reason));
    }
    Ok(())
}

fn sku(disk: &Disk) -> Option<&'static str> {
    match disk.family.as_deref()? {
        "premium-ssd" => Some("Premium_LRS"),
        "premium-ssd-zrs" => Some("Premium_ZRS"),
        "standard-ssd" => Some("StandardSSD_LRS"),
        "standard-hdd" => Some("Standard_LRS"),
        "premium-ssd-v2" => Some("PremiumV2_LRS"),
        "ultra" => Some("UltraSSD_LRS"),
        _ => None,
    }
}

impl<'a> AzureDisk<'a> {
    /// Returns a disk in Azure's units, with notes about rounding.
    pub(crate) fn from_disk(script: &mut Script, change: &Change, disk: &'a Disk) -> Self {
        let gib = disk::gib(script, disk);
        let bought = disk.bought.map(|(iops, bytes)| {
            let mb = bytes.div_ceil(MB);
            if mb * MB != bytes {
                script.note(&format!(
                    "{}: {bytes} B/s is rounded to {mb} MB/s, because Azure sells whole MB/s",
                    disk.own
                ));
            }
            (iops, mb)
        });
        Self {
            disk,
            sku: sku(disk).unwrap_or_default(),
            gib,
            bought,
            lun: change.lun(disk),
            caching: caching(disk),
        }
    }

    /// Returns the reason for the disk's properties.
    pub(crate) fn words(&self) -> String {
        let Self { disk, lun, caching, .. } = self;
        let cache = match disk.cache {
            CacheMode::None => "no host cache",
            CacheMode::ReadOnly => "host cache for reads",
            CacheMode::ReadWrite => {
                "host cache for reads and writes: a crash of the host loses writes that are not \
                 written back"
            }
        };
        format!("{}: {}, LUN {lun}, {caching}: {cache}.", disk.own, disk.words())
    }
}

/// Returns the cache mode as Azure names it.
pub(crate) fn caching(disk: &Disk) -> &'static str {
    match disk.cache {
        CacheMode::None => "None",
        CacheMode::ReadOnly => "ReadOnly",
        CacheMode::ReadWrite => "ReadWrite",
    }
}

/// Changes of a disk, by the steps of Azure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DiskChange {
    pub(crate) grows: bool,
    /// True if the machine must be deallocated for it.
    pub(crate) stops: bool,
    pub(crate) rates: bool,
    pub(crate) tier: bool,
    pub(crate) burst: bool,
    pub(crate) cache: bool,
}

impl DiskChange {
    /// Returns the steps, and reports changes that Azure cannot make to a disk in use.
    pub(crate) fn between(script: &mut Script, old: &Disk, new: &Disk) -> Self {
        let mut manual = Vec::new();
        if new.size < old.size {
            manual.push(format!("shrink from {} to {}", old.size, new.size));
        }
        if new.family != old.family {
            let family = |disk: &Disk| disk.family.clone().unwrap_or_default();
            manual.push(format!("go from {} to {}", family(old), family(new)));
        }
        if new.performance_plus != old.performance_plus {
            manual.push(
                "change its performance plus, which can be chosen only when a disk is created"
                    .to_owned(),
            );
        }
        if !manual.is_empty() {
            script.warn(&format!(
                "{} would {}. Azure cannot do that to a disk with data: create another disk, copy, \
                 and switch over.",
                new.own,
                manual.join(", and ")
            ));
        }
        Self::steps(old, new)
    }

    /// Returns the steps only.
    pub(crate) fn steps(old: &Disk, new: &Disk) -> Self {
        let stays = new.family == old.family;
        let grows = stays && new.size > old.size;
        Self {
            grows,
            stops: grows && may_stop(new) && old.size <= ONLINE,
            rates: stays && new.bought != old.bought,
            tier: stays && new.performance_tier != old.performance_tier,
            burst: stays && new.on_demand_burst != old.on_demand_burst,
            cache: new.cache != old.cache,
        }
    }
}

/// Disks up to this size cannot grow beyond it while the machine runs.
const ONLINE: Bytes = Bytes::gib(4096);

/// Returns whether the machine must be deallocated if the disk that grows to this one is at most 4
/// TiB. Disks whose limits are bought grow online at any size.
pub(crate) fn may_stop(new: &Disk) -> bool {
    let is_bought = matches!(new.family.as_deref(), Some("premium-ssd-v2" | "ultra"));
    !is_bought && new.size > ONLINE
}

/// Writes a note about growing a disk in use; `allows` is the setting that lets the machine stop.
pub(crate) fn tell_growth(script: &mut Script, disk: &Disk, steps: DiskChange, allows: &str) {
    script.comment(GROWS);
    if steps.stops {
        let words = format!(
            "{} crosses 4 TiB: the machine is deallocated for that and started again; its local \
             disk and its host cache are empty then",
            disk.own
        );
        script.note(&format!("{words}; {allows} allows it"));
        script.comment(&format!("{words}. {allows} allows it."));
    }
}

/// Writes a note about a resize of the machine; `allows` as above.
pub(crate) fn tell_resize(
    script: &mut Script,
    change: &Change,
    (old, new): (&str, &str),
    allows: &str,
) {
    let words = resize_words(change, old, new);
    script.note(&words);
    script.blank();
    script.comment(&format!("{words}. {allows} allows it."));
}

/// Returns the state of a disk in a module, and whether it grows. Properties that cannot change
/// keep their old value, because a change would destroy and recreate the disk. `remove` explains
/// how to remove a disk that goes.
pub(crate) fn in_module(script: &mut Script, fate: Fate<'_, Disk>, remove: &str) -> (Disk, bool) {
    match fate {
        Fate::New(disk) | Fate::Same(disk) => (disk.clone(), false),
        Fate::Changed(old, disk) => {
            let steps = DiskChange::between(script, old, disk);
            if steps.cache {
                script.comment(CACHE);
            }
            (disk::possible(old, disk), steps.grows)
        }
        Fate::Gone(disk) => {
            disk::gone(script, disk);
            script.comment(remove);
            (disk.clone(), false)
        }
    }
}

/// Returns the operating system of the machine that the script creates. Rejects `--os` for a script
/// that creates none, and a Windows Server licence for Linux.
pub(crate) fn check_os(
    script: &Script,
    change: &Change,
    options: &Options,
    makes: bool,
) -> Result<OperatingSystem, ExportError> {
    if let Some(os) = options.os.filter(|_| !makes) {
        let reason = "this script creates no machine; leave it out";
        return Err(refused(format!("--os {}", os.name()), reason.to_owned()));
    }
    let os = options.os.unwrap_or_default();
    if makes && change.new.licence_owned && os == OperatingSystem::Linux {
        let reason = "licence_owned stands for a Windows Server licence, but the machine runs Linux; export \
                      with --os windows, or remove licence_owned";
        let what = format!("host {:?}", change.new.host);
        return Err(cannot(script, &change.new, what, reason));
    }
    let Some(own) = change.new.filesystem.filter(|_| makes) else { return Ok(os) };
    let of_files = match own {
        FileSystem::Ntfs => OperatingSystem::Windows,
        FileSystem::Ext4 | FileSystem::Xfs => OperatingSystem::Linux,
    };
    if of_files != os {
        let reason = format!(
            "the file system of its disks is {}, but the machine runs {}; export with --os {}",
            own.name(),
            os.name(),
            of_files.name()
        );
        let what = format!("host {:?}", change.new.host);
        return Err(cannot(script, &change.new, what, &reason));
    }
    Ok(os)
}

/// Warns about a resize that the cloud or the operating system does not take, and that no script makes.
pub(crate) fn tell_refusal(script: &mut Script, change: &Change, (old, new): (&str, &str)) {
    script.blank();
    script.warn(&format!("{}.", resize_words(change, old, new)));
}

/// Warns about a change of the disk controller, which no script makes.
pub(crate) fn tell_interfaces(script: &mut Script, change: &Change) {
    let Some((old, new)) = change.interfaces() else { return };
    script.warn(&format!("{}.", interface_words(change, old, new)));
}

/// Returns the steps of a change of the disk controller.
pub(crate) fn interface_words(change: &Change, old: Interface, new: Interface) -> String {
    let size = change.new.size.as_deref().map(machine_size).unwrap_or_default();
    format!(
        "the disk controller changes from {} to {} ({size}). Prepare the operating system first (driver in the \
         initramfs, no kernel device names in /etc/fstab), then deallocate the machine and set its controller \
         and size; Microsoft's Azure-NVMe-Conversion.ps1 does all of this",
        old.name(),
        new.name()
    )
}

/// The requirements of an NVMe disk controller.
pub(crate) const NVME_IMAGE: &str = "The limits in the layout require the NVMe disk controller. The image must \
    be of generation 2 and list NVMe among its DiskControllerTypes (az vm image show --urn URN).";

/// Rejects a location for a script that creates nothing.
pub(crate) fn check_place(options: &Options, makes: bool) -> Result<(), ExportError> {
    let location = options.location.as_ref().map(|own| format!("--location {own}"));
    let zone = options.zone.as_ref().map(|own| format!("--zone {own}"));
    match location.or(zone).filter(|_| !makes) {
        Some(option) => {
            Err(refused(option, "this script creates nothing new; leave it out".to_owned()))
        }
        None => Ok(()),
    }
}

/// Note about growing a disk in use.
pub(crate) const GROWS: &str = "Most disks grow while the machine runs. It must be deallocated if \
                                a disk crosses 4 TiB, or if the machine is too old. Afterwards \
                                grow the partition, if there is one, and the file system: \
                                xfs_growfs, resize2fs or Resize-Partition.";

/// Note about changing a cache mode.
pub(crate) const CACHE: &str =
    "Azure detaches the disk and attaches it again: stop the programs that use it first.";

impl<'a> Sql<'a> {
    fn from_instance(
        script: &Script,
        change: &'a Change,
        new: &'a Instance,
        options: &Options,
    ) -> Result<Self, ExportError> {
        let site = &change.new;
        if !new.storage.get().is_multiple_of(1 << 30) {
            let what = format!("host {:?}", site.host);
            return Err(cannot(script, site, what, "its storage is not a whole number of GB"));
        }
        check_os(script, change, options, false)?;
        if let Some(zone) = &options.zone {
            return Err(refused(
                format!("--zone {zone}"),
                "the zone of an instance cannot be chosen; leave it out".to_owned(),
            ));
        }
        if let Some(name) = &options.machine {
            let ends = !name.starts_with('-') && !name.ends_with('-');
            if !ends
                || name.len() > 63
                || !name
                    .chars()
                    .all(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
            {
                return Err(refused(
                    format!("--machine {name}"),
                    "the name of an instance has 1 to 63 lower-case letters, digits and '-', and \
                     neither starts nor ends with '-'"
                        .to_owned(),
                ));
            }
        }
        let old = change.old.as_ref();
        let old_instance = old.and_then(|old| old.instance.as_ref());
        let same = |old: &Instance| {
            (old.kind, old.vcores, old.storage) == (new.kind, new.vcores, new.storage)
        };
        let iops = |site: &Site, own: &Instance| {
            site.quota.filter(|_| own.kind == ManagedInstance::NextGenGp)
        };
        let old_iops = old.and_then(|old| iops(old, old.instance.as_ref()?));
        let iops = iops(site, new);
        let new_licence = change.licence();
        let changes =
            old_instance.is_none_or(|own| !same(own)) || old_iops != iops || new_licence.is_some();
        let licence_owned = site.licence_owned;
        Ok(Self { new, old: old_instance, iops, old_iops, licence_owned, new_licence, changes })
    }

    /// Returns the licence type, as Azure names it.
    pub(crate) fn licence(&self) -> &'static str {
        if self.licence_owned { "BasePrice" } else { "LicenseIncluded" }
    }

    pub(crate) fn edition(&self) -> &'static str {
        edition(self.new)
    }

    /// Returns the changes of an instance in use.
    pub(crate) fn steps(&self, old: &Instance) -> SqlChange {
        let new = self.new;
        let is_next_gen = |own: &Instance| own.kind == ManagedInstance::NextGenGp;
        SqlChange {
            edition: edition(old) != edition(new),
            vcores: old.vcores != new.vcores,
            storage: old.storage != new.storage,
            grows: old.storage < new.storage,
            next_gen: is_next_gen(old) != is_next_gen(new),
            iops: self.iops.filter(|_| self.iops != self.old_iops),
            licence: self.new_licence.is_some(),
        }
    }

    /// Returns the prefix of the SKU.
    pub(crate) fn sku(&self) -> &'static str {
        match self.new.kind {
            ManagedInstance::Bc => "BC",
            ManagedInstance::Gp | ManagedInstance::NextGenGp => "GP",
        }
    }

    pub(crate) fn is_next_gen(&self) -> bool {
        self.new.kind == ManagedInstance::NextGenGp
    }

    pub(crate) fn gb(&self) -> u64 {
        self.new.storage.get() >> 30
    }

    /// Returns a description for comments.
    pub(crate) fn words(&self) -> String {
        let iops = self.iops.map(|iops| format!(", {iops} IOPS in all")).unwrap_or_default();
        format!(
            "{} with {} vCores and {} of storage{iops}; the SQL Server licence is {}. Its files are the \
             databases': --as tsql.",
            self.new.kind.name(),
            self.new.vcores,
            self.new.storage,
            if self.licence_owned { "owned" } else { "included in the price" }
        )
    }

    /// Writes a warning about the effect of a change on a running instance.
    pub(crate) fn warns(&self, script: &mut Script) {
        let Some(old) = self.old.filter(|_| self.changes) else { return };
        if self.new.storage < old.storage {
            script.note(&format!(
                "the storage shrinks from {} to {}; the files must fit",
                old.storage, self.new.storage
            ));
        }
        let text = "a change of an instance takes minutes to hours, and ends with a failover that \
                    cuts connections for some seconds";
        script.comment(&format!("{text}."));
        script.note(text);
    }
}

fn edition(instance: &Instance) -> &'static str {
    match instance.kind {
        ManagedInstance::Bc => "BusinessCritical",
        ManagedInstance::Gp | ManagedInstance::NextGenGp => "GeneralPurpose",
    }
}

/// Returns the note about a resize of a machine.
pub(crate) fn resize_words(change: &Change, old: &str, new: &str) -> String {
    match change.refusal() {
        Some(refusal) => format!("{old} becomes {new}: {refusal}"),
        None => format!(
            "{old} becomes {new}: that restarts the machine, and its local disk and host cache lose \
             their data"
        ),
    }
}
