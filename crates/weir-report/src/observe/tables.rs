//! Lays out an observation as tables, for text and for CSV as in `run`.

use super::{ObservationReport, ObservedDatabase, ObservedIo, RateReport};
use crate::cells;
use crate::number::{float, grouped, mib, percent, rate, time};
use crate::run::{latency_shares, wait_heads, waits};
use crate::table::{Cell, Report, Table};

fn text(text: Option<&String>) -> Cell {
    text.map_or_else(Cell::none, |text| Cell::from(text.as_str()))
}

fn share(share: Option<f64>) -> Cell {
    share.map_or_else(Cell::none, percent)
}

fn some<T>(value: Option<T>, cell: impl Fn(T) -> Cell) -> Cell {
    value.map_or_else(Cell::none, cell)
}

/// Lays out the mean, median, 99th percentile and largest of a rate, or that it is unknown.
fn quantiles(known: Option<&RateReport>, cell: impl Fn(f64) -> Cell) -> Vec<Cell> {
    let figures = known.map(|own| [own.mean, own.p50, own.p99, own.max].map(cell).to_vec());
    figures.unwrap_or_else(|| vec![Cell::none(); 4])
}

fn heads(name: &str) -> [String; 4] {
    ["mean", "p50", "p99", "max"].map(|which| format!("|{name}_{which}"))
}

/// Tables for text and Markdown.
impl ObservationReport {
    fn databases_table(&self) -> Table {
        let heads = ["database|", ">batch requests/s|", ">p50|", ">p99|", ">max|", ">CPU|"];
        let mut table = Table::new("", &heads);
        // Databases with waits only are in the table of waits.
        let has_any = |of: &&ObservedDatabase| of.batches_per_s.or(of.cpu_share).is_some();
        for database in self.databases.iter().filter(has_any) {
            let mut row = cells![database.database.as_str()];
            row.extend(quantiles(database.batches_per_s.as_ref(), rate));
            row.push(share(database.cpu_share.map(|cpu| cpu.mean)));
            table.row(row);
        }
        table.notes = self.said();
        table
    }

    /// Returns the source, the samples and the notes.
    fn said(&self) -> Vec<String> {
        let about: Vec<String> =
            self.about.iter().map(|(what, value)| format!(", {what} {value}")).collect();
        let layout = self.layout.as_ref().map(|name| format!(" of {name}")).unwrap_or_default();
        let every = self.interval_s.map(|s| format!(", interval {} s", rate(s)));
        let mut said = vec![
            format!("{}{layout}, by {}{}", self.source, self.by, about.concat()),
            format!(
                "{} samples from {} s to {} s{}; {}",
                grouped(self.samples),
                rate(self.from_s),
                rate(self.to_s),
                every.unwrap_or_default(),
                self.ending
            ),
        ];
        said.extend(self.notes.iter().cloned());
        said
    }

    fn io_table(of_what: &str, all: &[ObservedIo]) -> Table {
        let what = format!("{of_what}|");
        let heads = [
            what.as_str(),
            ">IOPS|",
            ">p50|",
            ">p99|",
            ">limit|",
            ">near|",
            ">MiB/s|",
            ">p50|",
            ">p99|",
            ">limit|",
            ">near|",
            ">latency|",
            "latency by limit|",
        ];
        let mut table = Table::new("", &heads);
        for io in all {
            let mut row = cells![io.name.as_str()];
            row.extend(quantiles(io.iops.as_ref(), rate).into_iter().take(3));
            row.extend([some(io.iops_limit, grouped), share(io.near_iops_limit_share)]);
            row.extend(quantiles(io.bytes_per_s.as_ref(), mib).into_iter().take(3));
            row.extend(cells![
                some(io.bytes_per_s_limit, |limit| mib(float(limit))),
                share(io.near_bytes_limit_share),
                some(io.latency_mean_ns, time),
                latency_shares(&io.waits_ns, io.medium_ns.unwrap_or(0)),
            ]);
            table.row(row);
        }
        table
    }

    /// Returns the other entities with their attributes.
    fn others_table(&self) -> Table {
        let mut table = Table::new("", &["kind|", "name|", "attributes|"]);
        for entity in &self.entities {
            if ["file", "volume", "wait", "backup", "backup-target"].contains(&entity.kind.as_str())
            {
                continue;
            }
            let known = entity.attributes.iter().map(|(name, value)| format!("{name} {value}"));
            let known = known.collect::<Vec<_>>().join(", ");
            table.row(cells![entity.kind.as_str(), entity.name.as_str(), known]);
        }
        table
    }
}

