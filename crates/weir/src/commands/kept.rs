//! Differences between a data folder and the layout: changes made on a running server, and volumes
//! that the layout does not name.

use std::path::Path;
use weir_layout::Layout;
use weir_report::status::Status;
use weir_store::{DataDir, ListedVolume, Meta};
use weir_units::Bytes;

/// A volume of the layout.
pub(crate) struct Declared {
    name: String,
    size: Bytes,
    cache: &'static str,
}

impl Declared {
    pub(crate) fn name(&self) -> &str {
        &self.name
    }
}

/// Lists the volumes of a layout.
pub(crate) fn declared(layout: &Layout) -> Vec<Declared> {
    let volumes = layout.hosts.iter().flat_map(|host| &host.volumes);
    let one = |volume: &weir_layout::Volume| Declared {
        name: volume.name.clone(),
        size: volume.spec.size,
        cache: volume.spec.cache.name(),
    };
    volumes.map(one).collect()
}

/// Writes a line for each volume in the folder that the layout does not name. The server reports
/// defects of the folder.
pub(crate) fn unnamed(data: &Path, layout: &Path, declared: &[Declared]) -> Vec<String> {
    if !data.join("format").exists() {
        return Vec::new();
    }
    let listed = DataDir::open(data, "weir serve").and_then(|dir| dir.list());
    // A volume created on a running server is served even if the layout does not name it.
    let made = |meta: &Meta| meta.attributes.contains_key(weir_server::MADE);
    let is_left = |volume: &ListedVolume| !volume.meta.as_ref().is_ok_and(made);
    let unnamed = listed.unwrap_or_default().into_iter().filter(is_left).map(|volume| volume.name);
    unnamed
        .filter(|name| declared.iter().all(|volume| volume.name != *name))
        .map(|name| {
            format!(
                "{name}: {} has data for it, but {} does not name it, so the data is kept and not \
                 served; restore the old name of the volume, or remove {}",
                data.display(),
                layout.display(),
                data.join("volumes").join(&name).display()
            )
        })
        .collect()
}

/// Writes a line for each volume that was changed on a running server and keeps the change.
pub(crate) fn overrides(status: &Status, layout: &Path, declared: &[Declared]) -> Vec<String> {
    let mut lines = Vec::new();
    let layout = layout.display();
    for volume in status.hosts.iter().flat_map(|host| &host.volumes) {
        let Some(Declared { name, size, cache }) = declared.iter().find(|d| d.name == volume.name)
        else {
            continue;
        };
        let now = Bytes::new(volume.size_bytes);
        // The layout need not say the size of a backend.
        if now != *size && volume.backend.is_none() {
            let (now, size) = (now.exact(), size.exact());
            lines.push(format!(
                "{name}: has {now} since a resize, but {layout} says {size}; write {now} there, or \
                 undo the resize with weir volume resize {name} {}",
                size.to_string().replace(' ', "")
            ));
        }
        if volume.cache != *cache {
            lines.push(format!(
                "{name}: has cache {} since a change, but {layout} says {cache}; write {} there, \
                 or undo the change with weir volume set-cache {name} {cache}",
                volume.cache, volume.cache
            ));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_report::status::{HostStatus, VolumeStatus};

    /// Advises on a volume of `now` bytes with the size `size` in the layout.
    fn advised(now: u64, size: u64) -> String {
        let volume = VolumeStatus {
            name: "v".into(),
            size_bytes: now,
            cache: "none".into(),
            ..VolumeStatus::default()
        };
        let host = HostStatus { volumes: vec![volume], ..HostStatus::default() };
        let status = Status { hosts: vec![host], ..Status::default() };
        let declared = Declared { name: "v".into(), size: Bytes::new(size), cache: "none" };
        overrides(&status, Path::new("l.toml"), &[declared]).concat()
    }

    #[test]
    fn the_sizes_in_the_advice_are_what_they_read_back_as() {
        let (now, size) = ((2 << 40) + (64 << 20), 12_345_678);
        let line = advised(now, size);
        assert_eq!(
            line,
            "v: has 2097216 MiB since a resize, but l.toml says 12345678 B; write 2097216 MiB \
             there, or undo the resize with weir volume resize v 12345678B"
        );
        let typed = |from: &str, to: &str| {
            let text = line.split(from).nth(1).and_then(|rest| rest.split(to).next());
            text.and_then(|text| text.parse::<Bytes>().ok()).map(Bytes::get)
        };
        assert_eq!(typed("write ", " there"), Some(now));
        assert_eq!(typed("resize v ", "\n"), Some(size));
    }
}
