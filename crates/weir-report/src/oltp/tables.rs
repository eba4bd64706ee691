//! Lays out a database under load as tables, for text and for CSV as in `run`.

use super::{DatabaseReport, FileReport, LoadPoint, OltpReport, WaitReport};
use crate::cells;
use crate::number::{float, grouped, mib, percent, rate, time};
use crate::page::RunPage;
use crate::run::{latency_shares, wait_heads, waits};
use crate::table::{Cell, Report, Table};

fn text(text: Option<&String>) -> Cell {
    text.map_or_else(Cell::none, |text| Cell::from(text.as_str()))
}

/// The formats that have a column.
#[derive(Clone, Copy)]
enum For {
    People,
    Machines,
    Both,
}

impl OltpReport {
    /// Returns a table with the rows of each database. Its name is the first column, in text only
    /// if there are several databases.
    fn table(
        &self,
        name: &str,
        readers: For,
        heads: &[&str],
        rows: impl Fn(&DatabaseReport) -> Vec<Vec<Cell>>,
    ) -> Table {
        let several = self.databases.len() > 1;
        let database = match readers {
            For::People if several => "database|",
            For::People => "|",
            For::Both if several => "database",
            For::Both | For::Machines => "|database",
        };
        let heads: Vec<&str> = std::iter::once(database).chain(heads.iter().copied()).collect();
        let mut table = Table::new("", &heads).named(name);
        for database in &self.databases {
            for row in rows(database) {
                let name = Cell::from(database.database.as_str());
                table.row(std::iter::once(name).chain(row).collect());
            }
        }
        table
    }
}

/// Tables for text and Markdown.
impl OltpReport {
    fn summary(&self) -> Table {
        let heads = [
            ">batch requests/s|",
            ">transactions/min|",
            ">response|",
            ">CPU|",
            ">buffer hits|",
            ">page life|",
            ">checkpoints|",
        ];
        let mut table = self.table("summary", For::People, &heads, |database| {
            let load = &database.load;
            vec![cells![
                rate(load.batches_per_s),
                rate(load.transactions_per_min),
                time(load.response_mean_ns),
                percent(load.cpu_share),
                percent(load.buffer_hit_share),
                load.page_life_s.map_or_else(Cell::none, |s| time(s * 1e9)),
                grouped(load.checkpoints),
            ]]
        });
        let hash = self.trace_hash.as_ref().map(|h| format!(", trace {h}")).unwrap_or_default();
        table.notes.push(format!("{} time, seed {}{hash}", self.clock.name(), self.seed));
        for database in &self.databases {
            let of = if self.databases.len() > 1 {
                format!("{}: ", database.database)
            } else {
                String::new()
            };
            let ramp = match database.ramp_s > 0.0 {
                true => format!(" after {} s of ramp", rate(database.ramp_s)),
                false => String::new(),
            };
            let (seconds, users) = (rate(database.elapsed_s), grouped(u64::from(database.users)));
            table.notes.push(format!("{of}{seconds} s{ramp}, {users} users"));
            table.notes.extend(database.notes.iter().map(|note| format!("{of}{note}")));
        }
        table.notes.extend(self.notes.iter().cloned());
        table
    }

    fn files_table(&self) -> Table {
        let heads = [
            "file|",
            "role|",
            ">reads|",
            ">MiB read|",
            ">per read|",
            ">writes|",
            ">MiB written|",
            ">per write|",
            ">queued|",
            "latency by limit|",
        ];
        let row = |f: &FileReport| {
            let mut waits_ns = f.waits_ns.clone();
            waits_ns.extend(f.machine_ns.map(|ns| ("machine".to_owned(), ns)));
            let queued = f.io_stall_queued_read_ms + f.io_stall_queued_write_ms;
            let share = if f.io_stall > 0 { float(queued) / float(f.io_stall) } else { 0.0 };
            cells![
                f.file.as_str(),
                f.role.as_str(),
                grouped(f.num_of_reads),
                mib(float(f.num_of_bytes_read)),
                time(f.read_mean_ns),
                grouped(f.num_of_writes),
                mib(float(f.num_of_bytes_written)),
                time(f.write_mean_ns),
                percent(share),
                latency_shares(&waits_ns, f.medium_ns),
            ]
        };
        self.table("files", For::People, &heads, |database| {
            database.files.iter().map(row).collect()
        })
    }
}

