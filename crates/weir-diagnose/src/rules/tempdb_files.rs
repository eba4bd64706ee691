//! The data files of tempdb, compared with the recommended ones.

use crate::case::{Case, size};
use crate::system::Host;
use weir_layout::Role;
use weir_observe::attribute;
use weir_report::number::float;

/// The data files of tempdb.
#[derive(Debug, Clone, Default)]
pub(super) struct Tempdb {
    /// Number of files.
    pub(super) files: usize,
    /// The smallest and the largest, if all say it.
    pub(super) sizes: Option<(u64, u64)>,
    /// Recommended number of files.
    pub(super) wanted: usize,
    /// Processors, if that is known.
    pub(super) processors: Option<u64>,
}

/// Maximum recommended number of tempdb files, however many processors there are (KB 2154845, which
/// article 002 follows).
const FILES: u64 = 8;

/// Files of one size differ by less: the larger ones get more of the allocations.
const EQUAL: f64 = 0.1;

impl Tempdb {
    pub(super) fn observed(case: &Case<'_>) -> Self {
        let is_log = |name: &str| {
            let name = name.to_ascii_lowercase();
            name.contains("log") || name.ends_with(".ldf")
        };
        let files: Vec<_> = case
            .system
            .files
            .iter()
            .filter(|file| file.is(Role::Tempdb) && !is_log(&file.name))
            .collect();
        let sizes: Option<Vec<u64>> = files.iter().map(|file| file.size).collect();
        let sizes = sizes.and_then(|sizes| Some((*sizes.iter().min()?, *sizes.iter().max()?)));
        let processors = processors(case);
        // Contention needs two processors. An unknown number counts as two.
        let wanted = processors.unwrap_or(2).clamp(1, FILES);
        let wanted = usize::try_from(wanted).unwrap_or(1);
        Self { files: files.len(), sizes, wanted, processors }
    }

    /// Returns the misconfiguration in words, if there is one.
    pub(super) fn fault(&self) -> Option<String> {
        if self.files == 0 {
            return None;
        }
        if self.files < self.wanted {
            let of = self.processors.map_or(String::new(), |n| format!(" for {n} processors"));
            let files = if self.files == 1 { "file" } else { "files" };
            return Some(format!("tempdb has {} data {files}{of}", self.files));
        }
        let (least, most) = self.sizes?;
        (float(least) < (1.0 - EQUAL) * float(most)).then(|| {
            format!("the data files of tempdb differ in size: {} to {}", size(least), size(most))
        })
    }
}

/// Returns the number of processors, if known.
fn processors(case: &Case<'_>) -> Option<u64> {
    let of_host = |host: &Host| {
        let instance = host.instance.map(|instance| instance.vcores).filter(|n| *n > 0);
        let size = || {
            let size = case.edition?.host(host.qualified_size.as_deref()?).ok()?;
            size.vcpus.map(u64::from)
        };
        let said = || case.contents.entity(host.entity?)?.number(attribute::VCORES);
        instance.or_else(size).or_else(said)
    };
    case.system.hosts.iter().find_map(of_host)
}
