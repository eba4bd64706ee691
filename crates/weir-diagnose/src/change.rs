//! A change of a layout, as its text has it.

use crate::system::CacheMode;
use toml::{Table, Value};
use weir_units::{Bytes, BytesPerSec};

/// A disk of a new stripe whose rates are bought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StripeDisk {
    /// Its size in bytes.
    pub size: u64,
    /// Operations per second.
    pub iops: u64,
    /// Bytes per second; `None` if they follow from the operations.
    pub throughput: Option<u64>,
}

/// A change of a layout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// A file, or a volume, has another size in bytes; a volume goes to the tier of that.
    Size {
        /// Name.
        name: String,
        /// Size in bytes.
        bytes: u64,
    },
    /// A volume is of another tier; of a stripe all columns are.
    Tier {
        /// The volume's or stripe's name.
        name: String,
        /// The tier.
        tier: String,
    },
    /// A volume, or each column of a stripe, has another performance tier, or none.
    PerformanceTier {
        /// The volume's or stripe's name.
        name: String,
        /// The performance tier; `None` for the limits of its own tier.
        tier: Option<String>,
    },
    /// A volume has another cache mode.
    Cache {
        /// Name.
        name: String,
        /// The mode.
        mode: CacheMode,
    },
    /// A host is of another size.
    HostSize {
        /// The host's name, for layouts with several.
        host: String,
        /// The size.
        size: String,
    },
    /// An instance reserves another size of storage, in bytes.
    Storage {
        /// The host's name, for layouts with several.
        host: String,
        /// The storage.
        bytes: u64,
    },
    /// Another number of columns of a stripe.
    Columns {
        /// Name.
        name: String,
        /// Number of columns.
        columns: u32,
    },
    /// A volume becomes a stripe of equal volumes.
    Stripe {
        /// The volume's name, and then the stripe's.
        name: String,
        /// Number of columns.
        columns: u32,
        /// The tier of each, if it is another one.
        tier: Option<String>,
        /// Each disk, if it is another one whose rates are bought.
        each: Option<StripeDisk>,
        /// The stripe unit, in bytes.
        unit: u64,
    },
    /// Another stripe unit, in bytes.
    Unit {
        /// The stripe's name.
        name: String,
        /// The unit.
        bytes: u64,
    },
    /// Other bought limits of a provisioned volume; of a stripe all columns have them.
    Bought {
        /// The volume's or stripe's name.
        name: String,
        /// Operations per second.
        iops: u64,
        /// Bytes per second; `None` if they follow from the operations.
        throughput: Option<u64>,
    },
    /// Another number of vCores of a managed instance.
    Vcores {
        /// The host's name, for layouts with several.
        host: String,
        /// Number of vCores.
        vcores: u32,
    },
    /// Other bought operations per second of a managed instance.
    InstanceIops {
        /// The host's name, for layouts with several.
        host: String,
        /// Operations per second.
        iops: u64,
    },
    /// A file of a machine is on another volume or stripe.
    Move {
        /// The file's name.
        file: String,
        /// The volume's or stripe's name.
        on: String,
    },
    /// A managed instance has one more file, with the role and the database of another one.
    File {
        /// Its name.
        name: String,
        /// The name of the other file.
        like: String,
        /// Size in bytes.
        bytes: u64,
    },
    /// Several changes together.
    All(Vec<Change>),
}

impl Change {
    /// Returns the sizes that it gives to files and volumes, by their names.
    #[must_use]
    pub fn sizes(&self) -> Vec<(&str, u64)> {
        match self {
            Self::Size { name, bytes } => vec![(name, *bytes)],
            Self::All(all) => all.iter().flat_map(Self::sizes).collect(),
            _ => Vec::new(),
        }
    }

