//! Dated facts about cloud storage as types: limits of disks and machines, cache
//! accounting, prices, and the source of each figure.
//!
//! No figure about a cloud is in code. Figures live in *editions*, one TOML file
//! each (`catalog/*.toml` of the repository, built into the library), and a user
//! can add editions of their own in the same format.
//!
//! ```
//! use weir_catalog::Catalog;
//! use weir_units::Bytes;
//!
//! let catalog = Catalog::builtin();
//! let edition = catalog.edition("azure-premium-2015")?;
//! assert_eq!(edition.tier("P30")?.iops.get(), 5_000);
//! // A size snaps up to the tier that holds it.
//! assert_eq!(edition.snap("premium-ssd", Bytes::gib(540))?.name, "P30");
//! // Where sources disagree, the row says so.
//! let ds14 = edition.host("Standard_DS14")?;
//! assert_eq!(ds14.uncached.as_ref().map(|l| l.iops.get()), Some(50_000));
//! assert!(ds14.provenance.conflicts().iter().any(|c| c.contains("51,200")));
//! # Ok::<(), weir_catalog::CatalogError>(())
//! ```
//!
//! | module | holds |
//! |---|---|
//! | [`catalog`] | [`Catalog`]: all editions, and search by name |
//! | [`edition`] | [`Edition`]: one dated set of facts |
//! | [`tier`], [`provisioned`] | limits of disks, by size step or as provisioned |
//! | [`sized`] | limits of disks that follow from the size, with credits |
//! | [`store`] | [`Store`], [`Pooled`]: storage of managed services, disks that share limits |
//! | [`architecture`] | [`Architecture`]: the instruction set of a machine, by its name |
//! | [`host`] | [`HostSize`]: machines and their limits |
//! | [`cache`] | [`HostCache`]: which limits an I/O counts against |
//! | [`latency`] | [`Latency`]: models of media, not published facts |
//! | [`price`] | [`PriceList`], [`PriceBook`]: prices by region and currency |
//! | [`rules`] | bursting, striping and other published rules |
//! | [`provenance`] | sources, dates and conflicts; [`figures`] lists them figure by figure |
//!
//! # Machines and prices in tables
//!
//! Today's editions have a thousand machines and prices in up to 57 regions. Those are in tables
//! (`catalog/data/*.csv`), compressed in the library; a region is read when its prices are asked for.
//! [`Edition::host`] finds a machine and [`Edition::price_book`] the prices of a region:
//!
//! ```
//! let catalog = weir_catalog::Catalog::builtin();
//! let edition = catalog.edition("azure-now")?;
//! assert_eq!(edition.host("D16s_v5")?.vcpus, Some(16));
//! let book = edition.price_book(Some("westeurope"), None, None)?.expect("the edition has prices");
//! let price = book.host("D16s_v5").expect("a price");
//! assert_eq!((price.month.to_string(), price.provenance.as_of()), ("671.60".into(), "2026-06-18"));
//! # Ok::<(), weir_catalog::CatalogError>(())
//! ```
//!
//! # The format of an edition
//!
//! Quantities are strings with their unit (`"200 MiB/s"` is 2^20, `"200 MB/s"` is
//! 10^6); operations per second are integers. An unknown key is an error
//! with its line. Figures that were not published are left out, never guessed.
//!
//! Every table states its `source` and `as_of`. A row inherits them and may state
//! its own; `figures` names a different source for some of the figures. `notes`,
//! `conflicts` (figures of other sources; the row has the one in use) and
//! `history` (earlier or later values) are lists of sentences
//! that `weir catalog show` prints.
//!
//! | table | holds |
//! |---|---|
//! | top level | `name`, `title`, `as_of`, `scope`, `extends` (an edition of the catalog whose tables apply where this one has none; its machines and prices come before those), `notes`, `conflicts`, `default_set` (the tier set of volumes without a family; required if there are several), `provider` (the cloud whose scripts `weir export` writes: `azure`, `aws` or `google`), `numbered_disks` (whether disks have LUNs), `root_disk_counts` (whether the root disk is one of the `max_data_disks`), `licence_programme` (if machines with an owned operating system licence are billed without it) |
//! | `[io_unit]` | `size`: an I/O counts once per unit or part of one; without it every I/O counts once |
//! | `[[tier_set]]` | `name`, `family`, `rows` of tiers, ascending. `holds` is the largest size that snaps to the tier, if it isn't `size`; `burst` is `kind = "credit"` with a `duration`, or `kind = "on-demand"`; `plus` are optional higher limits |
//! | `[[provisioned]]` | a family with provisioned limits: sizes, `minimum`, `maximum`, `iops_per_gib` and `throughput_per_iops` (upper limits; with `_min` lower limits), `io_unit` if I/Os are split, and `merges` if adjacent I/Os that wait count as one up to it; `minimum_included` if the price of the size includes the minimum; `throughput_step`, the unit in which throughput is sold; `throughput_follows` if throughput follows from the IOPS, with a `bend` above which the ratio is lower; `ladder` repeats published maxima, which must agree with the rules |
//! | `[[sized]]` | a family whose limits follow from the size: sizes, `minimum`, `maximum`, `iops_per_gib`, `throughput_per_tib`, or `full_throughput_above` a size; `iops_burst` with its `iops` and `credits`; `throughput_burst` with its rate `per_tib` and `maximum`, and as many bytes of credits as the disk has; `merges`; `whole_units` if an I/O is charged for its whole `io_unit` |
//! | `[[store]]` | the storage of a managed `service`: the `family` of its disks, and `rows` by size and `engines`: `volumes`, `minimum`, `maximum` if limits can be raised, `gib_per_iops`, `licensed` |
//! | `[[pooled]]` | a family whose disks on a machine share their limits: `base` and `per_100_gib`, each for reads and writes together unless `per_100_gib.writes` are separate, and `iops_excess`, the percent of operations that measurements are above that; machines limit them by `pools` |
//! | `[[series]]` | `rows` of machines: `uncached`, `cached` and `v2` limits, `cache` size, local disks `temp` and `nvme`, `storage` of a managed instance, `takes` (families, if limited), `pools` (limits of all disks of a pooled family, with `writes` where these are separate); for the whole series `interface` (`SCSI` or `NVMe`, for which the limits hold), `takes`, `premium_caching` and the `service` whose machines these are |
//! | `[host_cache]` | defaults, `max_disk_exclusive`, `uncacheable` families, `recommended`, and `rows`: for each mode and operation whether it counts at the disk, the uncached and the cached limit |
//! | `[[latency]]` | quantiles of `read` and `write`, `transfer`, and the `basis` (`measured`, `calibrated`, `assumed`) with the `reason`. `sync` are quantiles of a flush, which a forced write takes beyond its own time. Each family needs one; `host-cache` is the host cache, `local-ssd` the local disks. `write_through`, of `host-cache` only, is what a write to a ReadOnly disk takes beyond that of the disk |
//! | `[[price]]` | `region`, `currency`, `os` if it has machines, and `rows`: a `tier`, a `host`, or `of` a family, series, service or store `per` `GiB`, `IOPS`, `MB/s`, `MiB/s`, `vCore` or `vCore licence`, with the number of `free` units, the `term` of a reservation (`1 year`, `3 years`), the price per `month`, the list price per `hour`, and in `steps` the price of units `above` a number |
//! | `[host_names]` | `prefixes` and `suffixes` of default machine names; `*` in a suffix matches any text |
//! | `[[bursting]]`, `[striping]`, `[[rule]]` | rules in words, some with a value. A kind of bursting with a `refill` is a reserve of all limits of disks and machines: they let `duration` of the limit pass at once, and an idle time of `refill` fills it again |
//!
//! A small, complete edition:
//!
#![doc = concat!("```toml\n", include_str!("../../../catalog/example.toml"), "```")]
#![forbid(unsafe_code)]