/// Tables for CSV.
impl OltpReport {
    fn run_figures(&self) -> Table {
        let heads = ["|clock", "|seed", "|mix", "|users", "|ramp_s", "|elapsed_s", "|trace_hash"];
        self.table("run", For::Machines, &heads, |database| {
            vec![cells![
                self.clock.name(),
                // A seed may have more digits than a float.
                self.seed.to_string(),
                text(database.mix.as_ref()),
                grouped(u64::from(database.users)),
                rate(database.ramp_s),
                rate(database.elapsed_s),
                text(self.trace_hash.as_ref()),
            ]]
        })
    }

    fn load_figures(&self) -> Table {
        let heads = [
            "|batches",
            "|batches_per_s",
            "|transactions",
            "|transactions_per_min",
            "|response_mean_ns",
            "|cpu_share",
            "|pages_wanted",
            "|buffer_hit_share",
            "|buffer_bytes",
            "|dirty_bytes",
            "|page_life_s",
            "|checkpoints",
            "|failed",
            "|growths",
        ];
        self.table("load", For::Machines, &heads, |database| {
            let load = &database.load;
            vec![cells![
                grouped(load.batches),
                rate(load.batches_per_s),
                grouped(load.transactions),
                rate(load.transactions_per_min),
                time(load.response_mean_ns),
                percent(load.cpu_share),
                grouped(load.pages_wanted),
                percent(load.buffer_hit_share),
                grouped(load.buffer_bytes),
                grouped(load.dirty_bytes),
                load.page_life_s.map_or_else(Cell::none, rate),
                grouped(load.checkpoints),
                grouped(load.failed),
                grouped(load.growths),
            ]]
        })
    }

    fn file_figures(&self) -> Table {
        let heads = [
            "|file",
            "|role",
            "|sample_ms",
            "|num_of_reads",
            "|num_of_bytes_read",
            "|io_stall_read_ms",
            "|io_stall_queued_read_ms",
            "|num_of_writes",
            "|num_of_bytes_written",
            "|io_stall_write_ms",
            "|io_stall_queued_write_ms",
            "|io_stall",
            "|size_on_disk_bytes",
            "|read_mean_ns",
            "|write_mean_ns",
        ];
        let caps = wait_heads();
        let caps = caps.iter().map(String::as_str);
        let heads: Vec<&str> = heads.into_iter().chain(caps).chain(["|machine_ns"]).collect();
        let row = |f: &FileReport| {
            let mut row = cells![f.file.as_str(), f.role.as_str()];
            let counts = [
                f.sample_ms,
                f.num_of_reads,
                f.num_of_bytes_read,
                f.io_stall_read_ms,
                f.io_stall_queued_read_ms,
                f.num_of_writes,
                f.num_of_bytes_written,
                f.io_stall_write_ms,
                f.io_stall_queued_write_ms,
                f.io_stall,
                f.size_on_disk_bytes,
            ];
            row.extend(counts.map(grouped));
            row.extend([f.read_mean_ns, f.write_mean_ns].map(time));
            row.extend(waits(&f.waits_ns, f.medium_ns));
            row.push(f.machine_ns.map_or_else(Cell::none, grouped));
            row
        };
        self.table("files", For::Machines, &heads, |database| {
            database.files.iter().map(row).collect()
        })
    }
}

/// Tables for all formats.
impl OltpReport {
    fn waits_table(&self) -> Table {
        let heads = ["wait", ">count", ">wait time|time_ns", ">share|share", ">mean|mean_ns"];
        let row = |w: &WaitReport| {
            cells![
                w.wait.as_str(),
                grouped(w.count),
                time(float(w.time_ns)),
                percent(w.share),
                time(w.mean_ns),
            ]
        };
        self.table("waits", For::Both, &heads, |database| database.waits.iter().map(row).collect())
    }

    fn series_table(&self) -> Table {
        let heads = [
            ">from s|start_s",
            "|length_s",
            ">batch requests/s|batches_per_s",
            ">transactions/min|transactions_per_min",
            ">CPU|cpu_share",
            ">buffer hits|buffer_hit_share",
            "top wait|top_wait",
        ];
        let row = |p: &LoadPoint| {
            cells![
                Cell::number(format!("{:.1}", p.start_s), p.start_s),
                rate(p.length_s),
                rate(p.batches_per_s),
                rate(p.transactions_per_min),
                percent(p.cpu_share),
                p.buffer_hit_share.map_or_else(Cell::none, percent),
                text(p.top_wait.as_ref()),
            ]
        };
        self.table("series", For::Both, &heads, |database| {
            database.series.iter().map(row).collect()
        })
    }
}

