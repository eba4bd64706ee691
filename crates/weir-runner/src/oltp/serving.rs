//! The places of a layout as a server has them.

use std::collections::BTreeMap;
use std::str::FromStr;
use weir_layout::files::Place;
use weir_layout::{Layout, Role};
use weir_oltp::FileAbout;
use weir_oltp::model::Growth;
use weir_proto::Uri;
use weir_report::status::Refused;
use weir_units::Bytes;

/// A file, volume or stripe as it is served.
#[derive(Debug, Clone)]
pub struct ServedFile {
    /// The file in the layout.
    pub place: Place,
    /// Its present size.
    pub size: Bytes,
    /// The file is a volume, which grows with it.
    pub is_volume: bool,
    /// The export, or the reason why it is not served.
    pub uri: Result<Uri, String>,
}

impl ServedFile {
    pub(super) fn about(&self) -> FileAbout<'_> {
        let Place { name, size, used, role, database, .. } = &self.place;
        let growth = self.place.growth.map(|growth| Growth { by: growth.by, most: growth.most });
        let (role, database) = (role.map(Role::name), database.as_deref());
        FileAbout { name, size: *size, used: *used, growth, role, database }
    }
}

/// Returns the files that databases can use, in the order of [`Layout::places`]; `uris` and
/// `refused` come from the server.
#[must_use]
pub fn served_files(
    layout: &Layout,
    uris: &BTreeMap<String, Vec<String>>,
    refused: &[Refused],
) -> Vec<ServedFile> {
    let served = |place: Place| {
        let host = &layout.hosts[place.host];
        let export = host.exports.iter().find(|export| export.device == place.device);
        let export = export.map_or(&place.name, |export| &export.name);
        let uri = uris.get(export).and_then(|uris| uris.first());
        let uri = match uri.map(|uri| Uri::from_str(uri)) {
            Some(Ok(uri)) => Ok(uri),
            Some(Err(error)) => Err(error.to_string()),
            None => {
                let refused = refused.iter().find(|refused| refused.name == *export);
                Err(refused.map_or("it has no address", |refused| &refused.reason).to_owned())
            }
        };
        ServedFile { is_volume: host.instance.is_some(), size: place.size, uri, place }
    };
    layout.places().into_iter().map(served).collect()
}
