//! The state: readings and keys in, wishes out.

use crate::column::Column;
use crate::line::{Item, Line, lines};
use crate::text::clean;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use weir_report::status::{Status, StatusReport};
use weir_watch::Watch;
use weir_watch::events::Event;

/// Samples that are kept for the charts: ten minutes of seconds.
const KEPT: usize = 600;
/// Time for which an answer is shown, unless a key is pressed.
const MESSAGE_MS: u64 = 10_000;
/// Longest tier that can be typed.
const MAX_TIER: usize = 64;

/// A wish of the user that the state cannot meet itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wish {
    /// To quit.
    Quit,
    /// To give a volume the limits of a tier; the answer goes to [`Top::answered`].
    SetTier {
        /// The volume.
        volume: String,
        /// The tier.
        tier: String,
    },
}

/// The state that is drawn.
#[derive(Debug)]
pub struct Top {
    watch: Watch,
    /// The newest figures, or while paused those of the pause.
    pub(crate) shown: Option<Shown>,
    pub(crate) sort: Column,
    pub(crate) is_reversed: bool,
    pub(crate) selected: Option<Item>,
    /// Lines that the list shows at once; the drawing sets it.
    pub(crate) page: usize,
    /// First line of the list that is shown; the drawing sets it.
    pub(crate) first: usize,
    /// The selected volume or host is shown alone.
    pub(crate) is_open: bool,
    pub(crate) dialog: Dialog,
    /// Samples since the pause.
    pub(crate) paused: Option<usize>,
    /// The reason why there are no new figures.
    pub(crate) lost: Option<String>,
    /// The answer to a command.
    pub(crate) message: Option<Message>,
    /// Nothing is coloured.
    pub(crate) is_plain: bool,
}

/// The figures of a reading.
#[derive(Debug)]
pub(crate) struct Shown {
    pub(crate) ms: u64,
    pub(crate) report: StatusReport,
    pub(crate) sentence: String,
    pub(crate) lines: Vec<Line>,
}

/// A question or help above the figures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Dialog {
    None,
    Help,
    /// A tier is typed.
    Tier {
        volume: String,
        text: String,
    },
    /// A change waits for a yes.
    Confirm {
        volume: String,
        tier: String,
    },
}

/// An answer of the server.
#[derive(Debug)]
pub(crate) struct Message {
    pub(crate) text: String,
    pub(crate) is_refusal: bool,
    /// The time of the first reading after it.
    since_ms: Option<u64>,
}

impl Top {
    /// Creates a state without figures. With `is_plain`, nothing is coloured.
    #[must_use]
    pub fn new(is_plain: bool) -> Self {
        Self {
            watch: Watch::keeping(KEPT),
            shown: None,
            sort: Column::Waiting,
            is_reversed: false,
            selected: None,
            page: 1,
            first: 0,
            is_open: false,
            dialog: Dialog::None,
            paused: None,
            lost: None,
            message: None,
            is_plain,
        }
    }

    /// Takes a reading of a time in milliseconds since 1970.
    pub fn take(&mut self, ms: u64, status: Status) {
        let old = self.watch.newest();
        let is_other =
            old.is_some_and(|old| old.pid != status.pid || old.uptime_ns > status.uptime_ns);
        if is_other {
            self.watch = Watch::keeping(KEPT);
            self.paused = None;
            self.shown = None;
            let text = format!("process {} answers now", status.pid);
            self.watch.note(ms, "server".to_owned(), text);
        }
        self.lost = None;
        self.forget_message(ms);
        let old = self.watch.newest().cloned();
        let taken = self.watch.take(ms, status);
        let Some((old, taken)) = old.zip(taken) else { return };
        if let Some(samples) = &mut self.paused {
            *samples += 1;
            return;
        }
        let lines = lines(&old, &taken.report, taken.sampled);
        let sentence = clean(&taken.sentence);
        self.shown = Some(Shown { ms, report: taken.report, sentence, lines });
        self.order();
    }

    /// Notes that the server does not answer, so the figures are old.
    pub fn lost(&mut self, reason: &str) {
        self.lost = Some(clean(reason));
    }

    /// Takes the answer to a [`Wish::SetTier`].
    pub fn answered(&mut self, answer: Result<String, String>) {
        let is_refusal = answer.is_err();
        let (Ok(text) | Err(text)) = answer;
        self.message = Some(Message { text: clean(&text), is_refusal, since_ms: None });
    }

    /// Forgets an answer that was readable for long enough.
    fn forget_message(&mut self, ms: u64) {
        let is_old = |message: &mut Message| {
            ms.saturating_sub(*message.since_ms.get_or_insert(ms)) >= MESSAGE_MS
        };
        if self.message.as_mut().is_some_and(is_old) {
            self.message = None;
        }
    }

    /// Takes a key.
    pub fn key(&mut self, key: KeyEvent) -> Option<Wish> {
        if key.kind == KeyEventKind::Release {
            return None;
        }
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        if is_control && key.code == KeyCode::Char('c') {
            return Some(Wish::Quit);
        }
        self.message = None;
        match std::mem::replace(&mut self.dialog, Dialog::None) {
            Dialog::None if !is_control => return self.command(key.code),
            Dialog::None | Dialog::Help => {}
            Dialog::Tier { volume, text } => self.typed(volume, text, key.code, is_control),
            Dialog::Confirm { volume, tier } => match key.code {
                KeyCode::Char('y' | 'Y') => {
                    self.answered(Ok(format!("changing {volume} to {tier} ..")));
                    return Some(Wish::SetTier { volume, tier });
                }
                KeyCode::Char('n' | 'N') | KeyCode::Esc => {}
                // Only yes and no are answers.
                _ => self.dialog = Dialog::Confirm { volume, tier },
            },
        }
        None
    }

