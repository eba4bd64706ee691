//! The downtime of a change, by provider.

use weir_catalog::Catalog;
use weir_diagnose::Change;
use weir_layout::{Host, Layout, Role, Volume};
use weir_units::Bytes;

/// Azure detaches a disk that grows past this size.
const AZURE_ONLINE: Bytes = Bytes::gib(4 << 10);

/// The note on a search without changes that have downtime.
pub(crate) const LEFT_OUT: &str = "changes with downtime were left out";

/// Returns whether a change of `before` to `after` has downtime. The failover that ends a change of an instance's storage
/// or IOPS, of about ten seconds, does not count.
pub(crate) fn has_downtime(
    change: &Change,
    (before, after): (&Layout, &Layout),
    catalog: &Catalog,
) -> bool {
    match change {
        Change::All(all) => all.iter().any(|own| has_downtime(own, (before, after), catalog)),
        Change::HostSize { .. }
        | Change::Columns { .. }
        | Change::Unit { .. }
        | Change::Stripe { .. }
        | Change::Cache { .. }
        | Change::Vcores { .. }
        | Change::Move { .. } => true,
        Change::PerformanceTier { .. }
        | Change::Storage { .. }
        | Change::InstanceIops { .. }
        | Change::File { .. }
        | Change::Bought { .. } => false,
        Change::Size { name, .. } | Change::Tier { name, .. } => {
            is_detached(name, (before, after), catalog)
        }
    }
}

/// Returns whether a disk is detached while it grows: on Azure past 4 TiB, unless its limits are bought (Premium SSD v2,
/// Ultra).
fn is_detached(name: &str, (before, after): (&Layout, &Layout), catalog: &Catalog) -> bool {
    let edition = before.edition.as_deref().and_then(|name| catalog.edition(name).ok());
    let is_bought = |own: &Volume| {
        let family = own.family.as_deref();
        edition.zip(family).is_some_and(|(edition, family)| edition.provisioned(family).is_ok())
    };
    before.provider.as_deref() == Some("azure")
        && before.hosts.iter().all(|host| host.instance.is_none())
        && !disks(before, name).any(is_bought)
        && largest(before, name) <= AZURE_ONLINE
        && largest(after, name) > AZURE_ONLINE
}

/// Returns what a change of `before` to `after` interrupts.
pub(crate) fn downtime(
    change: &Change,
    (before, after): (&Layout, &Layout),
    catalog: &Catalog,
) -> String {
    let provider = before.provider.as_deref().unwrap_or_default();
    match change {
        Change::All(all) => {
            let mut words: Vec<String> = Vec::new();
            for own in all.iter().map(|own| downtime(own, (before, after), catalog)) {
                if !words.contains(&own) {
                    words.push(own);
                }
            }
            // A change without downtime says nothing beside one with it.
            if words.len() > 1 {
                words.retain(|own| own != "none" && !own.starts_with("none;"));
            }
            words.join("; ")
        }
        Change::HostSize { .. } => {
            let mut words = "the machine restarts".to_owned();
            for obstacle in obstacles((before, after), catalog) {
                words += &format!("; {obstacle}");
            }
            words
        }
        Change::Columns { .. } | Change::Unit { .. } | Change::Stripe { .. } => {
            "a new stripe is built: copy the data to it, then switch over".to_owned()
        }
        Change::Cache { .. } => {
            "the disk is detached and attached again: stop the database on it for some seconds"
                .to_owned()
        }
        Change::Vcores { .. } => {
            "none until a failover at the end, of about 10 seconds; connections are lost".to_owned()
        }
        Change::Storage { .. } | Change::InstanceIops { .. } => {
            "none until a failover at the end, of about 10 seconds".to_owned()
        }
        Change::Move { file, .. } if is_tempdb(before, file) => {
            "the database server restarts, and creates the file there".to_owned()
        }
        Change::Move { .. } => {
            "the file's database is offline while the file is copied to the other disk".to_owned()
        }
        Change::PerformanceTier { .. } => "none".to_owned(),
        Change::File { like, .. } if is_tempdb(before, like) => "none".to_owned(),
        Change::File { .. } => {
            "none; existing data stays in the other files until its indexes are rebuilt".to_owned()
        }
        Change::Bought { .. } => match provider {
            "aws" => "none; a volume can change up to four times in 24 hours".to_owned(),
            "azure" => "none; a disk can change up to four times in 24 hours".to_owned(),
            _ => "none".to_owned(),
        },
        Change::Size { name, .. } | Change::Tier { name, .. } => match provider {
            _ if before.hosts.iter().any(|host| host.instance.is_some()) => "none".to_owned(),
            _ if is_detached(name, (before, after), catalog) => {
                "the disk is detached: it grows past 4 TiB".to_owned()
            }
            "aws" => "none; a volume can change up to four times in 24 hours".to_owned(),
            _ => "none".to_owned(),
        },
    }
}

