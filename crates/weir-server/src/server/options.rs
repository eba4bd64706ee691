//! The options of a server.

use crate::bounds::Bounds;
use crate::listener::Address;
use crate::notice::Listening;
use crate::observer::Observer;
use crate::tls::Tls;
use std::collections::BTreeMap;
use std::path::PathBuf;
use weir_wall::Waiting;

/// Options of a server.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The data directory; without one, volumes are in memory.
    pub data: Option<PathBuf>,
    /// The addresses to listen on; [`Address::default`] if empty.
    pub listen: Vec<Address>,
    /// TLS, which clients over TCP have to use then.
    pub tls: Option<Tls>,
    /// The control socket; none if not given.
    pub control: Option<PathBuf>,
    /// The receiver of notices.
    pub notices: Listening,
    /// The receiver of each request's waits.
    pub observer: Observer,
    /// The holder of the data directory in messages of other processes; `weir serve at ADDRESS`
    /// if not given.
    pub holder: Option<String>,
    /// True if it may start without volumes, because they come later.
    pub may_be_empty: bool,
    /// True if no exports are served; `listen` is ignored then.
    pub no_exports: bool,
    /// New files for the changes of volumes, by their names, see [`weir_store::write_log`].
    pub write_logs: BTreeMap<String, PathBuf>,
    /// How the hosts' threads wait for deadlines.
    pub waiting: Waiting,
    /// The most that clients can take from the server.
    pub bounds: Bounds,
}
