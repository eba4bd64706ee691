//! The terminal, restored at the end.

use crate::draw::draw;
use crate::top::Top;
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use std::io::{self, Stdout, stdout};
use std::panic;
use std::sync::atomic::{AtomicBool, Ordering};

/// The alternate screen of the terminal, with keys as they are pressed. Dropping it, and a panic of
/// any thread, restores the terminal.
#[derive(Debug)]
pub struct Screen {
    terminal: Terminal<CrosstermBackend<Stdout>>,
    _restore: Restore,
}

/// Restores the terminal when it is dropped, also if the screen was entered only partly.
#[derive(Debug)]
struct Restore;

impl Drop for Restore {
    fn drop(&mut self) {
        restore();
    }
}

/// Set while the terminal is in use. Leaving the alternate screen twice would move the cursor up
/// into the message of a panic.
static IS_ENTERED: AtomicBool = AtomicBool::new(false);

impl Screen {
    /// Enters the alternate screen of stdout, and sets the hook for panics.
    ///
    /// # Errors
    ///
    /// Those of the terminal.
    pub fn enter() -> io::Result<Self> {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |reason| {
            // The message of a panic must be readable afterwards.
            restore();
            before(reason);
        }));
        enable_raw_mode()?;
        IS_ENTERED.store(true, Ordering::SeqCst);
        let restore = Restore;
        execute!(stdout(), EnterAlternateScreen, Hide)?;
        let terminal = Terminal::new(CrosstermBackend::new(stdout()))?;
        Ok(Self { terminal, _restore: restore })
    }

    /// Draws the state.
    ///
    /// # Errors
    ///
    /// Those of the terminal.
    pub fn draw(&mut self, top: &mut Top) -> io::Result<()> {
        // A thread that panicked has restored the terminal, and the end is near.
        if !IS_ENTERED.load(Ordering::SeqCst) {
            return Ok(());
        }
        self.terminal.draw(|frame| draw(frame, top)).map(drop)
    }
}

/// Undoes what [`Screen::enter`] did. A terminal that is gone needs nothing.
fn restore() {
    if !IS_ENTERED.swap(false, Ordering::SeqCst) {
        return;
    }
    let _ = execute!(stdout(), LeaveAlternateScreen, Show);
    let _ = disable_raw_mode();
}
