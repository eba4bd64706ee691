//! The places of a layout as a server has them: where each is reached, and what its
//! engines say of it.

use super::{Held, ServedFile};
use std::collections::BTreeMap;
use std::str::FromStr;
use weir_layout::files::Place;
use weir_layout::{Export, Layout};
use weir_proto::Uri;
use weir_report::status::{Refused, Status};

fn export_of<'a>(layout: &'a Layout, place: &Place) -> Option<&'a Export> {
    layout.hosts[place.host].exports.iter().find(|export| export.device == place.device)
}

/// What databases can lie on, in the order of [`Layout::places`]; `uris` and `refused` are
/// what the server says.
#[must_use]
pub fn served_files(
    layout: &Layout,
    uris: &BTreeMap<String, Vec<String>>,
    refused: &[Refused],
) -> Vec<ServedFile> {
    let served = |place: Place| {
        let export = export_of(layout, &place).map(|export| export.name.as_str());
        let export = export.unwrap_or(&place.name);
        let uri = uris.get(export).and_then(|uris| uris.first());
        let uri = match uri.map(|uri| Uri::from_str(uri)) {
            Some(Ok(uri)) => Ok(uri),
            Some(Err(error)) => Err(error.to_string()),
            None => {
                let refused = refused.iter().find(|refused| refused.name == export);
                Err(refused.map_or("it has no address", |refused| &refused.reason).to_owned())
            }
        };
        ServedFile { name: place.name, size: place.size, base: place.base, uri }
    };
    layout.places().into_iter().map(served).collect()
}

/// What the engines have counted of each place.
#[must_use]
pub fn held(layout: &Layout, status: &Status) -> Vec<Held> {
    let places = layout.places();
    let of_place = |place: &Place| {
        let export = export_of(layout, place);
        let volumes = export.map(|export| export.volumes.as_slice()).unwrap_or_default();
        let beside = |other: &&Place| (other.host, other.device) == (place.host, place.device);
        let is_shared = volumes.len() > 1 || places.iter().filter(beside).count() > 1;
        let mut held = Held { is_shared, ..Held::default() };
        let counted = status.hosts.get(place.host).map(|host| &host.volumes);
        for volume in volumes.iter().filter_map(|id| counted?.get(id.0)) {
            held.medium_ns += volume.medium_ns;
            for (cap, ns) in &volume.waits_ns {
                *held.waits_ns.entry(cap.clone()).or_default() += ns;
            }
        }
        held
    };
    places.iter().map(of_place).collect()
}
