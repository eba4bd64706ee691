//! A volume or host alone: its limits, its waits, and charts of the past.

use crate::line::Line;
use crate::palette::Palette;
use crate::text::{NONE, clean, count, cut, left, mebibytes, milliseconds, right, share};
use crate::top::{Shown, Top};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line as Text, Span};
use ratatui::widgets::{Paragraph, Sparkline, SparklineBar};
use std::ops::Range;
use weir_report::number::{float, gib, whole};
use weir_report::run::CAPS;
use weir_report::status::{VolumeStatus, credits_words};
use weir_watch::caps::CapUse;
use weir_watch::sample::{
    DEPTH, HIT_RATE, LATENCY_MS, P99_MS, READ_BYTES, READ_IOPS, WAITS, WRITE_BYTES, WRITE_IOPS,
};

/// Rows of waits by cap.
const WAIT_ROWS: usize = 5;
/// Columns before the bars of a chart.
const LABEL: u16 = 39;
/// The tallest chart.
const TALLEST: u16 = 4;

/// A chart of the past: its name, the columns that it sums, and its figures in words.
type Chart = (&'static str, Range<usize>, fn(f64) -> String);

const CHARTS: [Chart; 7] = [
    ("IOPS", READ_IOPS..WRITE_IOPS + 1, count),
    ("MiB/s", READ_BYTES..WRITE_BYTES + 1, mebibytes),
    ("latency", LATENCY_MS..LATENCY_MS + 1, milliseconds),
    ("99th percentile", P99_MS..P99_MS + 1, milliseconds),
    ("queue depth", DEPTH..DEPTH + 1, count),
    ("waiting at caps", WAITS..WAITS + CAPS.len(), count),
    ("cache hits", HIT_RATE..HIT_RATE + 1, share),
];

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, top: &Top, palette: Palette) {
    let Some(shown) = &top.shown else { return };
    let Some(line) = top.at().map(|at| &shown.lines[at]) else { return };
    let mut text = summary(line, shown, palette);
    text.extend(caps(line, shown, area.width, palette));
    text.extend(waits(line, area.width, palette));
    let height = u16::try_from(text.len()).unwrap_or(u16::MAX);
    let left = area.height.saturating_sub(height);
    let charts = u16::try_from(CHARTS.len()).unwrap_or(u16::MAX);
    let tall = (left.saturating_sub(2) / charts).clamp(1, TALLEST);
    let areas = Layout::vertical([
        Constraint::Length(height),
        Constraint::Length((tall * charts).min(left)),
        Constraint::Min(0),
    ]);
    let [head, body, foot] = areas.areas(area);
    frame.render_widget(Paragraph::new(text), head);
    for (n, chart) in (0..body.height / tall).zip(&CHARTS) {
        let area = Rect { y: body.y + n * tall, height: tall, ..body };
        draw_chart(frame, area, top, line, chart, palette);
    }
    let name = line.item.volume.as_deref().unwrap_or(&line.item.host);
    let events = top.events(Some(name)).take(foot.height.into());
    let events: Vec<Text<'_>> = events.map(|own| palette.event(own)).collect();
    frame.render_widget(Paragraph::new(events), foot);
}

/// Returns the reading of a volume.
fn reading<'a>(line: &Line, shown: &'a Shown) -> Option<&'a VolumeStatus> {
    let name = line.item.volume.as_ref()?;
    let host = shown.report.now.hosts.iter().find(|host| host.name == line.item.host)?;
    host.volumes.iter().find(|volume| volume.name == *name)
}

fn summary(line: &Line, shown: &Shown, palette: Palette) -> Vec<Text<'static>> {
    let name = Span::styled(cut(&line.name, 40), palette.strong());
    let Some(volume) = reading(line, shown) else {
        let kind = if line.kind.is_empty() { String::new() } else { format!(", {}", line.kind) };
        return vec![Text::from(vec![name, Span::raw(format!(": host{kind}"))])];
    };
    let tier = if line.kind.is_empty() { "no tier" } else { &line.kind };
    let what = format!(
        ": {tier}, {} GiB, cache {}, host {}",
        gib(volume.size_bytes),
        clean(&volume.cache),
        cut(&clean(&line.item.host), 24)
    );
    let mut text = vec![Text::from(vec![name, Span::raw(what)])];
    if let Some(backend) = &volume.backend {
        let style = if backend.is_connected() { Style::new() } else { palette.bad() };
        let words = format!("Backend {}: {}.", backend.address, backend.words());
        text.push(Text::styled(clean(&words), style));
    }
    if volume.burst_iops.is_some() || volume.burst_bytes_per_s.is_some() {
        let limits = |iops: Option<u64>, bytes: Option<u64>| {
            let iops = iops.map(|n| format!("{} IOPS", count(float(n))));
            let bytes = bytes.map(|n| format!("{} MiB/s", mebibytes(float(n))));
            iops.into_iter().chain(bytes).collect::<Vec<_>>().join(" and ")
        };
        let now = limits(volume.iops_now(), volume.bytes_per_s_now());
        let then = limits(volume.limit_iops, volume.limit_bytes_per_s);
        text.push(Text::from(format!("May do {now} now; without credits {then}.")));
        let words = credits_words(volume, line.credits_last_s);
        let left = volume.credits_share().map(|left| format!("{}: ", share(left)));
        let style = palette.credits(volume.credits_share().unwrap_or(1.0));
        let words = Span::styled(format!("{}{words}", left.unwrap_or_default()), style);
        text.push(Text::from(vec![Span::raw("Burst credits "), words]));
    }
    text
}