    /// Returns whether the change enables a cache.
    #[must_use]
    pub(crate) fn turns_cache_on(&self) -> bool {
        match self {
            Self::Cache { mode, .. } => *mode != CacheMode::None,
            Self::All(all) => all.iter().any(Self::turns_cache_on),
            _ => false,
        }
    }

    /// Returns a description.
    #[must_use]
    pub fn words(&self) -> String {
        match self {
            Self::Size { name, bytes } => {
                format!("{name} at {}", Bytes::new(*bytes))
            }
            Self::Tier { name, tier } => format!("{name} as {tier}"),
            Self::PerformanceTier { name, tier: Some(tier) } => {
                format!("{name} with performance tier {tier}")
            }
            Self::PerformanceTier { name, tier: None } => {
                format!("{name} without a performance tier")
            }
            Self::Cache { name, mode } => format!("{name} with host cache {mode}"),
            Self::HostSize { size, .. } => format!("machine {size}"),
            Self::Storage { bytes, .. } => {
                format!("{} of instance storage", Bytes::new(*bytes))
            }
            Self::Columns { name, columns } => format!("{name} with {columns} columns"),
            Self::Stripe { name, columns, tier, each, .. } => {
                let tier = tier.as_ref().map(|tier| format!(" {tier}")).unwrap_or_default();
                let each = each.map(|own| format!(" of {}", own.words())).unwrap_or_default();
                format!("{name} as a stripe of {columns}{tier} disks{each}")
            }
            Self::Unit { name, bytes } => {
                format!("{name} with a stripe unit of {}", Bytes::new(*bytes))
            }
            Self::Bought { name, iops, throughput } => {
                format!("{name} with {} bought", rates(*iops, *throughput))
            }
            Self::Vcores { host, vcores } => format!("{host} with {vcores} vCores"),
            Self::InstanceIops { host, iops } => format!("{host} with {iops} IOPS"),
            Self::Move { file, on } => format!("{file} moved to {on}"),
            Self::File { name, bytes, .. } => {
                format!("new file {name} of {}", Bytes::new(*bytes))
            }
            Self::All(changes) => words_of_all(changes),
        }
    }

    /// Applies the change to the text of a layout; `None` if the layout has nothing to change.
    #[must_use]
    pub fn apply(&self, layout: &str) -> Option<String> {
        let mut table: Table = layout.parse().ok()?;
        self.apply_to(&mut table)?;
        toml::to_string(&table).ok()
    }

    fn apply_to(&self, layout: &mut Table) -> Option<()> {
        match self {
            Self::Size { name, bytes } => {
                let size = bytes_value(*bytes);
                let own = match named(layout, "file", name) {
                    Some(file) => file,
                    None => {
                        // The tier follows from the size.
                        let volume = named(layout, "volume", name)?;
                        volume.remove("tier");
                        volume
                    }
                };
                own.insert("size".to_owned(), size);
                Some(())
            }
            Self::Tier { name, tier } => {
                let tier = Value::String(tier.clone());
                let own = disks(layout, name)?;
                own.remove("size");
                own.insert("tier".to_owned(), tier);
                Some(())
            }
            Self::PerformanceTier { name, tier } => {
                let own = disks(layout, name)?;
                match tier {
                    Some(tier) => {
                        own.insert("performance_tier".to_owned(), Value::String(tier.clone()));
                    }
                    None => drop(own.remove("performance_tier")),
                }
                Some(())
            }
            Self::Cache { name, mode } => {
                let own = disks(layout, name)?;
                own.insert("cache".to_owned(), Value::String(mode.name().to_owned()));
                Some(())
            }
            Self::HostSize { host, size } => {
                host_table(layout, host)?.insert("size".to_owned(), Value::String(size.clone()));
                Some(())
            }
            Self::Storage { host, bytes } => {
                host_table(layout, host)?.insert("storage".to_owned(), bytes_value(*bytes));
                Some(())
            }
            Self::Columns { name, columns } => {
                let volumes = named(layout, "stripe", name)?.get_mut("volumes")?.as_table_mut()?;
                volumes.insert("count".to_owned(), Value::Integer(i64::from(*columns)));
                Some(())
            }
            Self::Stripe { name, columns, tier, each, unit } => {
                to_stripe(layout, name, (*columns, *unit), (tier.as_deref(), *each))
            }
            Self::Unit { name, bytes } => {
                named(layout, "stripe", name)?.insert("unit".to_owned(), bytes_value(*bytes));
                Some(())
            }
            Self::Bought { name, iops, throughput } => {
                buy(disks(layout, name)?, (*iops, *throughput))
            }
            Self::Vcores { host, vcores } => {
                let vcores = Value::Integer(i64::from(*vcores));
                host_table(layout, host)?.insert("vcores".to_owned(), vcores);
                Some(())
            }
            Self::InstanceIops { host, iops } => {
                let iops = Value::Integer(i64::try_from(*iops).ok()?);
                host_table(layout, host)?.insert("iops".to_owned(), iops);
                Some(())
            }
            Self::Move { file, on } => {
                named(layout, "file", file)?.insert("on".to_owned(), Value::String(on.clone()));
                Some(())
            }
            Self::File { name, like, bytes } => add_file(layout, (name, like), *bytes),
            Self::All(changes) => changes.iter().try_for_each(|change| change.apply_to(layout)),
        }
    }
}

