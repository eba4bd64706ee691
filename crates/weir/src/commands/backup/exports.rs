//! Exports by their names: of a server that runs, or of a layout that this process serves.

use crate::error::CliError;
use crate::input::{edition_of, read, read_layout, say_notes};
use crate::output;
use std::collections::BTreeMap;
use std::path::Path;
use tempfile::TempDir;
use weir_backup::place::Place;
use weir_backup::target::spec::PlaceSpec;
use weir_backup::{BackupError, Cancel, Export};
use weir_catalog::Catalog;
use weir_layout::Layout;
use weir_proto::Uri;
use weir_report::status::Status;
use weir_server::control::{Request, ask};
use weir_server::{Address, Listening, Options, Server};

/// The exports of one server.
pub(crate) struct Exports {
    /// The name of the server in messages.
    place: String,
    uris: BTreeMap<String, Vec<String>>,
    own: Option<Own>,
}

/// A server in this process.
pub(crate) struct Own {
    pub(crate) layout: Layout,
    pub(crate) server: Server,
    /// The folder of the socket.
    _folder: TempDir,
}

impl Exports {
    /// Asks a server that runs.
    pub(crate) fn served(control: &Path) -> Result<Self, CliError> {
        let status: Status =
            serde_json::from_value(ask(control, &Request::Status)?).map_err(|error| {
                CliError::Refused(format!("the server runs another release of weir: {error}"))
            })?;
        let exports = status.hosts.into_iter().flat_map(|host| host.exports);
        let uris = exports.map(|export| (export.name, export.uris)).collect();
        Ok(Self { place: format!("the server at {}", control.display()), uris, own: None })
    }

    /// Serves a layout file in this process.
    pub(crate) fn offline(file: &Path, data: &Path, catalog: &Catalog) -> Result<Self, CliError> {
        let layout = read_layout(file, catalog)?;
        say_notes(&layout);
        Self::start(layout, data, catalog, file.display().to_string())
    }

    /// Serves a layout in this process.
    pub(crate) fn start(
        layout: Layout,
        data: &Path,
        catalog: &Catalog,
        place: String,
    ) -> Result<Self, CliError> {
        let folder = tempfile::tempdir().map_err(|source| CliError::System {
            context: "making a folder for a socket",
            source,
        })?;
        let options = Options {
            data: Some(data.to_owned()),
            listen: vec![Address::Unix(folder.path().join("nbd"))],
            control: None,
            notices: Listening::with(|notice| output::talk(&format!("weir: {notice}"))),
            holder: Some("weir restore".to_owned()),
            ..Options::default()
        };
        let server = Server::start(layout.clone(), edition_of(&layout, catalog)?, &options)?;
        let uris = server.uris();
        Ok(Self { place, uris, own: Some(Own { layout, server, _folder: folder }) })
    }

    /// Returns the address of an export.
    pub(crate) fn find(&self, name: &str) -> Result<Uri, BackupError> {
        let refused = |reason: String| Err(BackupError::Refused(reason));
        if let Some(own) = &self.own
            && let Some(left) = own.server.refused().iter().find(|left| left.name == name)
        {
            return refused(format!("{name} is not served: {}", left.reason));
        }
        match self.uris.get(name).map(|uris| uris.first()) {
            Some(Some(uri)) => {
                uri.parse().map_err(|error| BackupError::Refused(format!("{name}: {error}")))
            }
            Some(None) => refused(format!("{} gives {name} no address", self.place)),
            None => {
                let all: Vec<&str> = self.uris.keys().map(String::as_str).collect();
                refused(format!(
                    "{} has no export {name:?}, and there is no folder of that name; it has {}",
                    self.place,
                    all.join(", ")
                ))
            }
        }
    }

    /// Returns the server in this process, if there is one.
    pub(crate) const fn own(&self) -> Option<&Own> {
        self.own.as_ref()
    }

    /// Ends the server in this process, in order.
    pub(crate) fn close(self) -> Result<(), CliError> {
        self.own.map_or(Ok(()), |own| Ok(own.server.stop()?))
    }
}

/// Open places, and the server of those that are exports of it.
pub(crate) type OpenPlaces = (Vec<Box<dyn Place>>, Option<Exports>);

/// Warns of a place that is used in an unsafe way.
pub(crate) fn warn(spec: &PlaceSpec) {
    if let Some(warning) = spec.warning() {
        output::talk(&format!("weir: warning: {warning}"));
    }
}

/// Reads the signature for blob containers, if it is in a file.
pub(crate) fn signature(file: Option<&Path>) -> Result<Option<String>, CliError> {
    file.map(|file| read(file, "signature")).transpose()
}

/// Opens places. `cancel` ends requests to them, `sas` is the file of a signature for containers, and
/// `exports` is asked for when the first of them is the name of an export.
pub(crate) fn open_places(
    places: &[String],
    (cancel, sas): (&Cancel, Option<&Path>),
    exports: impl Fn() -> Result<Exports, CliError>,
) -> Result<OpenPlaces, CliError> {
    let mut found: Option<Exports> = None;
    let (signature, mut is_signed) = (signature(sas)?, false);
    let mut opened = Vec::new();
    for text in places {
        let spec = match PlaceSpec::parse(text)? {
            PlaceSpec::Export(name) => {
                let known = match found.take() {
                    Some(known) => known,
                    None => exports()?,
                };
                let uri = known.find(&name)?;
                found = Some(known);
                PlaceSpec::Volume(Export::new(name, uri))
            }
            other => other,
        };
        is_signed |= matches!(spec, PlaceSpec::Blobs(_));
        let spec = spec.with_sas(signature.as_deref());
        warn(&spec);
        opened.push(spec.with_cancel(cancel).open()?);
    }
    if signature.is_some() && !is_signed {
        return Err(CliError::Refused(
            "--sas-file is for https:// places, and there are none".to_owned(),
        ));
    }
    Ok((opened, found))
}
