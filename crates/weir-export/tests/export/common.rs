//! Layouts and the scripts that are made of them.

use weir_catalog::Catalog;
use weir_export::{Export, ExportError, Kind, Options, Source, export};
use weir_layout::Layout;

/// A machine with a log disk, a local disk, a stripe, and a database on them.
pub(crate) const MACHINE: &str = r#"
edition = "azure-now"
[host]
size = "D16s_v3"
[[volume]]
name = "log"
tier = "P20"
[[volume]]
name = "scratch"
place = "local"
[[stripe]]
name = "pool"
unit = "64 KiB"
volumes = { count = 4, tier = "P30", cache = "read-only" }
[[file]]
name = "data-1"
database = "sales"
role = "data"
size = "500 GiB"
growth = "10 GiB"
max_size = "1 TiB"
on = "pool"
[[file]]
name = "data-2"
database = "sales"
role = "data"
size = "500 GiB"
growth = "10 GiB"
on = "pool"
[[file]]
name = "sales-log"
database = "sales"
role = "log"
size = "100 GiB"
on = "log"
[[file]]
name = "tempdev"
role = "tempdb"
size = "20 GiB"
on = "scratch"
"#;

/// An instance with a database of three files.
pub(crate) const INSTANCE: &str = r#"
edition = "azure-mi-2018"
host = { managed_instance = "gp", vcores = 8, storage = "8 TiB" }
file = [
  { name = "data", role = "data", size = "129 GiB" },
  { name = "data-2", role = "data", size = "129 GiB" },
  { name = "log", role = "log", size = "150 GiB" },
]
"#;

pub(crate) fn layout(text: &str) -> Layout {
    Layout::parse("layout.toml", text, &Catalog::builtin()).expect("a layout")
}

/// Returns a script of a layout.
pub(crate) fn script(kind: Kind, text: &str, options: &Options) -> Result<Export, ExportError> {
    let layout = layout(text);
    export(kind, Source { name: "layout.toml", layout: &layout }, None, options)
}

/// Returns a script of changes.
pub(crate) fn changes(
    kind: Kind,
    old: &str,
    new: &str,
    options: &Options,
) -> Result<Export, ExportError> {
    let (old, new) = (layout(old), layout(new));
    let old = Source { name: "old.toml", layout: &old };
    export(kind, Source { name: "layout.toml", layout: &new }, Some(old), options)
}

pub(crate) fn pairs(all: &[(&str, &str)]) -> Vec<(String, String)> {
    all.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// Returns mount points of [`MACHINE`] on Windows.
pub(crate) fn mounts() -> Options {
    let mounts = pairs(&[("pool", r"F:\Data"), ("log", "L:"), ("scratch", r"D:\")]);
    Options { mounts, ..Options::default() }
}

/// Returns the options that `kind` needs for a layout with these mounts.
pub(crate) fn options_for(kind: Kind, layout: &Layout) -> Options {
    let host = &layout.hosts[0];
    let names = host.exports.iter().map(|export| export.name.as_str()).filter(|name: &&str| {
        let on = |file: &&weir_layout::File| {
            file.role != weir_layout::Role::Backup
                && host.export_of(file).is_some_and(|export| export.name == **name)
        };
        host.files.iter().any(|file| on(&file))
    });
    let paths = names.map(|name| (name.to_owned(), format!("/data/{name}")));
    let mounts: Vec<_> = match kind {
        Kind::Tsql if host.instance.is_none() => paths.collect(),
        _ => Vec::new(),
    };
    Options { mounts, ..Options::default() }
}
