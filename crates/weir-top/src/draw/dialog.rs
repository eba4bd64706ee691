//! Help, and the questions before a change.

use crate::palette::Palette;
use crate::text::{clean, cut};
use crate::top::Top;
use ratatui::Frame;
use ratatui::layout::{Constraint, Rect};
use ratatui::style::Style;
use ratatui::text::Line as Text;
use ratatui::widgets::{Block, Clear, Paragraph, Wrap};

const KEYS: [(&str, &str); 11] = [
    ("Up, Down, PgUp, PgDn", "select; also j, k, g, G, Home, End"),
    ("Enter", "show the selected volume or host alone"),
    ("Esc", "back to the list"),
    ("s, S, Right, Left", "sort by the next or previous column"),
    ("r", "reverse the order"),
    ("t", "change the tier of the selected volume"),
    ("p, Space", "pause: keep the figures, go on reading"),
    ("q, Ctrl-C", "quit"),
    ("FULL", "use of what the limit allows now; ~ estimate"),
    ("WAITING", "mean number of requests that wait at caps"),
    ("LAST", "until the burst credits are used up"),
];

/// Returns the middle of the screen.
fn middle(frame: &Frame<'_>, width: u16, height: u16) -> Rect {
    let area = frame.area();
    area.centered(
        Constraint::Length(width.min(area.width)),
        Constraint::Length(height.min(area.height)),
    )
}

fn show(frame: &mut Frame<'_>, area: Rect, title: &'static str, text: Vec<Text<'static>>) {
    frame.render_widget(Clear, area);
    let block = Block::bordered().title(title);
    frame.render_widget(Paragraph::new(text).wrap(Wrap { trim: false }).block(block), area);
}

pub(super) fn help(frame: &mut Frame<'_>, palette: Palette) {
    let lines = KEYS.iter().map(|(key, words)| Text::from(format!("{key:<21} {words}")));
    let last =
        Text::styled("docs/TOP.md explains all columns. Any key closes this.", palette.faint());
    // The bottom line stays on small terminals, too: the last keys explain columns.
    let text = lines.chain([last]).collect();
    let area = middle(frame, 70, 14);
    show(frame, area, " weir top ", text);
}

/// Returns the tier that a volume has.
fn present(top: &Top, volume: &str) -> String {
    let lines = top.shown.as_ref().map_or(&[][..], |shown| &shown.lines);
    let line = lines.iter().find(|line| line.item.volume.as_deref() == Some(volume));
    let kind = line.map_or("", |line| &line.kind);
    if kind.is_empty() { "no tier".to_owned() } else { kind.to_owned() }
}

pub(super) fn tier(frame: &mut Frame<'_>, top: &Top, volume: &str, text: &str) {
    let area = middle(frame, 60, 6);
    let name = cut(&clean(volume), 24);
    let lines = vec![
        Text::from(format!("{name} has {}. New tier, for example P40:", present(top, volume))),
        Text::styled(format!("> {}_", clean(text)), Style::new()),
        Text::from(""),
        Text::from("Enter: next   Esc: cancel"),
    ];
    show(frame, area, " change a tier ", lines);
}

pub(super) fn confirm(frame: &mut Frame<'_>, top: &Top, volume: &str, tier: &str) {
    let area = middle(frame, 60, 6);
    let name = cut(&clean(volume), 24);
    let lines = vec![
        Text::from(format!("Change {name} from {} to {}?", present(top, volume), clean(tier))),
        Text::from("Its limits change at once, under load."),
        Text::from(""),
        Text::from("y: yes   n: no"),
    ];
    show(frame, area, " change a tier ", lines);
}