impl StripeDisk {
    fn words(self) -> String {
        format!("{} with {}", Bytes::new(self.size), rates(self.iops, self.throughput))
    }
}

/// Returns bought rates in words.
pub(crate) fn rates(iops: u64, throughput: Option<u64>) -> String {
    let throughput = throughput.and_then(BytesPerSec::new);
    let throughput = throughput.map_or_else(String::new, |own| format!(" and {own}"));
    format!("{iops} IOPS{throughput}")
}

/// Writes bought rates into the keys of a volume.
fn buy(own: &mut Table, (iops, throughput): (u64, Option<u64>)) -> Option<()> {
    own.insert("iops".to_owned(), Value::Integer(i64::try_from(iops).ok()?));
    if let Some(throughput) = throughput {
        let throughput = BytesPerSec::new(throughput)?.to_string();
        own.insert("throughput".to_owned(), Value::String(throughput));
    }
    Some(())
}

/// Returns a size as layouts have it.
fn bytes_value(bytes: u64) -> Value {
    Value::String(Bytes::new(bytes).exact().to_string())
}

/// Adds a file with the keys of another, but its own name and size. The data is spread over the files of its database by
/// their sizes.
fn add_file(layout: &mut Table, (name, like): (&str, &str), bytes: u64) -> Option<()> {
    let mut new = named(layout, "file", like)?.clone();
    new.insert("name".to_owned(), Value::String(name.to_owned()));
    new.insert("size".to_owned(), bytes_value(bytes));
    let files = layout.get_mut("file")?.as_array_mut()?;
    files.push(Value::Table(new.clone()));
    let is_alike =
        |own: &Table| ["role", "database"].iter().all(|key| own.get(*key) == new.get(*key));
    for own in files.iter_mut().filter_map(Value::as_table_mut).filter(|own| is_alike(own)) {
        own.remove("used");
    }
    Some(())
}

