//! A pseudo terminal in which the real `weir` runs.

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Termios, Winsize, tcgetattr, tcsetwinsize};
use std::fs::File;
use std::io::{Read, Write};
use std::num::NonZeroU16;
use std::os::fd::OwnedFd;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// Far longer than anything that is waited for takes.
const PATIENCE: Duration = Duration::from_secs(120);

/// A program in a terminal of its own; killed if it is dropped.
pub(crate) struct InTerminal {
    child: Child,
    /// The end of the terminal that a person would see.
    outer: File,
    /// The end of the program; kept, so that the terminal outlives it.
    inner: OwnedFd,
    before: Termios,
    output: Receiver<Vec<u8>>,
    screen: vt100::Parser,
}

fn size((columns, rows): (u16, u16)) -> Winsize {
    Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }
}

fn some(cells: u16) -> NonZeroU16 {
    NonZeroU16::new(cells).expect("a terminal has cells")
}

impl InTerminal {
    /// Starts a program in a terminal of this many columns and rows. It needs `setsid`, which makes
    /// the terminal that of the program, whatever terminal the tests run in.
    pub(crate) fn start(program: &Command, (columns, rows): (u16, u16)) -> Self {
        let outer = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
        grantpt(&outer).and_then(|()| unlockpt(&outer)).expect("a terminal");
        let name = ptsname(&outer, Vec::new()).expect("a name");
        let flags = OFlags::RDWR | OFlags::NOCTTY;
        let inner = rustix::fs::open(&name, flags, Mode::empty()).expect("the other end");
        tcsetwinsize(&inner, size((columns, rows))).expect("a size");
        let before = tcgetattr(&inner).expect("settings");
        let end = || Stdio::from(inner.try_clone().expect("an end"));
        let mut command = Command::new("setsid");
        command.arg("--ctty").arg(program.get_program()).args(program.get_args());
        command.envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.current_dir(program.get_current_dir().expect("a folder"));
        command.env("TERM", "xterm-256color").env_remove("NO_COLOR");
        command.stdin(end()).stdout(end()).stderr(end());
        let child = command.spawn().expect("a program");
        let outer = File::from(outer);
        let mut reader = outer.try_clone().expect("an end");
        let (send, output) = channel();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(len @ 1..) = reader.read(&mut bytes) {
                if send.send(bytes[..len].to_vec()).is_err() {
                    return;
                }
            }
        });
        let screen = vt100::Parser::new(some(rows), some(columns), 0);
        Self { child, outer, inner, before, output, screen }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Presses keys: characters, or the sequence that a terminal sends for a key.
    pub(crate) fn press(&mut self, keys: &str) {
        self.outer.write_all(keys.as_bytes()).expect("it reads keys");
    }

    pub(crate) fn resize(&mut self, columns: u16, rows: u16) {
        self.screen.screen_mut().set_size(some(rows), some(columns));
        tcsetwinsize(&self.outer, size((columns, rows))).expect("a size");
    }

    /// Waits until the screen is as it should be.
    #[track_caller]
    pub(crate) fn wait_for(&mut self, words: &str) {
        loop {
            let shown = self.screen.screen().contents();
            if shown.contains(words) {
                return;
            }
            let more = self.output.recv_timeout(PATIENCE);
            let more = more.unwrap_or_else(|_| panic!("{words:?} is not shown:\n{shown}"));
            self.screen.process(&more);
        }
    }

    /// Returns the line of the screen that starts with these words.
    pub(crate) fn line(&self, start: &str) -> Option<String> {
        let shown = self.screen.screen().contents();
        shown.lines().find(|line| line.starts_with(start)).map(str::to_owned)
    }

    /// Waits until the program ends, and checks that it left the terminal as it was. Returns how it
    /// ended and the text on the screen.
    #[track_caller]
    pub(crate) fn end(mut self) -> (ExitStatus, String) {
        let status = self.child.wait().expect("an end");
        // What it has written before is read before this mark.
        File::from(self.inner.try_clone().expect("an end"))
            .write_all(b"<end>")
            .expect("a terminal");
        self.wait_for("<end>");
        let after = tcgetattr(&self.inner).expect("settings");
        assert_eq!(format!("{after:?}"), format!("{:?}", self.before));
        let screen = self.screen.screen();
        assert!(!screen.alternate_screen() && !screen.hide_cursor());
        (status, screen.contents().replace("<end>", ""))
    }
}

impl Drop for InTerminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
