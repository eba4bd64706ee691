//! A real system as the one that is tuned: scripts for a person, and the observation afterwards.
//!
//! ```text
//!   observation --> plan --> round-1-az.sh, round-1.toml --> wait for round-1.weirobs --+
//!                    ^                                                                  |
//!                    +------------------------------------------------------------------+
//! ```
//!
//! The folder is the only state. A walk that was ended plans the same rounds again, since simulations
//! have seeds, and goes on at the first observation that is missing.

mod awaited;

use self::awaited::Awaited;
use super::super::needs::{Needed, needed_on};
use super::super::whole_file;
use crate::cli::{ImportArgs, NeedArgs, TuneArgs};
use crate::commands::observe::Source;
use crate::error::CliError;
use crate::input::{read, read_layout_text};
use crate::output;
use crate::signals::Signals;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;
use weir_catalog::Catalog;
use weir_export::{ExportError, Kind, Options, Source as Exported, export};
use weir_layout::Layout;
use weir_observe::sizing::{Roles, Sizer};
use weir_observe::{Contents, EntityKind};
use weir_plan::Need;
use weir_report::tune::TuneEnd;
use weir_tune::rounds::Observed;
use weir_tune::system::Simulated;
use weir_tune::{Bench, Credits, Goal, Load, Rounds, TuneOptions, Tuned, tune_on};

/// The interval at which a wait looks for signals and for the observation.
const TICK: Duration = Duration::from_millis(100);

/// A walk over a real system.
pub(super) struct RealSystem<'a> {
    args: &'a TuneArgs,
    folder: &'a Path,
    catalog: &'a Catalog,
    kinds: Vec<Kind>,
    script: Options,
    signals: Signals,
    rounds: Rounds,
    /// Scripts that undo the rounds, in the order of the rounds.
    undo: Vec<String>,
}

