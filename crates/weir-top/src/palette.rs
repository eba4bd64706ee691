//! The styles of the picture.

use crate::text::{clean, clock};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line as Text, Span};
use weir_watch::events::Event;

/// The styles. Without colours, emphasis and reversed text remain.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Palette {
    pub(crate) is_plain: bool,
}

impl Palette {
    pub(crate) fn coloured(self, color: Color) -> Style {
        if self.is_plain { Style::new() } else { Style::new().fg(color) }
    }

    pub(crate) fn bad(self) -> Style {
        self.coloured(Color::Red).add_modifier(Modifier::BOLD)
    }

    pub(crate) fn near(self) -> Style {
        self.coloured(Color::Yellow)
    }

    pub(crate) fn faint(self) -> Style {
        if self.is_plain { Style::new() } else { Style::new().add_modifier(Modifier::DIM) }
    }

    /// Returns the style of figures that are no longer true, over any other.
    pub(crate) fn old(self) -> Style {
        self.coloured(Color::Reset).patch(self.faint())
    }

    pub(crate) fn strong(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// Returns the style of a limit that is used to this part.
    pub(crate) fn full(self, share: f64) -> Style {
        match share {
            share if share >= 0.95 => self.bad(),
            share if share >= 0.8 => self.near(),
            _ => Style::new(),
        }
    }

    /// Returns the style of burst credits of which this part is left.
    pub(crate) fn credits(self, share: f64) -> Style {
        match share {
            share if share < 0.1 => self.bad(),
            share if share < 0.25 => self.near(),
            _ => Style::new(),
        }
    }

    /// Returns an event as a line.
    pub(crate) fn event(self, event: &Event) -> Text<'static> {
        let time = Span::styled(format!("{} ", clock(event.ms)), self.faint());
        Text::from(vec![time, Span::raw(format!("{}: {}", clean(&event.item), clean(&event.text)))])
    }
}
