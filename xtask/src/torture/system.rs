//! Random layouts.

use super::oracle::{BLOCK, Block};
use crate::error::XtaskError;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use weir_random::Rng;

/// The end of a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// The server gets SIGKILL.
    Kill,
    /// All hosts crash: clients are disconnected, and caches are lost. Then the server is stopped.
    Crash,
    /// The clients end, and the server gets SIGTERM while blocks may still be dirty in its cache.
    Stop,
}

impl End {
    pub(super) fn random(rng: &mut Rng) -> Self {
        match rng.below(10) {
            0 => Self::Stop,
            1 => Self::Crash,
            _ => Self::Kill,
        }
    }
}

/// An export of a layout.
#[derive(Debug, Clone)]
pub(super) struct Export {
    pub(super) name: String,
    /// Blocks that are written; a volume may grow beyond them.
    pub(super) blocks: usize,
    /// Size in bytes, if it can be resized while it is served.
    pub(super) size: Option<u64>,
    pub(super) is_cached: bool,
}

/// A layout with its exports.
#[derive(Debug, Clone)]
pub(super) struct System {
    pub(super) layout: String,
    pub(super) exports: Vec<Export>,
}

impl System {
    /// Makes a system, and writes its layout into a folder.
    pub(super) fn prepare(rng: &mut Rng, folder: &Path) -> Result<Self, XtaskError> {
        let system = Self::random(rng);
        let layout = folder.join("layout.toml");
        fs::write(&layout, &system.layout).map_err(XtaskError::file("writing", &layout))?;
        Ok(system)
    }

    /// Returns the blocks of each export before the first write.
    pub(super) fn unwritten(&self) -> Vec<Vec<Block>> {
        self.exports.iter().map(|own| vec![Block::default(); own.blocks]).collect()
    }

    /// Makes a layout of one to four volumes and stripes in all cache modes. Limits are high or low,
    /// and dirty blocks stay in the cache for up to 200 ms.
    fn random(rng: &mut Rng) -> Self {
        let (dirty, after) = (64 << rng.below(6), rng.within(1, 200));
        let mut layout = format!(
            "[host]\nunlimited = true\ncache = {{ size = \"64 MiB\", dirty_limit = \"{dirty} KiB\", \
             writeback_after = \"{after}ms\" }}\n"
        );
        let mut exports = Vec::new();
        for at in 0..rng.within(1, 4) {
            let mode = *rng.one(&["none", "read-only", "read-write", "read-write"]);
            let limits = match rng.below(3) {
                0 => format!("limits = {{ iops = {} }}", 500 << rng.below(6)),
                _ => "unlimited = true".to_owned(),
            };
            let columns = if rng.chance(30) { rng.within(2, 4) } else { 1 };
            let each = 256 << rng.below(4);
            let bytes = columns * (each << 10);
            let blocks = usize::try_from(bytes / BLOCK).unwrap_or(0);
            let name = format!("export-{at}");
            let _ = if columns == 1 {
                write!(
                    layout,
                    "[[volume]]\nname = \"{name}\"\n{limits}\nsize = \"{each} KiB\"\ncache = \"{mode}\"\n"
                )
            } else {
                let unit = 4 << rng.below(5);
                write!(
                    layout,
                    "[[stripe]]\nname = \"{name}\"\nunit = \"{unit} KiB\"\nvolumes = {{ count = {columns}, \
                     {limits}, size = \"{each} KiB\", cache = \"{mode}\" }}\n"
                )
            };
            let size = (columns == 1).then_some(bytes);
            exports.push(Export { name, blocks, size, is_cached: mode != "none" });
        }
        Self { layout, exports }
    }

    /// Describes the system in a few words.
    pub(super) fn words(&self) -> String {
        let cached = self.exports.iter().filter(|own| own.is_cached).count();
        let stripes = self.exports.iter().filter(|own| own.size.is_none()).count();
        format!("{} exports, {stripes} striped, {cached} cached", self.exports.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_catalog::Catalog;
    use weir_layout::Layout;

    #[test]
    fn random_layouts_are_valid_and_differ() {
        let catalog = Catalog::builtin();
        let mut all = std::collections::BTreeSet::new();
        for seed in 0..200 {
            let system = System::random(&mut Rng::new(&[seed]));
            let layout = Layout::parse("layout.toml", &system.layout, &catalog);
            let layout = layout.unwrap_or_else(|error| panic!("{error}\n{}", system.layout));
            let mut names: Vec<&str> =
                layout.hosts[0].exports.iter().map(|own| own.name.as_str()).collect();
            let mut expect: Vec<&str> =
                system.exports.iter().map(|own| own.name.as_str()).collect();
            expect.sort_unstable();
            names.sort_unstable();
            assert_eq!(names, expect);
            all.insert(system.layout);
        }
        assert!(all.len() > 190, "{}", all.len());
    }
}
