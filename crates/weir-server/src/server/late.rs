//! Volumes whose backends were away at the start: each is tried again, and served once its backend is
//! there.
//!
//! Such a volume has a place on its host without bytes. The volume that is served then is another one
//! of the same name, added as one that is created, since its size may be known only now.

use super::shared::{Shared, gone};
use crate::backing::Backing;
use crate::error::ServerError;
use crate::listener::Served;
use crate::mailbox::{Adding, Message, Removing};
use crate::notice::{Listening, Notice};
use crate::starting::describe;
use crate::volume::VolumeData;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;
use weir_core::VolumeId;
use weir_layout::Backend;
use weir_layout::error::Kind;
use weir_layout::hot_plug::Coming;
use weir_report::status::Refused;

/// The time between two attempts, and the steps in which the end of the server is noticed.
const WAIT: Duration = Duration::from_secs(2);
const STEP: Duration = Duration::from_millis(50);

/// A volume whose backend could not be opened. It is no column of a stripe.
#[derive(Debug)]
pub(crate) struct Late {
    pub(crate) host: String,
    pub(crate) id: VolumeId,
    pub(crate) name: String,
    pub(crate) backend: Backend,
}

impl Late {
    /// Returns the entry for people.
    fn refused(&self, error: &ServerError) -> Refused {
        let reason = match is_worth_retrying(error) {
            true => format!("{error}; Weir tries again every {} s", WAIT.as_secs()),
            false => error.to_string(),
        };
        Refused::new(self.name.clone(), &reason, false)
    }
}

/// Returns whether a later attempt may succeed: the NBD server may come up, or its export be enlarged.
pub(crate) fn is_worth_retrying(error: &ServerError) -> bool {
    match error {
        ServerError::Backend { .. } => true,
        // The engine refuses the volume, whatever the size of its export.
        ServerError::Layout(Kind::Spec(_)) => false,
        ServerError::Layout(_) => true,
        _ => false,
    }
}

/// Says that volumes left out at the start are tried again.
pub(super) fn promise(refused: &mut [Refused], late: &[Late]) {
    for own in refused.iter_mut().filter(|own| late.iter().any(|late| late.name == own.name)) {
        own.reason += &format!("; Weir tries again every {} s", WAIT.as_secs());
    }
}

/// Tries again until all are served, cannot be served, or the server stops.
fn run(shared: &Shared, mut late: Vec<Late>, notices: &Listening, stop: &Arc<AtomicBool>) {
    while !late.is_empty() {
        for _ in 0..WAIT.as_millis() / STEP.as_millis() {
            thread::park_timeout(STEP);
            if stop.load(Ordering::Acquire) {
                return;
            }
        }
        late.retain(|own| match shared.serve_late(own, notices, stop) {
            Ok(()) => false,
            Err(error) => {
                let mut refused = shared.refused();
                if let Some(entry) = refused.iter_mut().find(|entry| entry.name == own.name) {
                    *entry = own.refused(&error);
                }
                is_worth_retrying(&error)
            }
        });
    }
}

impl Shared {
    /// Opens the backend of a volume, and serves the volume.
    fn serve_late(
        &self,
        late: &Late,
        notices: &Listening,
        stop: &Arc<AtomicBool>,
    ) -> Result<(), ServerError> {
        if stop.load(Ordering::Acquire) {
            return Err(gone());
        }
        let (at, layout, mailbox) = {
            let hosts = self.hosts();
            let at = self.host_of(&hosts, Some(&late.host))?;
            (at, hosts[at].layout.clone(), hosts[at].mailbox.clone())
        };
        let mut volume = layout.volumes[late.id.0].clone();
        let backing = Backing::open(&late.name, &late.backend, notices, stop, |size| {
            let over = layout.over_backend(late.id, size, self.edition.as_ref());
            volume = over.map_err(ServerError::Layout)?;
            Ok(volume.spec.size)
        })?;
        let _alone = self.one_at_a_time();
        if stop.load(Ordering::Acquire) {
            return Err(gone());
        }
        let (told, heard) = channel();
        let (name, spec) = (late.name.clone(), volume.spec.clone());
        let data = VolumeData::on_backend(backing.store());
        mailbox.send(Message::Add(Box::new(Adding { name, spec, data, told })));
        let (id, device) = heard.recv().map_err(|_| gone()).and_then(|added| added)?;
        self.drop_place(at, late)?;
        let description = {
            let state = &mut self.hosts()[at];
            state.layout.take_in(&Coming::on_backend(volume), id, device);
            state.backings.insert(id.0, backing);
            match state.stored.get_mut(id.0) {
                Some(place) => *place = None,
                None => state.stored.push(None),
            }
            let own = state.layout.exports.iter().find(|export| export.device == device);
            own.map(|export| describe(&state.layout, export)).unwrap_or_default()
        };
        let (name, host) = (late.name.clone(), mailbox);
        let clients = self.directory.clients_of(&name);
        let (seat, view) = (None, None);
        self.directory.add(Served { name, description, device, host, seat, view, clients });
        self.refused().retain(|refused| refused.name != late.name);
        self.changes.fetch_add(1, Ordering::Release);
        let (volume, address) = (late.name.clone(), late.backend.to_string());
        notices.tell(Notice::BackendThere { volume, address });
        Ok(())
    }

    /// Removes the place without bytes.
    fn drop_place(&self, at: usize, late: &Late) -> Result<(), ServerError> {
        let (device, mailbox) = {
            let hosts = self.hosts();
            let mut exports = hosts[at].layout.exports.iter();
            let device = exports.find(|own| own.volumes == [late.id]).map(|own| own.device);
            (device.ok_or_else(gone)?, hosts[at].mailbox.clone())
        };
        let (told, heard) = channel();
        mailbox.send(Message::Remove(Removing { volume: late.id, device, if_unused: false, told }));
        heard.recv().map_err(|_| gone())?;
        self.hosts()[at].layout.let_go(late.id);
        Ok(())
    }
}

/// Starts the thread that tries again, if there is something to try.
pub(super) fn start(
    shared: &Arc<Shared>,
    late: Vec<Late>,
    notices: &Listening,
    stop: &Arc<AtomicBool>,
) -> Result<Option<thread::JoinHandle<()>>, ServerError> {
    if late.is_empty() {
        return Ok(None);
    }
    let (shared, stop, notices) = (Arc::clone(shared), Arc::clone(stop), notices.clone());
    thread::Builder::new()
        .name("weir-late".to_owned())
        .spawn(move || run(&shared, late, &notices, &stop))
        .map(Some)
        .map_err(ServerError::system("starting the thread that tries backends again"))
}