/// Tables for CSV.
impl ObservationReport {
    fn figures(&self) -> Table {
        let heads = [
            "|source",
            "|by",
            "|layout",
            "|start_unix_ns",
            "|interval_s",
            "|samples",
            "|from_s",
            "|to_s",
            "|is_complete",
            "|ending",
        ];
        let mut table = Table::new("", &heads).named("observation");
        table.row(cells![
            self.source.as_str(),
            self.by.as_str(),
            text(self.layout.as_ref()),
            // It has more digits than a float.
            text(self.start_unix_ns.map(|ns| ns.to_string()).as_ref()),
            some(self.interval_s, rate),
            grouped(self.samples),
            rate(self.from_s),
            rate(self.to_s),
            self.is_complete.to_string(),
            self.ending.as_str(),
        ]);
        table
    }

    fn database_figures(&self) -> Table {
        let mut table = Table { heads: vec!["|database".to_owned()], ..Table::default() };
        table.heads.extend(["batches_per_s", "cpu_share"].iter().flat_map(|name| heads(name)));
        for database in &self.databases {
            let mut row = cells![database.database.as_str()];
            for figure in [database.batches_per_s, database.cpu_share] {
                row.extend(quantiles(figure.as_ref(), rate));
            }
            table.row(row);
        }
        table.named("databases")
    }

    fn io_figures(name: &str, all: &[ObservedIo]) -> Table {
        let mut table = Table::default();
        let plain = |names: &[&str]| names.iter().map(|n| format!("|{n}")).collect::<Vec<_>>();
        table.heads.extend(plain(&["name", "parent", "role", "tier"]));
        table.heads.extend(heads("iops"));
        table.heads.extend(plain(&["iops_limit", "near_iops_limit_share"]));
        table.heads.extend(heads("bytes_per_s"));
        let rest = ["bytes_per_s_limit", "near_bytes_limit_share", "latency_mean_ns"];
        table.heads.extend(plain(&rest));
        table.heads.extend(wait_heads());
        for io in all {
            let mut row = cells![
                io.name.as_str(),
                text(io.parent.as_ref()),
                text(io.role.as_ref()),
                text(io.tier.as_ref()),
            ];
            row.extend(quantiles(io.iops.as_ref(), rate));
            row.extend([some(io.iops_limit, grouped), share(io.near_iops_limit_share)]);
            row.extend(quantiles(io.bytes_per_s.as_ref(), mib));
            row.extend([
                some(io.bytes_per_s_limit, grouped),
                share(io.near_bytes_limit_share),
                some(io.latency_mean_ns, time),
            ]);
            row.extend(match io.medium_ns {
                Some(medium_ns) => waits(&io.waits_ns, medium_ns),
                None => vec![Cell::none(); wait_heads().len()],
            });
            table.row(row);
        }
        table.named(name)
    }

    /// Returns one row per attribute.
    fn entity_figures(&self) -> Table {
        let heads = ["|kind", "|name", "|parent", "|attribute", "|value"];
        let mut table = Table::new("", &heads).named("entities");
        for entity in &self.entities {
            for (attribute, value) in &entity.attributes {
                let (kind, name) = (entity.kind.as_str(), entity.name.as_str());
                let parent = text(entity.parent.as_ref());
                table.row(cells![kind, name, parent, attribute.as_str(), value.as_str()]);
            }
        }
        table
    }
}

/// Tables for all formats.
impl ObservationReport {
    fn waits_table(&self) -> Table {
        let heads = ["wait", "database", ">count", ">wait time|", "|time_ms", ">share|share"];
        let mut table = Table::new("", &heads).named("waits");
        for database in &self.databases {
            for wait in &database.waits {
                table.row(cells![
                    wait.wait.as_str(),
                    database.database.as_str(),
                    some(wait.count, grouped),
                    time(wait.time_ms * 1e6),
                    rate(wait.time_ms),
                    percent(wait.share),
                ]);
            }
        }
        table
    }
}

