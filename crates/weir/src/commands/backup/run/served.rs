//! The server whose exports are backed up: one that runs, or one in this process.

use crate::error::CliError;
use crate::input::{edition_of, read_layout, say_notes};
use crate::output;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tempfile::TempDir;
use weir_backup::BackupError;
use weir_backup::run::{ChangedRanges, Changes, ReadDone};
use weir_catalog::Catalog;
use weir_layout::Layout;
use weir_proto::Uri;
use weir_report::status::{ExportStatus, Status};
use weir_server::control::{
    ChangedAnswer, Conversation, FreezeAnswer, Purpose, ReleaseAnswer, Request,
};
use weir_server::{Address, Listening, Options, Server};

/// A conversation that the threads of a backup share.
pub(super) type Shared = Arc<Mutex<Conversation>>;

/// A server that is asked through its control socket.
#[derive(Debug)]
pub(super) struct Served {
    conversation: Shared,
    /// Its counters when the backup began.
    pub(super) before: Status,
    /// The server in this process, with the folder of its sockets.
    own: Option<(Server, TempDir)>,
}

impl Served {
    /// Serves a layout's data in this process.
    pub(super) fn start(
        layout: &Path,
        data: &Path,
        catalog: &Catalog,
    ) -> Result<(Self, Layout), CliError> {
        if !data.join("format").exists() {
            return Err(CliError::Refused(format!(
                "{}: it holds no data of weir; give the folder that weir serve --data has",
                data.display()
            )));
        }
        let layout = read_layout(layout, catalog)?;
        say_notes(&layout);
        let folder = tempfile::tempdir().map_err(|source| CliError::System {
            context: "making a folder for a socket",
            source,
        })?;
        let control = folder.path().join("control");
        let options = Options {
            data: Some(data.to_owned()),
            listen: vec![Address::Unix(folder.path().join("nbd"))],
            control: Some(control.clone()),
            notices: Listening::with(|notice| output::talk(&format!("weir: {notice}"))),
            holder: Some("weir backup".to_owned()),
            ..Options::default()
        };
        let server = Server::start(layout.clone(), edition_of(&layout, catalog)?, &options)?;
        let served = Self { own: Some((server, folder)), ..Self::connect(&control)? };
        Ok((served, layout))
    }

    /// Connects to a server that runs.
    pub(super) fn connect(control: &Path) -> Result<Self, CliError> {
        let mut conversation = Conversation::open(control)?;
        let before = conversation.ask_for(&Request::Status)?;
        Ok(Self { conversation: Arc::new(Mutex::new(conversation)), before, own: None })
    }

    pub(super) fn conversation(&self) -> MutexGuard<'_, Conversation> {
        self.conversation.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a reading of all counters.
    pub(super) fn status(&self) -> Result<Status, CliError> {
        Ok(self.conversation().ask_for(&Request::Status)?)
    }

    pub(super) fn exports(&self) -> impl Iterator<Item = &ExportStatus> {
        self.before.hosts.iter().flat_map(|host| &host.exports)
    }

    /// Returns the address of an export, or says which exports there are.
    pub(super) fn uri(&self, name: &str) -> Result<Uri, BackupError> {
        let Some(export) = self.exports().find(|export| export.name == name) else {
            let refused = self.before.refused.iter().find(|own| own.name == name);
            if let Some(refused) = refused {
                return Err(BackupError::Refused(format!(
                    "{name} is not served: {}",
                    refused.reason
                )));
            }
            let names: Vec<&str> = self.exports().map(|export| export.name.as_str()).collect();
            let near = weir_units::nearest(name, names.iter().copied());
            let near = weir_units::did_you_mean(&near);
            return Err(BackupError::Refused(format!(
                "there is no export {name:?}; there are {}{near}",
                names.join(", ")
            )));
        };
        let Some(uri) = export.uris.first() else {
            return Err(BackupError::Refused(format!("{name} has no NBD address")));
        };
        uri.parse().map_err(|error: weir_proto::ProtoError| BackupError::Failed(error.to_string()))
    }

    /// Freezes exports at one instant.
    pub(super) fn freeze(
        &self,
        exports: Vec<String>,
        purpose: Purpose,
        backup: String,
    ) -> Result<Freeze, CliError> {
        let request = Request::Freeze { exports, purpose, backup };
        let answer: FreezeAnswer = self.conversation().ask_for(&request)?;
        Ok(Freeze { conversation: Arc::clone(&self.conversation), answer, is_released: false })
    }

    /// Ends the server if it is this process's own.
    pub(super) fn stop(self) -> Result<(), CliError> {
        let Self { conversation, own, .. } = self;
        drop(conversation);
        if let Some((server, _folder)) = own {
            server.stop()?;
        }
        Ok(())
    }
}

/// A freeze. It ends when it is dropped.
#[derive(Debug)]
pub(super) struct Freeze {
    conversation: Shared,
    pub(super) answer: FreezeAnswer,
    is_released: bool,
}

impl Freeze {
    /// Returns a reader of the changed ranges of an export.
    pub(super) fn changes(&self, export: &str) -> Box<dyn Changes> {
        Box::new(ServedChanges {
            conversation: Arc::clone(&self.conversation),
            freeze: self.answer.freeze,
            export: export.to_owned(),
        })
    }

    /// Returns what takes in which parts of the view of an export were read.
    pub(super) fn read_done(&self, export: &str) -> Box<dyn ReadDone> {
        Box::new(ServedReadDone {
            conversation: Arc::clone(&self.conversation),
            freeze: self.answer.freeze,
            export: export.to_owned(),
        })
    }

    pub(super) fn release(mut self, completed: bool) -> Result<ReleaseAnswer, CliError> {
        self.is_released = true;
        let request = Request::Release { freeze: self.answer.freeze, completed };
        let mut conversation = self.conversation.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(conversation.ask_for(&request)?)
    }
}

impl Drop for Freeze {
    fn drop(&mut self) {
        if !self.is_released {
            let request = Request::Release { freeze: self.answer.freeze, completed: false };
            let mut conversation = self.conversation.lock().unwrap_or_else(PoisonError::into_inner);
            // The end of the conversation releases it too.
            let _ = conversation.ask(&request);
        }
    }
}

#[derive(Debug)]
struct ServedChanges {
    conversation: Shared,
    freeze: u64,
    export: String,
}

impl Changes for ServedChanges {
    fn changed(&mut self, from: u64) -> Result<ChangedRanges, BackupError> {
        let request = Request::Changed { freeze: self.freeze, export: self.export.clone(), from };
        let mut conversation = self.conversation.lock().unwrap_or_else(PoisonError::into_inner);
        let answer: Result<ChangedAnswer, _> = conversation.ask_for(&request);
        let answer = answer.map_err(|error| BackupError::Failed(error.to_string()))?;
        Ok((answer.ranges, answer.next))
    }
}

#[derive(Debug)]
struct ServedReadDone {
    conversation: Shared,
    freeze: u64,
    export: String,
}

impl ReadDone for ServedReadDone {
    fn read_done(&mut self, range: Range<u64>) -> Result<(), BackupError> {
        let (offset, len) = (range.start, range.end.saturating_sub(range.start));
        let export = self.export.clone();
        let request = Request::ReadDone { freeze: self.freeze, export, offset, len };
        let mut conversation = self.conversation.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = conversation.ask(&request);
        answer.map(|_| ()).map_err(|error| BackupError::Failed(error.to_string()))
    }
}