/// Turns a volume into a stripe of that many columns and that unit, each of a tier or a size.
fn to_stripe(
    layout: &mut Table,
    name: &str,
    (columns, unit): (u32, u64),
    (tier, own): (Option<&str>, Option<StripeDisk>),
) -> Option<()> {
    let volumes = layout.get_mut("volume")?.as_array_mut()?;
    let is_it = |own: &Value| own.get("name").and_then(Value::as_str) == Some(name);
    let at = volumes.iter().position(is_it)?;
    let Value::Table(mut each) = volumes.remove(at) else { return None };
    if volumes.is_empty() {
        layout.remove("volume");
    }
    let mut stripe = Table::new();
    stripe.insert("name".to_owned(), each.remove("name")?);
    if let Some(host) = each.remove("host") {
        stripe.insert("host".to_owned(), host);
    }
    stripe.insert("unit".to_owned(), bytes_value(unit));
    each.remove("lun");
    each.insert("count".to_owned(), Value::Integer(i64::from(columns)));
    if let Some(tier) = tier {
        each.remove("size");
        each.insert("tier".to_owned(), Value::String(tier.to_owned()));
    }
    if let Some(StripeDisk { size, iops, throughput }) = own {
        each.insert("size".to_owned(), bytes_value(size));
        buy(&mut each, (iops, throughput))?;
    }
    stripe.insert("volumes".to_owned(), Value::Table(each));
    let stripes = layout.entry("stripe").or_insert_with(|| Value::Array(Vec::new()));
    stripes.as_array_mut()?.push(Value::Table(stripe));
    Some(())
}

/// Returns the table of a host: the only one, or the one of that name.
fn host_table<'a>(layout: &'a mut Table, name: &str) -> Option<&'a mut Table> {
    match layout.get_mut("host")? {
        Value::Table(own) => Some(own),
        Value::Array(all) => all
            .iter_mut()
            .filter_map(Value::as_table_mut)
            .find(|own| own.get("name").and_then(Value::as_str) == Some(name)),
        _ => None,
    }
}

/// Returns the keys of a volume, or those of a stripe's equal columns.
fn disks<'a>(layout: &'a mut Table, name: &str) -> Option<&'a mut Table> {
    // A second lookup, since the first borrow would last for both.
    match named(layout, "volume", name).is_some() {
        true => named(layout, "volume", name),
        false => named(layout, "stripe", name)?.get_mut("volumes")?.as_table_mut(),
    }
}

/// Finds a table by its name in a list of a layout.
fn named<'a>(layout: &'a mut Table, list: &str, name: &str) -> Option<&'a mut Table> {
    let all = layout.get_mut(list)?.as_array_mut()?;
    let mut tables = all.iter_mut().filter_map(Value::as_table_mut);
    tables.find(|own| own.get("name").and_then(Value::as_str) == Some(name))
}