mod age;
pub mod architecture;
pub mod cache;
pub mod catalog;
mod document;
pub mod edition;
mod error;
mod extend;
pub mod figures;
mod file;
pub mod host;
pub mod latency;
pub mod limits;
mod machines;
mod nearest;
pub mod price;
pub mod provenance;
pub mod provisioned;
mod read;
mod region;
mod resize;
mod retail;
pub mod rules;
mod similar;
pub mod sized;
pub mod store;
mod tables;
pub mod tier;
mod update;

#[cfg(test)]
mod tests;

pub use age::date_of;
pub use architecture::Architecture;
pub use cache::{CacheMode, CacheOp, Counts, HostCache};
pub use catalog::{Catalog, Found};
pub use edition::Edition;
pub use error::{CatalogError, Kind};
pub use figures::{Figure, Value};
pub use host::{HostLimits, HostNames, HostSize, Interface, LocalDisk, Series};
pub use latency::{Basis, Latency, Quantiles};
pub use limits::{Burst, BurstKind, Limits, PoolLimits, Reserve};
pub use price::{Item, Part, Per, Price, PriceBook, PriceList, Term};
pub use provenance::{Citation, Provenance};
pub use provisioned::{Bend, Provisioned};
pub use resize::MachineTraits;
pub use rules::{BurstRule, Rule, RuleValue, Striping};
pub use sized::{IopsBurst, SizedFamily, SizedLimits, ThroughputBurst};
pub use store::{Pooled, Store, StoreLimits, StoreStep};
pub use tier::{Tier, TierSet};
pub use update::{Contents, Update};