impl Report for ObservationReport {
    fn tables(&self) -> Vec<Table> {
        vec![
            self.databases_table(),
            self.waits_table(),
            super::backups::table(&self.backups),
            Self::io_table("file", &self.files),
            Self::io_table("volume", &self.volumes),
            Self::io_table("machine", &self.hosts),
            self.others_table(),
            self.figures(),
            self.database_figures(),
            Self::io_figures("files", &self.files),
            Self::io_figures("volumes", &self.volumes),
            Self::io_figures("hosts", &self.hosts),
            self.entity_figures(),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::ObservedWait;
    use crate::table::Format;
    use std::collections::BTreeMap;

    fn report() -> ObservationReport {
        let iops = RateReport { mean: 480.0, p50: 500.0, p99: 500.0, max: 501.0 };
        let io = ObservedIo {
            name: "d1".into(),
            parent: Some("db".into()),
            iops: Some(iops),
            iops_limit: Some(500),
            near_iops_limit_share: Some(0.96),
            latency_mean_ns: Some(2e6),
            waits_ns: BTreeMap::from([("disk_iops".to_owned(), 900)]),
            medium_ns: Some(100),
            ..ObservedIo::default()
        };
        let wait = ObservedWait { wait: "WRITELOG".into(), count: None, time_ms: 1.5, share: 1.0 };
        let database = ObservedDatabase {
            database: "db".into(),
            batches_per_s: Some(iops),
            cpu_share: None,
            waits: vec![wait],
        };
        ObservationReport {
            source: "virtual-run".into(),
            by: "weir 1".into(),
            samples: 11,
            to_s: 10.0,
            ending: "complete".into(),
            is_complete: true,
            databases: vec![database],
            files: vec![io],
            notes: vec!["the counters went back twice".into()],
            ..ObservationReport::default()
        }
    }

    #[test]
    fn people_see_who_was_near_a_limit_and_what_held_it() {
        let text = report().render(Format::Text);
        assert!(text.contains("virtual-run, by weir 1\n11 samples from 0 s to 10.0 s; complete\nthe counters went back twice\n"), "{text}");
        assert!(text.contains(" d1     480  500  500    500  96.0 %"), "{text}");
        assert!(text.contains("disk_iops 90.0 %, medium 10.0 %"), "{text}");
    }

    #[test]
    fn an_unknown_rate_is_no_zero() {
        let unknown = ObservedIo { name: "d2".into(), ..ObservedIo::default() };
        let report = ObservationReport { volumes: vec![unknown], ..ObservationReport::default() };
        let zeros = |text: &str| {
            let row = text.lines().find(|line| line.contains("d2")).expect("a row").to_owned();
            row.split([' ', ',', '|']).filter(|cell| *cell == "0").count()
        };
        for format in [Format::Text, Format::Csv, Format::Markdown] {
            assert_eq!(zeros(&report.render(format)), 0, "{}", report.render(format));
        }
        let json: serde_json::Value =
            serde_json::from_str(&report.render(Format::Json)).expect("JSON");
        for figure in ["iops", "bytes_per_s", "medium_ns", "latency_mean_ns"] {
            assert_eq!(json["volumes"][0][figure], serde_json::Value::Null, "{figure}");
        }
    }

    #[test]
    fn a_database_of_which_only_waits_are_known_is_in_no_table_of_dashes() {
        let mut report = report();
        report.databases[0].batches_per_s = None;
        let text = report.render(Format::Text);
        assert!(!text.contains("batch requests/s"), "{text}");
        assert!(text.starts_with("virtual-run, by weir 1\n11 samples"), "{text}");
        assert!(text.contains("WRITELOG"), "{text}");
        let other = ObservedDatabase {
            cpu_share: Some(RateReport::default()),
            ..ObservedDatabase::default()
        };
        report.databases.push(ObservedDatabase { database: "other".into(), ..other });
        let text = report.render(Format::Text);
        assert!(text.contains("batch requests/s") && text.contains(" other "), "{text}");
    }

    #[test]
    fn machines_see_every_figure() {
        let csv = report().render(Format::Csv);
        let header = csv.lines().next().unwrap_or_default();
        for head in ["iops_p99", "near_iops_limit_share", "wait_disk_iops_ns", "time_ms", "samples"]
        {
            assert!(header.split(',').any(|known| known == head), "{head} is not in {header}");
        }
        let json: serde_json::Value =
            serde_json::from_str(&report().render(Format::Json)).expect("JSON");
        assert_eq!(json["files"][0]["iops"]["p99"], 500.0);
    }
}