/// Returns the table of limits: those of a volume, then those of its host.
fn caps(line: &Line, shown: &Shown, width: u16, palette: Palette) -> Vec<Text<'static>> {
    let is_host_of = |own: &&Line| own.is_host() && own.item.host == line.item.host;
    let host = shown.lines.iter().find(is_host_of).filter(|_| !line.is_host());
    let host = host.map_or(&[][..], |host| &host.caps);
    let all: Vec<&CapUse> = line.caps.iter().chain(host).collect();
    if all.is_empty() {
        return vec![Text::from("No limits.")];
    }
    let head = cells(["LIMIT", "SUSTAINED", "BURST", "NOW", "USED", "FULL", "CREDITS"]);
    let style = palette.faint().add_modifier(Modifier::UNDERLINED);
    let mut text = vec![Text::styled(head, style)];
    text.extend(all.into_iter().map(|cap| {
        let is_bytes = !cap.cap.ends_with("_iops");
        let amount = |x: f64| if is_bytes { mebibytes(x) } else { count(x) };
        let mark = if cap.is_estimate { "~" } else { "" };
        let marked = |text: Option<String>| {
            text.map_or_else(|| NONE.to_owned(), |text| format!("{mark}{text}"))
        };
        let unit = if is_bytes { " MiB/s" } else { "" };
        let row = cells([
            &format!("{}{unit}", clean(&cap.cap)),
            &amount(float(cap.sustained)),
            &cap.burst.map_or_else(|| NONE.to_owned(), |n| amount(float(n))),
            &amount(float(cap.now)),
            &marked(cap.used.map(amount)),
            &marked(cap.share().map(share)),
            &cap.credits.map_or_else(|| NONE.to_owned(), share),
        ]);
        let room = usize::from(width).saturating_sub(row.chars().count() + 1).min(30);
        let part = cap.share().unwrap_or(0.0);
        let style = palette.full(part);
        Text::from(vec![Span::raw(row), Span::styled(format!(" {}", bar(part, room)), style)])
    }));
    text
}

fn cells(texts: [&str; 7]) -> String {
    let [first, rest @ ..] = texts;
    let rest: String = rest.map(|text| right(text, 9)).concat();
    left(first, 26) + &rest
}

/// Returns a bar of which this part is filled.
fn bar(part: f64, width: usize) -> String {
    let filled = whole(part.clamp(0.0, 1.0) * f64::from(u32::try_from(width).unwrap_or(u32::MAX)));
    "█".repeat(usize::try_from(filled).unwrap_or(0))
}

fn waits(line: &Line, width: u16, palette: Palette) -> Vec<Text<'static>> {
    let waits = line.waits();
    if waits.is_empty() {
        return vec![Text::from("No request waits at a limit.")];
    }
    let depth = line.depth().max(line.waiting());
    let head = format!("{}{:>9}{:>18}", left("TIME WAITED AT", 26), "WAITING", "OF THE LATENCY");
    let style = palette.faint().add_modifier(Modifier::UNDERLINED);
    let mut text = vec![Text::styled(head, style)];
    text.extend(waits.iter().take(WAIT_ROWS).map(|(cap, seconds)| {
        let part = seconds / depth;
        let row = format!("{}{:>9}{:>18}", left(cap, 26), count(*seconds), share(part));
        let room = usize::from(width).saturating_sub(row.len() + 1).min(30);
        Text::from(format!("{row} {}", bar(part, room)))
    }));
    text
}

fn draw_chart(
    frame: &mut Frame<'_>,
    area: Rect,
    top: &Top,
    line: &Line,
    (name, columns, words): &Chart,
    palette: Palette,
) {
    let [label, bars] =
        Layout::horizontal([Constraint::Length(LABEL), Constraint::Min(1)]).areas(area);
    let columns: Vec<usize> = columns.clone().collect();
    let values = top.past(&line.item, &columns, bars.width.into());
    let known = values.iter().copied().filter(|value| !value.is_nan());
    let max = known.fold(f64::NAN, f64::max);
    let now = values.last().copied().unwrap_or(f64::NAN);
    let text = format!("{}{:>9} max {:>9}", left(name, 15), words(now), words(max));
    frame.render_widget(Text::raw(left(&text, LABEL.into())), label);
    // A value above zero is at least visible.
    let height = |value: f64| match value {
        value if value > 0.0 && max > 0.0 => Some(whole(value / max * 1_000.0).max(20)),
        value if value.is_nan() => None,
        _ => Some(0),
    };
    let data = values.into_iter().map(|value| SparklineBar::from(height(value)));
    let style =
        if palette.is_plain { Style::new() } else { palette.coloured(ratatui::style::Color::Cyan) };
    frame.render_widget(Sparkline::default().data(data).max(1_000).style(style), bars);
}
