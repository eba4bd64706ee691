//! What was done between two times, in the columns of qpi: DBAs have scripts on them.
//!
//! `file_stats` are those of `qpi.file_stats`, `wait_stats` those of `qpi.wait_stats`, spelt
//! and counted as there (MB and KB are of 1,024), but not rounded. What is not known is empty.

use crate::cells;
use crate::number::rate;
use crate::table::{Cell, Report, Table};
use serde::Serialize;

/// What was done between two times.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct BetweenReport {
    /// The beginning.
    pub from: MomentReport,
    /// The end.
    pub to: MomentReport,
    /// How long that was, if it is known.
    pub interval_s: Option<f64>,
    /// Files of databases.
    pub file_stats: Vec<FileStats>,
    /// Whoever else has I/O: volumes, databases, jobs.
    pub io_stats: Vec<IoStats>,
    /// What was waited for, most time first.
    pub wait_stats: Vec<WaitStats>,
    /// What a reader should know: restarts, who is in one only, what is left out.
    pub notes: Vec<String>,
}

/// One of the two times.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct MomentReport {
    /// The snapshot, or the file with the time.
    pub name: String,
    /// When it was taken, if that is known.
    pub taken: Option<String>,
}

/// A file.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct FileStats {
    /// Its database.
    pub db_name: Option<String>,
    /// Its name.
    pub file_name: String,
    /// What it did.
    #[serde(flatten)]
    pub figures: IoFigures,
    /// What it is for: `ROWS`, `LOG`.
    pub r#type: Option<String>,
}

/// A volume or another.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct IoStats {
    /// What it is.
    pub kind: String,
    /// What it belongs to.
    pub parent: Option<String>,
    /// Its name.
    pub name: String,
    /// What it did.
    #[serde(flatten)]
    pub figures: IoFigures,
}

macro_rules! figures {
    ($($(#[$doc:meta])* $name:ident: $show:expr,)*) => {
        /// What somebody did, in the order and the units of qpi.
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

/// How people see a figure.
#[derive(Debug, Clone, Copy)]
enum Show {
    Decimals(usize),
    Rate,
    /// It is for machines alone: it follows from others.
    No,
}

figures! {
    /// Its size in GiB.
    size_gb: Show::Decimals(2),
    /// MiB a second.
    throughput_mbps: Show::Decimals(2),
    /// MiB read a second.
    read_mbps: Show::Decimals(2),
    /// MiB written a second.
    write_mbps: Show::Decimals(2),
    /// Operations a second.
    iops: Show::Rate,
    /// Reads a second.
    read_iops: Show::Rate,
    /// Writes a second.
    write_iops: Show::Rate,
    /// The mean latency.
    latency_ms: Show::Decimals(1),
    /// That of reads.
    read_latency_ms: Show::Decimals(1),
    /// That of writes.
    write_latency_ms: Show::Decimals(1),
    /// That of reads without what they waited in queues of the governor.
    read_io_latency_ms: Show::Decimals(2),
    /// That of writes.
    write_io_latency_ms: Show::Decimals(2),
    /// KiB of a read.
    kb_per_read: Show::Decimals(1),
    /// KiB of a write.
    kb_per_write: Show::Decimals(1),
    /// KiB of either.
    kb_per_io: Show::No,
    /// MiB read.
    read_mb: Show::No,
    /// MiB written.
    write_mb: Show::No,
    /// Reads.
    num_of_reads: Show::No,
    /// Writes.
    num_of_writes: Show::No,
    /// Minutes of which it is known.
    interval_mi: Show::No,
}

/// A wait.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct WaitStats {
    /// Its category, as Query Store has it.
    pub category: Option<String>,
    /// Its name.
    pub wait_type: String,
    /// How many waited.
    pub waiting_tasks_count: Option<f64>,
    /// For how long, all together.
    pub wait_time_s: Option<f64>,
    /// The mean.
    pub wait_per_task_ms: Option<f64>,
    /// The longest, if it was in this time.
    pub max_wait_time_ms: Option<f64>,
    /// What they waited for a processor.
    pub signal_wait_time_s: Option<f64>,
    /// The number of the category.
    pub category_id: Option<u64>,
    /// Where it is explained.
    pub info: String,
    /// Who waited: a server, or a database.
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
    /// A table for people alone, of what is to be said.
    fn said(notes: Vec<String>) -> Table {
        Table { notes, ..Table::default() }
    }

    fn head(&self) -> String {
        let moment = |own: &MomentReport| match &own.taken {
            Some(taken) => format!("{} ({taken})", own.name),
            None => own.name.clone(),
        };
        let length = match self.interval_s {
            Some(seconds) => format!("{} s", rate(seconds)),
            None => "nobody knows how long that was".to_owned(),
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
            Self::said(vec![self.head()]),
            self.moments(),
            self.files(),
            self.others(),
            self.waits(),
            Self::said(self.notes.clone()),
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
    fn what_is_not_known_is_empty() {
        let text = report().render(Format::Text);
        let first = "from before to after: nobody knows how long that was\n";
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