impl<'a> RealSystem<'a> {
    pub(super) fn new(
        args: &'a TuneArgs,
        folder: &'a Path,
        catalog: &'a Catalog,
    ) -> Result<Self, CliError> {
        let mut kinds: Vec<Kind> = Vec::new();
        for kind in args.kinds.iter().map(|own| own.kind()) {
            if kind.is_backup() {
                let words = format!("--as {kind}: writes a backup, which changes no layout");
                return Err(CliError::Refused(words));
            }
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
        Ok(Self {
            args,
            folder,
            catalog,
            kinds,
            script: args.script.options().map_err(CliError::Refused)?,
            signals: Signals::catch()?,
            rounds: Rounds::default(),
            undo: Vec::new(),
        })
    }

    /// Walks until the goal is reached or there is a reason to stop. Returns the record, with the
    /// layout of the last round, and the exit code for a received signal.
    pub(super) fn walk(mut self) -> Result<(Tuned, Option<u8>), CliError> {
        let (mut text, _) = read_layout_text(&self.args.layout, self.catalog)?;
        let mut before = None;
        let mut needs = self.args.need.clone();
        loop {
            let (header, _) = Source::any(&needs.load, &ImportArgs::default())?.survey()?;
            needs.role = self.roles_in(&needs.load, &header.contents)?;
            let (needed, planned) = self.plan(&text, &needs, &header.contents)?;
            let observed = self.observed(&needed.text, before.as_deref(), &needs)?;
            let steps = planned.report.steps.iter();
            let words = steps.map(|own| format!("{} (downtime: {})", own.change, own.downtime));
            let words = words.collect::<Vec<_>>().join("; ");
            let changes = Changes { from: needed.text, to: planned.text, words };
            if !self.rounds.add(planned.report, &observed) {
                text = changes.from;
                break;
            }
            self.write(&changes)?;
            (before, text) = (Some(changes.from), changes.to);
            let path = self.path(".weirobs");
            if !self.wait(&path)? {
                let words = format!(
                    "interrupted while waiting for {}; the same command goes on",
                    path.display()
                );
                self.rounds.end(TuneEnd::Interrupted, words);
                break;
            }
            needs.load = vec![path];
        }
        self.undo.reverse();
        let signalled = self.signals.code();
        Ok((Tuned { text, report: self.rounds.finish(self.undo) }, signalled))
    }

    /// Returns the given roles of the disks that an observation has. A round may replace a disk by
    /// several, so each observation needs a disk for each role, but not all that were named.
    fn roles_in(
        &self,
        observation: &[PathBuf],
        contents: &Contents,
    ) -> Result<Vec<(String, String)>, CliError> {
        let given = &self.args.need.role;
        let said = Roles { said: given.iter().cloned().collect() };
        let Err((missing, known)) = Sizer::new(contents, &said) else { return Ok(given.clone()) };
        let (gone, here): (Vec<_>, Vec<_>) =
            given.iter().cloned().partition(|(name, _)| missing.contains(name));
        match gone.iter().find(|(_, role)| here.iter().all(|(_, own)| own != role)) {
            None => Ok(here),
            Some((name, role)) => Err(CliError::Refused(format!(
                "{}: has no {name}; it has {}; add a --role NAME={role} and run the command again",
                observation
                    .iter()
                    .map(|own| own.display().to_string())
                    .collect::<Vec<_>>()
                    .join(", "),
                known.join(", ")
            ))),
        }
    }

    /// Plans the changes that the load of an observation needs, in simulation.
    fn plan(
        &self,
        text: &str,
        needs: &NeedArgs,
        contents: &Contents,
    ) -> Result<(Needed, Tuned), CliError> {
        let args = self.args;
        let name = args.layout.display().to_string();
        let needed = needed_on((&args.layout, text), needs, None, self.catalog)?;
        let bursts = args.bursts || needed.bursts;
        let bench = Bench {
            catalog: self.catalog,
            load: Load::Needs(vec![needed.need.clone()]),
            seed: args.seed,
            runtime: None,
            credits: if bursts { Credits::Given } else { Credits::Never },
        };
        let simulations = usize::try_from(args.simulations).ok();
        let options = TuneOptions {
            budget: args.budget,
            simulations,
            keeps: true,
            no_downtime: args.no_downtime,
        };
        // The next observation could not tell two files of one disk apart.
        let has_files = contents.entities.iter().any(|own| own.kind == EntityKind::File);
        let mut system = match has_files {
            true => Simulated::new(&bench),
            false => Simulated::without_moves(&bench),
        };
        let text = (name.as_str(), needed.text.as_str());
        let mut tuned = tune_on(&mut system, text, &bench, &Goal::default(), options)?;
        tuned.report.notes.splice(0..0, needed.notes.iter().cloned());
        Ok((needed, tuned))
    }

    /// Returns the rates of an observation of a system with the layout in `text`, and whether it was
    /// throttled, also by the layout `before` the last round.
    fn observed(
        &self,
        text: &str,
        before: Option<&str>,
        needs: &NeedArgs,
    ) -> Result<Observed, CliError> {
        let rates = |text: &str, as_observed: bool| -> Result<Need, CliError> {
            let needs = NeedArgs { as_observed, growth: None, ..needs.clone() };
            Ok(needed_on((&self.args.layout, text), &needs, None, self.catalog)?.need)
        };
        let need = rates(text, true)?;
        let iops = |need: &Need| need.roles.iter().map(|own| own.iops).collect::<Vec<_>>();
        // A throttled system would do more.
        let is_throttled = |text| Ok::<_, CliError>(iops(&rates(text, false)?) != iops(&need));
        Ok(Observed {
            is_held_back: is_throttled(text)?,
            is_held_back_as_before: before.map(is_throttled).transpose()?.unwrap_or(false),
            need,
        })
    }

    /// Returns the path of a file of the present round.
    fn path(&self, end: &str) -> PathBuf {
        self.folder.join(format!("round-{}{end}", self.rounds.count()))
    }

    /// Writes the scripts and the layout of a round, unless they are there. The layout is written
    /// last, so a round with a layout is complete.
    fn write(&mut self, changes: &Changes) -> Result<(), CliError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| CliError::write(&path, source)
        };
        fs::create_dir_all(self.folder).map_err(failed(self.folder))?;
        let layout = self.path(".toml");
        let is_there = layout.exists();
        if is_there && read(&layout, "layout")? != changes.to {
            return Err(CliError::Refused(format!(
                "{}: belongs to another walk: another load, layout or option; give a new folder",
                layout.display()
            )));
        }
        let (forth, back) = self.scripts(changes)?;
        output::talk(&format!("round {}: {}", self.rounds.count(), changes.words));
        for (path, text) in forth.iter().chain(&back) {
            if !path.exists() {
                whole_file::write(path, text.as_bytes()).map_err(failed(path))?;
            } else if !is_there && read(path, "script")? != *text {
                return Err(CliError::Refused(format!(
                    "{}: belongs to another walk, which did not complete this round; give a new folder",
                    path.display()
                )));
            }
        }
        if !is_there {
            whole_file::write(&layout, changes.to.as_bytes()).map_err(failed(&layout))?;
        }
        forth.iter().for_each(|(path, _)| output::talk(&format!("  run: {}", path.display())));
        for (path, _) in &back {
            output::talk(&format!("  to undo: {}", path.display()));
            self.undo.push(path.display().to_string());
        }
        Ok(())
    }

    /// Returns the scripts that make the changes, and those that undo them.
    #[expect(clippy::type_complexity, reason = "two lists of paths with texts")]
    fn scripts(
        &self,
        changes: &Changes,
    ) -> Result<(Vec<(PathBuf, String)>, Vec<(PathBuf, String)>), CliError> {
        let round = self.rounds.count();
        let before = match round {
            1 => self.args.layout.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            n => format!("round-{}.toml", n - 1),
        };
        let after = format!("round-{round}.toml");
        let parse = |name: &str, text: &str| Layout::parse(name, text, self.catalog);
        let (old, new) = (parse(&before, &changes.from)?, parse(&after, &changes.to)?);
        let old = Exported { name: &before, layout: &old };
        let new = Exported { name: &after, layout: &new };
        let (mut forth, mut back) = (Vec::new(), Vec::new());
        let mut nothing = None;
        for kind in &self.kinds {
            let options = self.script.for_one_of(*kind, &self.kinds);
            let script = match export(*kind, new, Some(old), &options) {
                Ok(script) => script,
                Err(error @ ExportError::Nothing { .. }) => {
                    nothing = Some(error);
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            script.notes.iter().for_each(|note| output::talk(&format!("note: {note}")));
            let path = |way: &str| self.path(&format!("{way}-{kind}.{}", kind.extension()));
            forth.push((path(""), script.text));
            match export(*kind, old, Some(new), &options) {
                Ok(script) => back.push((path("-undo"), script.text)),
                Err(error) => {
                    output::talk(&format!("note: no {kind} script undoes round {round}: {error}"));
                }
            }
        }
        match nothing.filter(|_| forth.is_empty()) {
            Some(error) => Err(error.into()),
            None => Ok((forth, back)),
        }
    }

    /// Waits for a complete observation. Returns false after a signal.
    fn wait(&self, path: &Path) -> Result<bool, CliError> {
        let mut awaited = Awaited::new(path);
        if awaited.is_complete()? {
            return Ok(true);
        }
        let shown = path.display();
        output::talk(&format!(
            "  then observe: weir observe --diskstats --for 10m --out {shown}\n\
             waiting for {shown}; Ctrl-C ends, and the same command goes on"
        ));
        loop {
            if self.signals.code().is_some() {
                return Ok(false);
            }
            if !self.folder.is_dir() {
                let words = format!("{}: the folder of the walk is gone", self.folder.display());
                return Err(CliError::Refused(words));
            }
            if awaited.is_complete()? {
                return Ok(true);
            }
            #[expect(clippy::disallowed_methods, reason = "another process writes the file")]
            thread::sleep(TICK);
        }
    }
}

/// The layouts before and after a round.
struct Changes {
    from: String,
    to: String,
    /// The changes and their downtime.
    words: String,
}
