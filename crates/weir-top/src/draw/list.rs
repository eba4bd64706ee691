//! The list of hosts and volumes.

use crate::column::Column;
use crate::line::Line;
use crate::palette::Palette;
use crate::text::{left, right};
use crate::top::Top;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line as Text, Span};
use ratatui::widgets::Paragraph;

/// Events below the list, if there is room for them.
const EVENTS: u16 = 4;
/// The height from which there is.
const ROOM: u16 = 16;

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, top: &mut Top, palette: Palette) {
    let events = if area.height >= ROOM { EVENTS } else { 1 };
    let areas =
        Layout::vertical([Constraint::Length(1), Constraint::Min(1), Constraint::Length(events)]);
    let [head, body, foot] = areas.areas(area);
    let columns = Column::fitting(area.width.into());
    frame.render_widget(headings(&columns, top, palette), head);
    scroll(top, body.height.into());
    if let Some(shown) = &top.shown {
        let lines = shown.lines.iter().enumerate().skip(top.first).take(top.page);
        let at = top.at();
        let rows: Vec<Text<'_>> =
            lines.map(|(n, line)| row(line, &columns, at == Some(n), palette)).collect();
        frame.render_widget(Paragraph::new(rows), body);
    }
    let events: Vec<Text<'_>> = {
        let newest = top.events(None).take(events.into());
        newest.map(|own| palette.event(own)).collect()
    };
    frame.render_widget(Paragraph::new(events), foot);
}

/// Moves the window over the lines so that it has the selected one.
fn scroll(top: &mut Top, height: usize) {
    let len = top.shown.as_ref().map_or(0, |shown| shown.lines.len());
    let at = top.at().unwrap_or(0);
    top.page = height.max(1);
    let lowest = (at + 1).saturating_sub(top.page);
    top.first = top.first.clamp(lowest, at.max(lowest)).min(len.saturating_sub(top.page));
}

fn headings(columns: &[(Column, usize)], top: &Top, palette: Palette) -> Text<'static> {
    let mut spans = Vec::new();
    for (n, (column, width)) in columns.iter().enumerate() {
        let is_sort = *column == top.sort;
        let mark = match (is_sort, top.is_reversed) {
            (false, _) => "",
            (true, false) => "▼",
            (true, true) => "▲",
        };
        let text = format!("{}{mark}", column.heading());
        let style = if is_sort { palette.strong() } else { palette.faint() };
        spans.extend((n > 0).then(|| Span::raw(" ")));
        spans.push(Span::styled(aligned(*column, &text, *width), style));
    }
    Text::from(spans).style(Style::new().add_modifier(Modifier::UNDERLINED))
}

fn row(
    line: &Line,
    columns: &[(Column, usize)],
    is_selected: bool,
    palette: Palette,
) -> Text<'static> {
    let mut spans = Vec::new();
    for (n, (column, width)) in columns.iter().enumerate() {
        let style = match column {
            Column::Name if line.is_throttled || line.is_lost => palette.bad(),
            Column::Name if line.is_host() => palette.strong(),
            Column::IopsShare => palette.full(line.full("_iops")),
            Column::BytesShare => palette.full(line.full("_bytes")),
            Column::Credits => palette.credits(line.credits()),
            _ => Style::new(),
        };
        spans.extend((n > 0).then(|| Span::raw(" ")));
        spans.push(Span::styled(aligned(*column, &column.cell(line), *width), style));
    }
    let text = Text::from(spans);
    if is_selected { text.style(Style::new().add_modifier(Modifier::REVERSED)) } else { text }
}

fn aligned(column: Column, text: &str, width: usize) -> String {
    if column.is_left() { left(text, width) } else { right(text, width) }
}