/// Returns the obstacles to the new sizes of machines.
fn obstacles((before, after): (&Layout, &Layout), catalog: &Catalog) -> Vec<String> {
    let edition = before.edition.as_deref().and_then(|name| catalog.edition(name).ok());
    let size = |host: &Host| edition?.host(&host.qualified_size()?).ok();
    let pairs = before.hosts.iter().zip(&after.hosts);
    pairs.filter_map(|(old, new)| edition?.obstacle(size(old)?, size(new)?)).collect()
}

fn is_tempdb(layout: &Layout, name: &str) -> bool {
    let mut files = layout.hosts.iter().flat_map(|host| &host.files);
    files.any(|file| file.name == name && file.role == Role::Tempdb)
}

/// Returns the size of the largest disk of a volume or stripe.
fn largest(layout: &Layout, name: &str) -> Bytes {
    let size = |own: &Volume| own.tier_size.unwrap_or(own.spec.size);
    disks(layout, name).map(size).max().unwrap_or(Bytes::ZERO)
}

/// Returns the disks of a volume or stripe.
fn disks<'l>(layout: &'l Layout, name: &str) -> impl Iterator<Item = &'l Volume> {
    layout.hosts.iter().flat_map(move |host| {
        let exports = host.exports.iter().filter(move |export| export.name == name);
        exports.flat_map(|export| export.volumes.iter().filter_map(|id| host.volumes.get(id.0)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(tier: &str) -> Layout {
        let text =
            format!("edition = \"azure-now\"\n[[volume]]\nname = \"d\"\ntier = \"{tier}\"\n");
        Layout::parse("layout.toml", &text, &Catalog::builtin()).expect("a layout")
    }

    #[test]
    fn a_disk_has_downtime_only_where_it_grows_past_4_tib() {
        let catalog = Catalog::builtin();
        for (from, to, is_detached) in [
            ("P30", "P40", false),
            ("P40", "P50", false),
            ("P50", "P60", true),
            ("P60", "P70", false),
        ] {
            let change = Change::Tier { name: "d".to_owned(), tier: to.to_owned() };
            let (before, after) = (layout(from), layout(to));
            let layouts = (&before, &after);
            assert_eq!(has_downtime(&change, layouts, &catalog), is_detached, "{from} to {to}");
            assert_eq!(
                downtime(&change, layouts, &catalog) == "none",
                !is_detached,
                "{from} to {to}"
            );
            let unit = Change::Unit { name: "d".to_owned(), bytes: 1 << 16 };
            assert!(has_downtime(&Change::All(vec![change, unit]), layouts, &catalog));
        }
        // Disks whose limits are bought grow online.
        let sized = |gib: u64| {
            let disk = format!("name = \"d\"\nfamily = \"premium-ssd-v2\"\nsize = \"{gib} GiB\"\n");
            let text = format!("edition = \"azure-now\"\n[[volume]]\n{disk}");
            Layout::parse("layout.toml", &text, &catalog).expect("a layout")
        };
        let (before, after) = (sized(3_000), sized(6_000));
        let change = Change::Size { name: "d".to_owned(), bytes: 6_000 << 30 };
        assert!(!has_downtime(&change, (&before, &after), &catalog));
    }
}
