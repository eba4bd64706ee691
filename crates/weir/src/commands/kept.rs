//! Where a data folder does not say what the layout says: changes that were made while
//! it was served, and volumes that the layout does not name.

use super::cache_name;
use std::path::Path;
use weir_layout::Layout;
use weir_report::status::Status;
use weir_store::DataDir;
use weir_units::Bytes;

/// A volume as the layout has it.
pub(crate) struct Declared {
    name: String,
    size: Bytes,
    cache: &'static str,
}

/// The volumes of a layout.
pub(crate) fn declared(layout: &Layout) -> Vec<Declared> {
    let volumes = layout.hosts.iter().flat_map(|host| &host.volumes);
    let one = |volume: &weir_layout::Volume| Declared {
        name: volume.name.clone(),
        size: volume.spec.size,
        cache: cache_name(volume.spec.cache),
    };
    volumes.map(one).collect()
}

/// A line for each volume in the folder that the layout does not name. Whatever is
/// wrong with the folder is the server's to say.
pub(crate) fn unnamed(data: &Path, layout: &Path, declared: &[Declared]) -> Vec<String> {
    if !data.join("format").exists() {
        return Vec::new();
    }
    let listed = DataDir::open(data, "weir serve").and_then(|dir| dir.list());
    let unnamed = listed.unwrap_or_default().into_iter().map(|volume| volume.name);
    unnamed
        .filter(|name| declared.iter().all(|volume| volume.name != *name))
        .map(|name| {
            format!(
                "{name}: {} has data of it and {} does not name it, so it is kept and not served; \
                 give the volume its old name back, or remove {}",
                data.display(),
                layout.display(),
                data.join("volumes").join(&name).display()
            )
        })
        .collect()
}

/// A line for each volume that was changed while it was served, and stays so.
pub(crate) fn overrides(status: &Status, layout: &Path, declared: &[Declared]) -> Vec<String> {
    let mut lines = Vec::new();
    let layout = layout.display();
    for volume in status.hosts.iter().flat_map(|host| &host.volumes) {
        let Some(Declared { name, size, cache }) = declared.iter().find(|d| d.name == volume.name)
        else {
            continue;
        };
        let now = Bytes::new(volume.size_bytes);
        if now != *size {
            lines.push(format!(
                "{name}: has {now} since it was resized, {layout} says {size}; write {now} there, \
                 or go back with weir volume resize {name} {}",
                size.to_string().replace(' ', "")
            ));
        }
        if volume.cache != *cache {
            lines.push(format!(
                "{name}: has cache {} since that was set, {layout} says {cache}; write {} there, or \
                 go back with weir volume set-cache {name} {cache}",
                volume.cache, volume.cache
            ));
        }
    }
    lines
}
