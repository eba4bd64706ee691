//! A plot of an observation over time: batch requests and waits, requests throttled by each cap,
//! and each file against its limits.

use crate::commands::page;
use crate::error::CliError;
use crate::output;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use weir_observe::rates::{Points, Track, Tracker};
use weir_observe::view::{self, IoView};
use weir_observe::{EntityId, EntityKind, Header, SeriesId, attribute};
use weir_report::Page;
use weir_report::chart::{self, Chart, Line};
use weir_report::number::float;
use weir_units::{Instant, Span};

/// Maximum number of files or volumes in the plot; the busiest are shown.
const MOST: usize = 16;
/// Maximum number of stacked areas.
const MOST_AREAS: usize = 6;

/// A line or area of a chart.
#[derive(Debug)]
struct Drawn {
    name: String,
    /// Factor from the track's unit to that of the chart.
    scale: f64,
    points: Points,
    total: f64,
}

/// A chart that refers to tracks by index.
#[derive(Debug)]
struct Panel {
    title: String,
    tracks: Vec<usize>,
    is_stacked: bool,
    limit: Option<f64>,
    burst: Option<f64>,
}

/// A single-pass plot of samples. Its memory does not grow with their number.
#[derive(Debug)]
pub(crate) struct Picture {
    title: String,
    tracker: Tracker,
    drawn: Vec<Drawn>,
    /// Rows above those of the files or volumes.
    head: Vec<Vec<Panel>>,
    /// Heading of the rows below.
    of_what: &'static str,
    /// One row for each file or volume: its operations and its bytes.
    each: Vec<[Panel; 2]>,
}

/// Lays out the panels.
struct Plan<'a> {
    header: &'a Header,
    tracks: Vec<Track>,
    drawn: Vec<Drawn>,
}

impl Plan<'_> {
    fn track(&mut self, name: &str, track: Track, scale: f64) -> usize {
        let width = self.header.interval().unwrap_or(Span::from_secs(1));
        let (name, points) = (name.to_owned(), Points::new(width));
        self.tracks.push(track);
        self.drawn.push(Drawn { name, scale, points, total: 0.0 });
        self.tracks.len() - 1
    }

    fn name(&self, entity: EntityId) -> String {
        self.header.contents.entity(entity).map(|e| e.name.clone()).unwrap_or_default()
    }

    /// Adds a row with the activity of a database, and a row with its waits.
    fn database(&mut self, view: &view::DatabaseView) -> [Vec<Panel>; 2] {
        let name = self.name(view.entity);
        let (mut load, mut waiting) = (Vec::new(), Vec::new());
        let panel = |title: &str, tracks| Panel {
            title: format!("{name}: {title}"),
            tracks,
            is_stacked: false,
            limit: None,
            burst: None,
        };
        if let Some(batches) = view.batches {
            let track = self.track("batch requests/s", Track(vec![batches]), 1.0);
            load.push(panel("batch requests/s", vec![track]));
        }
        let entity = self.header.contents.entity(view.entity);
        let vcores = entity.and_then(|entity| entity.number(attribute::VCORES)).filter(|n| *n > 0);
        if let Some((cpu, vcores)) = view.cpu.zip(vcores) {
            let track = self.track("CPU", Track(vec![cpu]), 100.0 / 1e9 / float(vcores));
            load.push(panel("CPU %", vec![track]));
        }
        if !view.waits.is_empty() {
            // Milliseconds of wait per second, divided by 1,000: the mean number of waiters.
            let waits = view.waits.iter();
            let tracks = waits.map(|w| self.track(&w.name, Track(vec![w.time_ms]), 1e-3)).collect();
            waiting.push(Panel { is_stacked: true, ..panel("tasks waiting, by wait", tracks) });
        }
        [load, waiting]
    }

    /// Adds the requests throttled by each cap, summed over the volumes.
    fn caps(&mut self, volumes: &[IoView]) -> Vec<Panel> {
        let mut by_cap: BTreeMap<&str, Vec<SeriesId>> = BTreeMap::new();
        for (cap, series) in volumes.iter().flat_map(|volume| &volume.waits) {
            by_cap.entry(cap).or_default().push(*series);
        }
        if by_cap.is_empty() {
            return Vec::new();
        }
        let tracks = by_cap.into_iter().map(|(cap, all)| self.track(cap, Track(all), 1e-9));
        let tracks = tracks.collect();
        let title = "requests held, by cap".to_owned();
        vec![Panel { title, tracks, is_stacked: true, limit: None, burst: None }]
    }

    fn io(&mut self, view: &IoView) -> [Panel; 2] {
        let name = self.name(view.entity);
        let mib = f64::from(1 << 20);
        let operations = self.track(&name, view.operations.clone(), 1.0);
        let bytes = self.track(&name, view.bytes.clone(), 1.0 / mib);
        let entity = self.header.contents.entity(view.entity);
        let burst = |of: &str| entity.and_then(|own| own.number(&format!("burst_{of}"))).map(float);
        let panel = |what: &str, track, limit: Option<f64>, burst: Option<f64>| Panel {
            title: format!("{name}: {what}"),
            tracks: vec![track],
            is_stacked: false,
            limit,
            burst,
        };
        let limit = view.bytes_per_s_limit.map(|limit| float(limit) / mib);
        let burst_bytes = burst(attribute::BYTES_PER_S_LIMIT).map(|limit| limit / mib);
        let iops = (view.iops_limit.map(float), burst(attribute::IOPS_LIMIT));
        [panel("IOPS", operations, iops.0, iops.1), panel("MiB/s", bytes, limit, burst_bytes)]
    }
}