/// The cost of backups.
impl OltpReport {
    /// Returns the databases alone and beside the backups; `None` without backups.
    fn costs_table(&self) -> Option<Table> {
        let heads = [
            "database",
            ">tx/min alone|transactions_per_min_alone",
            ">beside|transactions_per_min",
            ">lost|throughput_loss",
            ">response alone|response_mean_alone_ns",
            ">beside|response_mean_ns",
            ">longer|response_increase",
        ];
        let title = "Cost of the backup to the databases";
        let mut table = Table::new(title, &heads).named("cost");
        for own in &self.costs {
            table.row(cells![
                own.database.as_str(),
                rate(own.transactions_per_min_alone),
                rate(own.transactions_per_min),
                percent(own.throughput_loss),
                time(own.response_mean_alone_ns),
                time(own.response_mean_ns),
                percent(own.response_increase),
            ]);
        }
        (!self.costs.is_empty()).then_some(table)
    }
}

impl RunPage for OltpReport {
    fn verdict(&self) -> String {
        let databases = self.databases.iter().map(|own| {
            let waits = own.waits.iter().max_by_key(|wait| wait.time_ns);
            let waits = waits
                .filter(|wait| wait.time_ns > 0)
                .map(|wait| format!("; {} of its wait time is {}", percent(wait.share), wait.wait));
            format!(
                "{} does {} transactions a minute, of {} each{}",
                own.database,
                rate(own.load.transactions_per_min),
                time(own.load.response_mean_ns),
                waits.unwrap_or_default()
            )
        });
        let backups = self.backups.iter().map(|own| {
            let pace =
                own.mib_per_s.map_or_else(String::new, |own| format!(" at {} MiB/s", rate(own)));
            let bound = own.binding_limit.as_ref().map(|limit| format!("; {limit} binds"));
            format!("the backup {} runs{pace}{}", own.backup, bound.unwrap_or_default())
        });
        databases.chain(backups).collect::<Vec<_>>().join(". ")
    }

    fn facts(&self) -> Vec<String> {
        Vec::new()
    }

    fn remarks(&self) -> Vec<String> {
        let own = self.databases.iter().flat_map(|database| &database.notes);
        self.notes.iter().chain(own).cloned().collect()
    }
}

impl Report for OltpReport {
    fn tables(&self) -> Vec<Table> {
        let mut tables = Vec::new();
        if !self.databases.is_empty() {
            tables.extend([
                self.summary(),
                self.waits_table(),
                self.files_table(),
                self.run_figures(),
                self.load_figures(),
                self.file_figures(),
                self.series_table(),
            ]);
        }
        tables.extend(self.costs_table());
        tables.extend(crate::backup::tables(&self.backups));
        tables
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oltp::LoadReport;
    use crate::run::ClockName;
    use crate::table::Format;
    use std::collections::BTreeMap;

    #[test]
    fn the_machine_is_a_part_of_where_the_time_went() {
        let file = |machine_ns| FileReport {
            file: "log".to_owned(),
            waits_ns: BTreeMap::from([("disk_iops".to_owned(), 50)]),
            medium_ns: 40,
            machine_ns,
            ..FileReport::default()
        };
        let report = |machine_ns| OltpReport {
            clock: ClockName::Wall,
            seed: 1,
            trace_hash: None,
            databases: vec![DatabaseReport {
                database: "oltp".to_owned(),
                mix: None,
                users: 1,
                ramp_s: 0.0,
                elapsed_s: 1.0,
                load: LoadReport::default(),
                waits: Vec::new(),
                files: vec![file(machine_ns)],
                series: Vec::new(),
                notes: Vec::new(),
            }],
            backups: Vec::new(),
            costs: Vec::new(),
            notes: Vec::new(),
        };
        let text = report(Some(10)).render(Format::Text);
        assert!(text.contains("disk_iops 50.0 %, medium 40.0 %, machine 10.0 %"), "{text}");
        let text = report(None).render(Format::Text);
        assert!(text.contains("disk_iops 55.6 %, medium 44.4 %\n"), "{text}");
        let csv = report(Some(10)).render(Format::Csv);
        let (heads, rows) = csv.split_once('\n').expect("a header");
        let at = heads.split(',').position(|head| head == "machine_ns");
        let files = rows.lines().find(|row| row.starts_with("files,")).expect("a row");
        assert_eq!(files.split(',').nth(at.expect("a column")), Some("10"));
    }
}