    fn command(&mut self, code: KeyCode) -> Option<Wish> {
        match code {
            KeyCode::Char('q') => return Some(Wish::Quit),
            KeyCode::Char('h' | '?') | KeyCode::F(1) => self.dialog = Dialog::Help,
            KeyCode::Char('p' | ' ') => self.pause(),
            KeyCode::Char('s' | '>') | KeyCode::Right => self.sort_by(self.sort.next(false)),
            KeyCode::Char('S' | '<') | KeyCode::Left => self.sort_by(self.sort.next(true)),
            KeyCode::Char('r') => {
                self.is_reversed = !self.is_reversed;
                self.order();
            }
            KeyCode::Char('t') => self.ask_tier(),
            KeyCode::Enter => self.is_open = self.selected.is_some(),
            KeyCode::Esc | KeyCode::Backspace => self.is_open = false,
            KeyCode::Up | KeyCode::Char('k') => self.select(-1),
            KeyCode::Down | KeyCode::Char('j') => self.select(1),
            KeyCode::PageUp => self.select(-self.page_size()),
            KeyCode::PageDown => self.select(self.page_size()),
            KeyCode::Home | KeyCode::Char('g') => self.select(isize::MIN),
            KeyCode::End | KeyCode::Char('G') => self.select(isize::MAX),
            _ => {}
        }
        None
    }

    fn page_size(&self) -> isize {
        isize::try_from(self.page.max(1)).unwrap_or(1)
    }

    /// Edits the tier that is typed.
    fn typed(&mut self, volume: String, mut text: String, code: KeyCode, is_control: bool) {
        match code {
            KeyCode::Esc => return,
            KeyCode::Enter => {
                let tier = text.trim().to_owned();
                if !tier.is_empty() {
                    self.dialog = Dialog::Confirm { volume, tier };
                }
                return;
            }
            KeyCode::Char('u') if is_control => text.clear(),
            KeyCode::Backspace => {
                text.pop();
            }
            KeyCode::Char(c) if !is_control && text.len() < MAX_TIER => text.push(c),
            _ => {}
        }
        self.dialog = Dialog::Tier { volume, text };
    }

    fn ask_tier(&mut self) {
        match self.selected.as_ref().map(|item| item.volume.clone()) {
            Some(Some(volume)) => {
                self.dialog = Dialog::Tier { volume, text: String::new() };
            }
            _ => self.answered(Err("a host has no tier; select a volume".to_owned())),
        }
    }

    fn pause(&mut self) {
        self.paused = if self.paused.is_some() { None } else { Some(0) };
    }

    fn sort_by(&mut self, column: Column) {
        self.sort = column;
        self.is_reversed = false;
        self.order();
    }

    /// Puts the lines in order, and selects the first if the selected one is gone.
    fn order(&mut self) {
        let (sort, is_reversed) = (self.sort, self.is_reversed);
        let Some(shown) = &mut self.shown else { return };
        sort.sort(&mut shown.lines, is_reversed);
        if self.at().is_none() {
            let first = |shown: &Shown| shown.lines.first().map(|line| line.item.clone());
            self.selected = self.shown.as_ref().and_then(first);
            self.is_open = false;
        }
    }

    /// Returns the place of the selected line.
    pub(crate) fn at(&self) -> Option<usize> {
        let (shown, selected) = (self.shown.as_ref()?, self.selected.as_ref()?);
        shown.lines.iter().position(|line| line.item == *selected)
    }

    /// Selects the line that is this many lines below the selected one.
    fn select(&mut self, by: isize) {
        let Some(shown) = &self.shown else { return };
        let at = self.at().unwrap_or(0).saturating_add_signed(by);
        let line = shown.lines.get(at.min(shown.lines.len().saturating_sub(1)));
        self.selected = line.map(|line| line.item.clone());
    }

    /// Returns up to `len` values of the columns of a volume or host, summed, the oldest first.
    pub(crate) fn past(&self, item: &Item, columns: &[usize], len: usize) -> Vec<f64> {
        let skip = self.paused.unwrap_or(0);
        let mut sum: Vec<f64> = Vec::new();
        for column in columns {
            let history = self.watch.history();
            let own = history.last(&item.host, item.volume.as_deref(), *column, (skip, len));
            sum.resize(own.len(), 0.0);
            sum.iter_mut().zip(own).for_each(|(sum, own)| *sum += f64::from(own));
        }
        sum
    }

    /// Returns the newest events, of all or of one name, the newest first.
    pub(crate) fn events<'a>(&'a self, of: Option<&'a str>) -> impl Iterator<Item = &'a Event> {
        let until = self.paused.and(self.shown.as_ref()).map_or(u64::MAX, |shown| shown.ms);
        let is_shown =
            move |event: &&Event| event.ms <= until && of.is_none_or(|name| event.item == name);
        self.watch.events().iter().rev().filter(is_shown)
    }
}