impl Picture {
    pub(crate) fn new(header: &Header) -> Self {
        let contents = &header.contents;
        let files = view::io(contents, &EntityKind::File);
        let volumes = view::io(contents, &EntityKind::Volume);
        let mut plan = Plan { header, tracks: Vec::new(), drawn: Vec::new() };
        let databases = view::databases(contents);
        let mut head: Vec<_> =
            databases.iter().flat_map(|database| plan.database(database)).collect();
        head.push(plan.caps(&volumes));
        head.retain(|row| !row.is_empty());
        let (of_what, all) =
            if files.is_empty() { ("volumes", &volumes) } else { ("files", &files) };
        let each = all.iter().map(|view| plan.io(view)).collect();
        let layout = header.layout.as_ref().map(|layout| format!(" of {}", layout.name));
        Self {
            title: format!("{}{}", header.source.kind.name(), layout.unwrap_or_default()),
            tracker: Tracker::new(contents, &plan.tracks),
            drawn: plan.drawn,
            head,
            of_what,
            each,
        }
    }

    pub(crate) fn sample(&mut self, at: Instant, row: &[Option<i64>]) {
        let drawn = &mut self.drawn;
        self.tracker.sample(at, row, |index, reading| {
            drawn[index].points.add(&reading);
            drawn[index].total += reading.amount;
        });
    }

    /// Returns rows of charts, and notes on them.
    pub(crate) fn charts(&self) -> (Vec<Vec<Chart>>, Vec<String>) {
        let mut rows: Vec<Vec<Chart>> = self
            .head
            .iter()
            .map(|row| row.iter().map(|panel| self.chart(panel)).collect())
            .collect();
        let mut each: Vec<&[Panel; 2]> = self.each.iter().collect();
        let mut notes = Vec::new();
        if each.len() > MOST {
            let total = |panels: &[Panel; 2]| self.drawn[panels[0].tracks[0]].total;
            each.sort_by(|one, other| total(other).total_cmp(&total(one)));
            each.truncate(MOST);
            let (all, what) = (self.each.len(), self.of_what);
            let note = format!("the {MOST} busiest of {all} {what} are plotted");
            output::talk(&format!("weir: {note}"));
            notes.push(note);
        }
        rows.extend(each.iter().map(|row| row.iter().map(|panel| self.chart(panel)).collect()));
        (rows, notes)
    }

    /// Writes the plot in the format that the file's extension names.
    pub(crate) fn write(&self, path: &Path) -> Result<(), CliError> {
        let (rows, notes) = self.charts();
        if path.extension().is_some_and(|end| end == "html") {
            let page = Page::new(&self.title).paragraphs(notes.iter().map(String::as_str));
            return page::write(path, &page.charts("Over time", &rows)?);
        }
        let drawn = chart::svg(&rows)?;
        fs::write(path, drawn).map_err(|source| CliError::write(path, source))
    }

    fn chart(&self, panel: &Panel) -> Chart {
        let mut drawn: Vec<&Drawn> = panel.tracks.iter().map(|track| &self.drawn[*track]).collect();
        let mut lines = Vec::new();
        if panel.is_stacked {
            drawn.retain(|drawn| drawn.total > 0.0);
            drawn.sort_by(|one, other| other.total.total_cmp(&one.total));
            let others = drawn.split_off(drawn.len().min(MOST_AREAS));
            lines.extend(drawn.iter().map(|drawn| drawn.line()));
            lines.extend(sum(&others));
        } else {
            lines.extend(drawn.iter().map(|drawn| drawn.line()));
        }
        let (title, is_stacked) = (panel.title.clone(), panel.is_stacked);
        Chart { title, lines, is_stacked, limit: panel.limit, burst: panel.burst }
    }
}

impl Drawn {
    fn line(&self) -> Line {
        let points = self.points.iter().map(|(x, y)| (x, y.map(|y| y * self.scale)));
        Line { name: self.name.clone(), points: points.collect() }
    }
}

/// The area of everything without its own colour.
fn sum(others: &[&Drawn]) -> Option<Line> {
    let mut lines = others.iter().map(|drawn| drawn.line());
    let mut all = lines.next()?;
    for line in lines {
        for ((_, sum), (_, y)) in all.points.iter_mut().zip(line.points) {
            *sum = sum.map(|sum| sum + y.unwrap_or(0.0)).or(y);
        }
    }
    all.name = "others".to_owned();
    Some(all)
}