/// Describes changes. New files of one size that follow each other are one phrase.
fn words_of_all(changes: &[Change]) -> String {
    let size = |change: &Change| match change {
        Change::File { bytes, .. } => Some(*bytes),
        _ => None,
    };
    let is_same = |one: &Change, other: &Change| size(one).is_some() && size(one) == size(other);
    let words = changes.chunk_by(is_same).map(|run| match run {
        [Change::File { name: first, bytes, .. }, .., Change::File { name: last, .. }] => {
            format!("{} new files of {}, {first} to {last}", run.len(), Bytes::new(*bytes))
        }
        _ => run.iter().map(Change::words).collect::<Vec<_>>().join(", "),
    });
    words.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_catalog::Catalog;
    use weir_layout::Layout;

    const LAYOUT: &str = "edition = \"azure-premium-2015\"\nhost = { size = \"DS13\" }\n\
        [[volume]]\nname = \"log\"\ntier = \"P20\"\n\
        [[stripe]]\nname = \"pool\"\nunit = \"64 KiB\"\nvolumes = { count = 2, tier = \"P10\" }\n";

    /// Returns the layout after a change.
    fn after(change: &Change) -> Layout {
        let text = change.apply(LAYOUT).expect("it is there");
        Layout::parse("layout.toml", &text, &Catalog::builtin()).expect("a layout")
    }

    fn tiers(layout: &Layout) -> Vec<&str> {
        layout.hosts[0].volumes.iter().filter_map(|volume| volume.tier.as_deref()).collect()
    }

    #[test]
    fn changes_apply_to_the_layout() {
        let name = || "pool".to_owned();
        let tier = Change::Tier { name: name(), tier: "P30".to_owned() };
        assert_eq!(tiers(&after(&tier)), ["P20", "P30", "P30"]);
        let columns = Change::Columns { name: name(), columns: 4 };
        assert_eq!(tiers(&after(&columns)).len(), 5);
        let size = Change::Size { name: "log".to_owned(), bytes: 600 << 30 };
        assert_eq!(tiers(&after(&size)), ["P30", "P10", "P10"]);
        let host = Change::HostSize { host: "host".to_owned(), size: "DS14".to_owned() };
        assert_eq!(after(&host).hosts[0].size.as_deref(), Some("DS14"));
        let cache = Change::Cache { name: "log".to_owned(), mode: CacheMode::ReadOnly };
        let cached = after(&Change::All(vec![cache, columns]));
        assert_eq!(cached.hosts[0].spec.volumes[0].cache, weir_core::CacheMode::ReadOnly);
        assert_eq!(cached.hosts[0].volumes.len(), 5);
        let unit = after(&Change::Unit { name: name(), bytes: 256 << 10 });
        let pool = unit.hosts[0].exports.iter().find(|export| export.name == "pool");
        assert_eq!(pool.and_then(|pool| pool.unit), Some(Bytes::kib(256)));
        let moved = Change::Move { file: "missing".to_owned(), on: name() };
        assert_eq!(moved.apply(LAYOUT), None);
        let stripe = Change::Stripe {
            name: "log".to_owned(),
            columns: 3,
            tier: Some("P10".to_owned()),
            each: None,
            unit: 64 << 10,
        };
        let striped = after(&stripe);
        assert_eq!(tiers(&striped), ["P10"; 5]);
        let log = striped.hosts[0].exports.iter().find(|export| export.name == "log");
        assert_eq!(log.map(|log| log.volumes.len()), Some(3));
        let raised = |tier| Change::PerformanceTier { name: "log".to_owned(), tier };
        let text = raised(Some("P30".to_owned())).apply(LAYOUT).expect("it is there");
        assert!(text.contains("performance_tier = \"P30\""), "{text}");
        let back = raised(None).apply(&text).expect("it is there");
        assert_eq!(back, LAYOUT.parse::<Table>().expect("TOML").to_string());
        let missing = Change::Size { name: "missing".to_owned(), bytes: 1 };
        assert_eq!(missing.apply(LAYOUT), None);
    }

    #[test]
    fn a_file_is_added_with_the_role_and_the_database_of_another() {
        let text = "edition = \"azure-mi-2018\"\nhost = { managed_instance = \"gp\", vcores = 8, storage = \"1 TiB\" \
            }\n[[file]]\nname = \"sales\"\nrole = \"data\"\ndatabase = \"shop\"\nsize = \"200 GiB\"\nused = \"150 GiB\"\n";
        let name = || "sales-2".to_owned();
        let added = Change::File { name: name(), like: "sales".to_owned(), bytes: 100 << 30 };
        let text = added.apply(text).expect("the other file is there");
        let layout = Layout::parse("layout.toml", &text, &Catalog::builtin()).expect("a layout");
        let [first, second] = layout.hosts[0].files.as_slice() else { panic!("two files") };
        assert_eq!((second.name.as_str(), second.size), ("sales-2", Bytes::gib(100)));
        assert_eq!((second.role, &second.database), (first.role, &first.database));
        let file = |n: u32, gib: u64| Change::File {
            name: format!("data-{n}"),
            like: "data".to_owned(),
            bytes: gib << 30,
        };
        let all = Change::All(vec![file(4, 32), file(5, 32), file(6, 32), file(7, 64)]);
        let words = "3 new files of 32 GiB, data-4 to data-6, new file data-7 of 64 GiB";
        assert_eq!(all.words(), words);
        let unlike = Change::File { name: name(), like: "missing".to_owned(), bytes: 1 };
        assert_eq!(unlike.apply(&text), None);
    }
}
