//! The difference of two snapshots, in the columns of qpi, which DBAs have scripts for.
//!
//! `file_stats` has the columns of `qpi.file_stats` and `wait_stats` those of `qpi.wait_stats`, with
//! the same units (MB and KB are powers of 1,024), but not rounded. Unknown values are empty.

use crate::cells;
use crate::number::rate;
use crate::table::{Cell, Report, Table};
use serde::Serialize;

/// The difference of two snapshots.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct BetweenReport {
    /// Start.
    pub from: MomentReport,
    /// End.
    pub to: MomentReport,
    /// Length of the interval, if known.
    pub interval_s: Option<f64>,
    /// Files of databases.
    pub file_stats: Vec<FileStats>,
    /// Other entities with I/O: volumes, databases, jobs.
    pub io_stats: Vec<IoStats>,
    /// Wait classes, by time.
    pub wait_stats: Vec<WaitStats>,
    /// Notes on restarts, on entities in one snapshot only, and on what was left out.
    pub notes: Vec<String>,
}

/// One of the two snapshots.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct MomentReport {
    /// The snapshot or file.
    pub name: String,
    /// Time at which it was taken, if known.
    pub taken: Option<String>,
}

/// I/O of a file.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct FileStats {
    /// Database.
    pub db_name: Option<String>,
    /// Name.
    pub file_name: String,
    /// I/O figures.
    #[serde(flatten)]
    pub figures: IoFigures,
    /// Type: `ROWS` or `LOG`.
    pub r#type: Option<String>,
}

/// I/O of a volume or another entity.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct IoStats {
    /// Description.
    pub kind: String,
    /// Parent entity.
    pub parent: Option<String>,
    /// Name.
    pub name: String,
    /// I/O figures.
    #[serde(flatten)]
    pub figures: IoFigures,
}

