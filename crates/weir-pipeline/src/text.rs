//! Descriptions of backups as text.

use serde::Serialize;
use weir_units::{Bytes, BytesPerSec, Span};

/// The keys of a description.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct DescriptionText {
    /// Files, volumes or stripes to back up.
    pub sources: Vec<String>,
    /// Volumes or stripes to write to.
    pub to: Vec<String>,
    /// Number of stripes.
    pub stripes: u64,
    /// Bytes to back up.
    pub size: Bytes,
    /// Largest transfer.
    pub max_transfer_size: Bytes,
    /// Number of readers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub readers: Option<u64>,
    /// Number of buffers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub buffer_count: Option<u64>,
    /// Maximum rate of reads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<BytesPerSec>,
    /// Time from the start to the first transfer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub setup: Option<Span>,
    /// Compression. It is written last, as a table of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compression: Option<CompressionText>,
}

/// The keys of compression.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CompressionText {
    /// The compressed size as a share of the original.
    pub ratio: f64,
    /// Bytes that one processor compresses per second.
    pub rate: Bytes,
    /// Number of processors that compress in parallel.
    pub threads: u32,
}

#[derive(Serialize)]
struct File<'a> {
    backup: &'a DescriptionText,
}

impl DescriptionText {
    /// Writes the description in TOML.
    ///
    /// # Panics
    ///
    /// Never with counts below 2^63, the largest integer of TOML.
    #[must_use]
    pub fn toml(&self) -> String {
        toml::to_string(&File { backup: self }).expect("counts below 2^63")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Description;

    #[test]
    fn a_written_description_is_valid() {
        let keys = DescriptionText {
            sources: vec!["data \"x\"".to_owned(), "log".to_owned()],
            to: vec!["backup-1".to_owned()],
            stripes: 8,
            size: Bytes::gib(50),
            max_transfer_size: Bytes::mib(1),
            setup: Some(Span::from_secs(2)),
            ..DescriptionText::default()
        };
        let text = keys.toml();
        assert_eq!(
            text,
            "[backup]\nsources = ['data \"x\"', \"log\"]\nto = [\"backup-1\"]\nstripes = 8\n\
             size = \"50 GiB\"\nmax_transfer_size = \"1 MiB\"\nsetup = \"2 s\"\n"
        );
        assert!(Description::recognizes(&text));
        let compression = CompressionText { ratio: 0.4, rate: Bytes::mib(200), threads: 4 };
        let compressed = DescriptionText {
            limit: BytesPerSec::new(100_000_000),
            compression: Some(compression),
            ..keys
        };
        let text = compressed.toml();
        let description = Description::parse("backup.toml", &text).expect("valid");
        assert_eq!(description.limit(), compressed.limit);
        assert!(
            text.ends_with(
                "\n[backup.compression]\nratio = 0.4\nrate = \"200 MiB\"\nthreads = 4\n"
            )
        );
    }
}
