//! The machines of a table, added to those of an edition's file. Figures of the file stand; the table
//! fills those that the file leaves out.

use crate::edition::Edition;
use crate::host::{HostLimits, HostSize, LocalDisk, Series};
use crate::limits::{Burst, BurstKind};
use crate::nearest::plain;
use crate::provenance::{Citation, Provenance};
use crate::tables::{self, Heads, citation};
use csv::StringRecord;
use std::collections::BTreeMap;
use std::str::FromStr;
use weir_units::{Bytes, Span};

/// Duration of a burst from a full bucket, of all machines that have one.
const BURST: Span = Span::from_secs(1_800);

/// Series whose documents say that remote disks are not cached by the host.
const UNCACHED_SERIES: [&str; 2] = ["lsv3", "lasv3"];

/// The figures that have a source of their own in a table, by the column of its key.
const CITED: [(&str, &str); 6] = [
    ("memory", "src_memory"),
    ("uncached", "src_uncached"),
    ("uncached.burst", "src_burst"),
    ("cached", "src_cached"),
    ("cache", "src_cache"),
    ("temp", "src_temp"),
];

/// Adds the machines of the edition's table, if there is one.
pub(crate) fn extend(edition: &mut Edition) {
    let Some((_, table)) = tables::HOSTS.iter().find(|own| own.0 == edition.name) else { return };
    let (heads, rows) = table.unpack();
    let mut at: BTreeMap<String, usize> = BTreeMap::new();
    for (index, series) in edition.series.iter().enumerate() {
        at.insert(series.name.clone(), index);
    }
    let own = places(edition);
    for row in &rows {
        let row = Row { heads: &heads, row };
        match own.get(&plain(row.get("name"))) {
            Some(places) => {
                for (of, index) in places {
                    row.fill(&mut edition.series[*of].hosts[*index]);
                }
            }
            None => add(edition, &mut at, &own, row),
        }
    }
    add_conflicts(edition);
}

/// Places of machines by their plain names: the series, and the machine in it.
type Places = BTreeMap<String, Vec<(usize, usize)>>;

fn places(edition: &Edition) -> Places {
    let mut places = Places::new();
    for (of, series) in edition.series.iter().enumerate() {
        for (index, host) in series.hosts.iter().enumerate() {
            places.entry(plain(&host.name)).or_default().push((of, index));
        }
    }
    places
}

/// Adds a machine to its series, which is that of the size that it is cut from.
fn add(edition: &mut Edition, at: &mut BTreeMap<String, usize>, own: &Places, row: Row<'_>) {
    let parent = row.parent().and_then(|name| own.get(&plain(&name))?.first().copied());
    let of = match (parent, at.get(row.get("series"))) {
        (Some((of, _)), _) => of,
        (None, Some(of)) => *of,
        (None, None) => {
            let name = row.get("series").to_owned();
            at.insert(name.clone(), edition.series.len());
            edition.series.push(Series {
                name,
                interface: None,
                preview: false,
                service: None,
                takes: Vec::new(),
                hosts: Vec::new(),
                provenance: Provenance::cited(citation(row.get("src_base"))),
            });
            edition.series.len() - 1
        }
    };
    let series = &edition.series[of];
    let mut host = row.host(&series.name);
    host.interface = series.interface;
    if let Some(like) = series.hosts.iter().position(|own| own.name == row.get("like")) {
        host.take_limits(&series.hosts[like]);
        edition.series[of].hosts[like].stands_for_others = true;
    }
    edition.series[of].hosts.push(host);
}

impl HostSize {
    /// Takes the limits of the machine that stands for those with as many vCPUs.
    fn take_limits(&mut self, like: &Self) {
        let own = (self.vcpus, self.memory, self.provenance.citation.clone());
        let name = std::mem::take(&mut self.name);
        *self = like.clone();
        (self.vcpus, self.memory, self.name) = (own.0, own.1, name);
        self.stands_for_others = false;
        let figures = ["vcpus", "memory"].map(|of| (of.to_owned(), own.2.clone()));
        self.provenance.figures.extend(figures);
        let note = format!("limits are those of {}, by the document's rule for vCPUs", like.name);
        self.provenance.notes.push(note);
    }
}

/// A row of a table of machines.
#[derive(Clone, Copy)]
struct Row<'a> {
    heads: &'a Heads,
    row: &'a StringRecord,
}