macro_rules! figures {
    ($($(#[$doc:meta])* $name:ident: $show:expr,)*) => {
        /// I/O figures in the order and units of qpi.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
        pub struct IoFigures {
            $($(#[$doc])* pub $name: Option<f64>,)*
        }

        impl IoFigures {
            const HEADS: &[(&'static str, Show)] = &[$((stringify!($name), $show),)*];

            fn values(&self) -> Vec<Option<f64>> {
                vec![$(self.$name,)*]
            }
        }
    };
}

/// The text format of a figure.
#[derive(Debug, Clone, Copy)]
enum Show {
    Decimals(usize),
    Rate,
    /// Not in text, since it follows from others.
    No,
}

figures! {
    /// Size in GiB.
    size_gb: Show::Decimals(2),
    /// MiB/s.
    throughput_mbps: Show::Decimals(2),
    /// MiB/s of reads.
    read_mbps: Show::Decimals(2),
    /// MiB/s of writes.
    write_mbps: Show::Decimals(2),
    /// Operations per second.
    iops: Show::Rate,
    /// Reads per second.
    read_iops: Show::Rate,
    /// Writes per second.
    write_iops: Show::Rate,
    /// Mean latency.
    latency_ms: Show::Decimals(1),
    /// Mean latency of reads.
    read_latency_ms: Show::Decimals(1),
    /// Mean latency of writes.
    write_latency_ms: Show::Decimals(1),
    /// Mean latency of reads without queue time in the governor.
    read_io_latency_ms: Show::Decimals(2),
    /// Mean latency of writes.
    write_io_latency_ms: Show::Decimals(2),
    /// KiB per read.
    kb_per_read: Show::Decimals(1),
    /// KiB per write.
    kb_per_write: Show::Decimals(1),
    /// KiB per operation.
    kb_per_io: Show::No,
    /// MiB read.
    read_mb: Show::No,
    /// MiB written.
    write_mb: Show::No,
    /// Reads.
    num_of_reads: Show::No,
    /// Writes.
    num_of_writes: Show::No,
    /// Length of the interval in minutes.
    interval_mi: Show::No,
}

/// A wait type.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct WaitStats {
    /// Category of Query Store.
    pub category: Option<String>,
    /// Name.
    pub wait_type: String,
    /// Number of waits.
    pub waiting_tasks_count: Option<f64>,
    /// Total wait time.
    pub wait_time_s: Option<f64>,
    /// Mean wait time.
    pub wait_per_task_ms: Option<f64>,
    /// Longest wait, if it was in this interval.
    pub max_wait_time_ms: Option<f64>,
    /// Time waiting for a processor.
    pub signal_wait_time_s: Option<f64>,
    /// The number of the category.
    pub category_id: Option<u64>,
    /// Address of an explanation.
    pub info: String,
    /// The server or database.
    pub parent: Option<String>,
}

fn text(text: Option<&String>) -> Cell {
    text.map_or_else(Cell::none, |text| Cell::from(text.as_str()))
}

fn decimals(value: Option<f64>, digits: usize) -> Cell {
    value.map_or_else(Cell::none, |value| Cell::number(format!("{value:.digits$}"), value))
}

fn counted(value: Option<f64>) -> Cell {
    value.map_or_else(Cell::none, rate)
}

impl IoFigures {
    fn heads() -> impl Iterator<Item = String> {
        Self::HEADS.iter().map(|(name, show)| match show {
            Show::No => format!("|{name}"),
            _ => format!(">{name}"),
        })
    }

    fn cells(&self) -> impl Iterator<Item = Cell> {
        let values = self.values().into_iter().zip(Self::HEADS);
        values.map(|(value, (_, show))| match show {
            Show::Decimals(digits) => decimals(value, *digits),
            Show::Rate | Show::No => counted(value),
        })
    }
}

impl BetweenReport {
    /// Returns a table of notes for text and Markdown.
    fn notes_table(notes: Vec<String>) -> Table {
        Table { notes, ..Table::default() }
    }

    fn head(&self) -> String {
        let moment = |own: &MomentReport| match &own.taken {
            Some(taken) => format!("{} ({taken})", own.name),
            None => own.name.clone(),
        };
        let length = match self.interval_s {
            Some(seconds) => format!("{} s", rate(seconds)),
            None => "length unknown".to_owned(),
        };
        format!("from {} to {}: {length}", moment(&self.from), moment(&self.to))
    }

    fn moments(&self) -> Table {
        let heads = ["|from", "|from_taken", "|to", "|to_taken", "|interval_s"];
        let mut table = Table::new("", &heads).named("between");
        table.row(cells![
            self.from.name.as_str(),
            text(self.from.taken.as_ref()),
            self.to.name.as_str(),
            text(self.to.taken.as_ref()),
            counted(self.interval_s),
        ]);
        table
    }

    fn files(&self) -> Table {
        let mut table = Table::new("", &["db_name", "file_name"]).named("file_stats");
        table.heads.extend(IoFigures::heads().chain(["|type".to_owned()]));
        for own in &self.file_stats {
            let mut row = cells![text(own.db_name.as_ref()), own.file_name.as_str()];
            row.extend(own.figures.cells().chain([text(own.r#type.as_ref())]));
            table.row(row);
        }
        table
    }

    fn others(&self) -> Table {
        let mut table = Table::new("", &["kind", "parent", "name"]).named("io_stats");
        table.heads.extend(IoFigures::heads());
        for own in &self.io_stats {
            let mut row = cells![own.kind.as_str(), text(own.parent.as_ref()), own.name.as_str()];
            row.extend(own.figures.cells());
            table.row(row);
        }
        table
    }

    fn waits(&self) -> Table {
        let heads = [
            "category",
            "wait_type",
            ">waiting_tasks_count",
            ">wait_time_s",
            ">wait_per_task_ms",
            ">max_wait_time_ms",
            ">signal_wait_time_s",
            "|category_id",
            "|info",
            "|parent",
        ];
        let mut table = Table::new("", &heads).named("wait_stats");
        for own in &self.wait_stats {
            table.row(cells![
                text(own.category.as_ref()),
                own.wait_type.as_str(),
                counted(own.waiting_tasks_count),
                decimals(own.wait_time_s, 1),
                decimals(own.wait_per_task_ms, 1),
                decimals(own.max_wait_time_ms, 0),
                decimals(own.signal_wait_time_s, 1),
                own.category_id.map_or_else(Cell::none, crate::number::grouped),
                own.info.as_str(),
                text(own.parent.as_ref()),
            ]);
        }
        table
    }
}

impl Report for BetweenReport {
    fn tables(&self) -> Vec<Table> {
        vec![
            Self::notes_table(vec![self.head()]),
            self.moments(),
            self.files(),
            self.others(),
            self.waits(),
            Self::notes_table(self.notes.clone()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Format;

    fn report() -> BetweenReport {
        let figures =
            IoFigures { iops: Some(489.0), read_io_latency_ms: Some(3.0), ..Default::default() };
        let file = FileStats {
            db_name: Some("tpcc".to_owned()),
            file_name: "data".to_owned(),
            figures,
            r#type: Some("ROWS".to_owned()),
        };
        let moment = |name: &str| MomentReport { name: name.to_owned(), taken: None };
        BetweenReport {
            from: moment("before"),
            to: moment("after"),
            file_stats: vec![file],
            notes: vec!["something".to_owned()],
            ..BetweenReport::default()
        }
    }

    #[test]
    fn unknown_values_are_empty() {
        let text = report().render(Format::Text);
        let first = "from before to after: length unknown\n";
        assert!(text.starts_with(first) && text.ends_with("\nsomething\n"), "{text}");
        let csv = report().render(Format::Csv);
        let row = "file_stats,,,,,,tpcc,data,,,,,489,,,,,,3,,,,,,,,,,ROWS,";
        assert!(csv.lines().any(|line| line.starts_with(row)), "{csv}");
        let json: serde_json::Value =
            serde_json::from_str(&report().render(Format::Json)).expect("JSON");
        let file = &json["file_stats"][0];
        assert_eq!((&file["iops"], &file["read_mbps"]), (&489.0.into(), &serde_json::Value::Null));
    }

    /// The columns of `qpi.file_stats`, as genuine results of it begin.
    #[test]
    fn the_columns_are_those_of_qpi() {
        let qpi = "db_name,file_name,size_gb,throughput_mbps,read_mbps,write_mbps,iops,read_iops,\
                   write_iops,latency_ms,read_latency_ms,write_latency_ms,read_io_latency_ms,\
                   write_io_latency_ms,kb_per_read,kb_per_write,kb_per_io,read_mb,write_mb,\
                   num_of_reads,num_of_writes,interval_mi,type";
        let heads = report().files().heads;
        let names: Vec<_> = heads.iter().map(|head| head.trim_start_matches(['>', '|'])).collect();
        assert_eq!(names.join(","), qpi);
    }
}
