//! The picture of the state.

mod detail;
mod dialog;
mod list;

use crate::palette::Palette;
use crate::text::{clean, clock, left, wrapped};
use crate::top::{Dialog, Top};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::Line as Text;
use ratatui::widgets::{Paragraph, Wrap};
use weir_report::number::float;
use weir_report::status::lasting;

/// The smallest terminal on which figures are drawn: columns and rows.
pub const SMALLEST: (u16, u16) = (60, 12);

/// The most rows of the sentence about the state.
const SENTENCE_ROWS: usize = 5;

/// Draws the state.
pub fn draw(frame: &mut Frame<'_>, top: &mut Top) {
    let area = frame.area();
    if area.width < SMALLEST.0 || area.height < SMALLEST.1 {
        let text = format!(
            "The terminal has {} x {} cells; weir top needs {} x {}. Enlarge it, or press q.",
            area.width, area.height, SMALLEST.0, SMALLEST.1
        );
        frame.render_widget(Paragraph::new(text).wrap(Wrap { trim: true }), area);
        return;
    }
    let palette = Palette { is_plain: top.is_plain };
    let (sentence, style) = sentence(top, palette);
    let sentence = wrapped(&sentence, area.width.into(), SENTENCE_ROWS);
    let areas = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(u16::try_from(sentence.len()).unwrap_or(1)),
        Constraint::Min(1),
        Constraint::Length(1),
    ]);
    let [title, state, body, foot] = areas.areas(area);
    frame.render_widget(heading(top, title.width.into(), palette), title);
    let sentence: Vec<Text<'_>> = sentence.into_iter().map(Text::from).collect();
    frame.render_widget(Paragraph::new(sentence).style(style), state);
    if top.is_open {
        detail::draw(frame, body, top, palette);
    } else {
        list::draw(frame, body, top, palette);
    }
    if top.lost.is_some() {
        frame.buffer_mut().set_style(body, palette.old());
    }
    footer(frame, foot, top, palette);
    match &top.dialog {
        Dialog::None => {}
        Dialog::Help => dialog::help(frame, palette),
        Dialog::Tier { volume, text } => dialog::tier(frame, top, volume, text),
        Dialog::Confirm { volume, tier } => dialog::confirm(frame, top, volume, tier),
    }
}

/// Returns the line at the top: the server and the time of its figures.
fn heading(top: &Top, width: usize, palette: Palette) -> Text<'static> {
    let Some(shown) = &top.shown else { return Text::styled("weir top", palette.strong()) };
    let now = &shown.report.now;
    let up = lasting(float(now.uptime_ns) / 1e9);
    let edition = now.edition.as_deref().map(|name| format!(", {}", clean(name)));
    let server = format!("weir top: process {}, up {up}{}", now.pid, edition.unwrap_or_default());
    let state = match (&top.lost, top.paused) {
        (Some(_), _) => "NO ANSWER  ",
        (None, Some(_)) => "PAUSED  ",
        (None, None) => "",
    };
    let time = format!("{state}{} UTC", clock(shown.ms));
    let gap = width.saturating_sub(time.chars().count());
    Text::styled(left(&server, gap) + &time, palette.strong())
}

/// Returns the state in a sentence, or the reason why it is not known.
fn sentence(top: &Top, palette: Palette) -> (String, Style) {
    match (&top.lost, &top.shown) {
        (Some(reason), shown) => {
            let figures = shown
                .as_ref()
                .map(|shown| format!(" The figures below are those of {} UTC.", clock(shown.ms)));
            let text = format!(
                "The server does not answer: {reason}.{} Waiting for it; q quits.",
                figures.unwrap_or_default()
            );
            (text, palette.bad().add_modifier(Modifier::REVERSED))
        }
        (None, Some(shown)) => (shown.sentence.clone(), Style::new()),
        (None, None) => ("Measuring ..".to_owned(), Style::new()),
    }
}

fn footer(frame: &mut Frame<'_>, area: Rect, top: &Top, palette: Palette) {
    let width: usize = area.width.into();
    let text = match &top.message {
        Some(message) => {
            let style = if message.is_refusal { palette.bad() } else { palette.strong() };
            Text::styled(left(&message.text, width), style)
        }
        None => {
            // The column of the order may be one that a narrow terminal does not show.
            let order = if top.is_reversed { "reversed by" } else { "by" };
            let keys = match top.is_open {
                true => "q quit  ? help  Esc back  Up/Down other  t tier  p pause".to_owned(),
                false => format!(
                    "q quit  ? help  Enter open  s/r sort  t tier  p pause  {order} {}",
                    top.sort.words()
                ),
            };
            Text::styled(left(&keys, width), palette.faint())
        }
    };
    frame.render_widget(text, area);
}