impl<'a> Row<'a> {
    fn get(self, head: &str) -> &'a str {
        self.heads.cell(self.row, head)
    }

    /// Parses a figure with its unit; `None` if it is not published.
    fn figure<T: FromStr>(self, head: &str, unit: &str) -> Option<T> {
        let text = self.get(head);
        if text.is_empty() {
            return None;
        }
        let parsed = match unit {
            "" => text.parse(),
            unit => [text, unit].concat().parse(),
        };
        assert!(
            parsed.is_ok(),
            "the tables of machines are broken: {}, {head}: {text:?}",
            self.get("name")
        );
        parsed.ok()
    }

    /// Returns the name of the size that a constrained one is cut from: `E8ds_v5` for `E8-4ds_v5`.
    fn parent(self) -> Option<String> {
        let (before, after) = self.get("name").split_once('-').filter(|_| !self.is_whole())?;
        Some(format!("{before}{}", after.trim_start_matches(|c: char| c.is_ascii_digit())))
    }

    fn is_whole(self) -> bool {
        self.get("of_vcpus").is_empty()
    }

    /// Returns the limits in the columns of operations and of throughput, and those of a burst.
    fn limits(self, own: [&str; 2], burst: Option<[&str; 2]>) -> Option<HostLimits> {
        let rate = |[iops, throughput]: [&str; 2]| {
            self.figure(iops, "").zip(self.figure(throughput, " MB/s"))
        };
        let (iops, throughput) = rate(own)?;
        let peak = burst.and_then(rate).filter(|peak| *peak != (iops, throughput));
        let burst = peak.map(|(iops, throughput)| Burst {
            kind: BurstKind::Credit { duration: BURST },
            iops,
            throughput,
        });
        Some(HostLimits { iops, throughput, burst })
    }

    fn provenance(self) -> Provenance {
        let mut all = Provenance::cited(citation(self.get("src_base")));
        for (of, head) in CITED {
            let key = self.get(head);
            if !key.is_empty() {
                all.figures.push((of.to_owned(), citation(key)));
            }
        }
        if !self.is_whole() {
            all.notes.push(format!(
                "{} of the size's {} vCPUs",
                self.get("vcpus"),
                self.get("of_vcpus")
            ));
        }
        all
    }

    fn host(self, series: &str) -> HostSize {
        let cache: Option<Bytes> = self.figure("cache_gib", " GiB");
        let cached = self.limits(["cached_iops", "cached_mbps"], None);
        let temp = self.figure("temp_gib", " GiB");
        let is_cached = (cache.is_some() || cached.is_some()).then_some(true);
        HostSize {
            name: self.get("name").to_owned(),
            series: series.to_owned(),
            vcpus: self.figure("vcpus", ""),
            memory: self.figure("memory_gib", " GiB"),
            max_data_disks: self.figure("disks", ""),
            interface: None,
            storage: None,
            temp: temp.map(|size| LocalDisk {
                disks: 1,
                size: Some(size),
                iops: None,
                read: None,
                write: None,
            }),
            nvme: None,
            cache,
            uncached: self
                .limits(["uncached_iops", "uncached_mbps"], Some(["burst_iops", "burst_mbps"])),
            cached,
            v2: None,
            takes: Vec::new(),
            pools: BTreeMap::new(),
            premium_caching: match UNCACHED_SERIES.contains(&series) {
                true => Some(false),
                false => is_cached,
            },
            stands_for_others: false,
            provenance: self.provenance(),
        }
    }

    /// Fills figures that a machine of the edition's file does not have.
    fn fill(self, host: &mut HostSize) {
        let table = self.host(&host.series);
        let mut filled: Vec<&str> = Vec::new();
        macro_rules! fill {
            ($($field:ident)*) => {$(
                if host.$field.is_none() && table.$field.is_some() {
                    host.$field = table.$field;
                    filled.push(stringify!($field));
                }
            )*};
        }
        fill!(vcpus memory max_data_disks);
        // Machines that cannot cache have no cached limits either.
        if host.premium_caching != Some(false) {
            fill!(cache cached);
            host.premium_caching = host.premium_caching.or(table.premium_caching);
        }
        for of in filled {
            host.provenance.figures.push((of.to_owned(), table.provenance.of(of).clone()));
        }
    }
}

/// Adds the figures of other sources to the machines.
fn add_conflicts(edition: &mut Edition) {
    let (heads, rows) = tables::CONFLICTS.unpack();
    let places = places(edition);
    for row in &rows {
        let get = |head| heads.cell(row, head);
        if get("edition") != edition.name {
            continue;
        }
        let used = get("used");
        for (of, index) in places.get(&plain(get("name"))).into_iter().flatten() {
            let host = &mut edition.series[*of].hosts[*index];
            if !host.has(get("figure"), used) {
                continue;
            }
            let figures = [["one", "one_source"], ["other", "other_source"]].map(|[of, by]| {
                let Citation { source, as_of } = citation(get(by));
                let is_used = get(of) == used;
                let mark = if is_used { " (used)" } else { "" };
                (is_used, format!("{} in {source} of {as_of}{mark}", get(of)))
            });
            let own = match figures.iter().any(|(is_used, _)| *is_used) {
                true => String::new(),
                false => format!("{used} (used), "),
            };
            let [one, other] = figures.map(|(_, text)| text);
            let name = get("figure").replace('_', " ");
            let conflict = format!("{name}: {own}{one}, {other}");
            host.provenance.conflicts.push(conflict);
        }
    }
}

impl HostSize {
    /// Returns whether a figure of a conflict has the value that is used.
    fn has(&self, figure: &str, used: &str) -> bool {
        let rate = |limits: Option<HostLimits>| match figure.ends_with("_iops") {
            true => limits.map(|own| own.iops.to_string()),
            false => limits.map(|own| own.throughput.to_string()),
        };
        match figure {
            "uncached_iops" => rate(self.uncached).as_deref() == Some(&format!("{used} IOPS")),
            "uncached_mbps" => rate(self.uncached).as_deref() == Some(&format!("{used} MB/s")),
            _ => true,
        }
    }
}
