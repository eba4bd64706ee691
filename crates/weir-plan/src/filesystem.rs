//! The room that a file system takes from its disks.
//!
//! | file system | overhead | source |
//! |---|--:|---|
//! | ext4 | 6.7 % | `mke2fs(8)`: one inode of 256 bytes for each 16 KiB is 1.6 %, journal and group tables the rest of 1.7 %; 5 % are reserved for root (`-m`) |
//! | XFS | 2 % | Oracle Linux blog "XFS: empty filesystem usage": 2 % of an empty file system from 100 GB on with finobt, reflink and rmapbt, the defaults of current xfsprogs; without rmapbt 0.7 % |
//! | NTFS | 1 % | Microsoft, "How NTFS reserves space for its Master File Table": files may use the MFT zone (12.5 %) once all else is full, so only metadata counts. Of that, the bitmap takes 1 bit for each cluster, the log 64 MiB and the MFT 1 KiB for each file: for a few large files less than 1 % from 8 GiB on |

use crate::share::WHOLE;
use serde::Deserialize;
use std::str::FromStr;
use weir_layout::file;
use weir_units::Bytes;

/// The file system that disks are sized for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FileSystem {
    /// None: a size is that of the disks.
    #[default]
    None,
    /// ext4 with the reserve for root.
    Ext4,
    /// XFS.
    Xfs,
    /// NTFS.
    Ntfs,
}

impl FileSystem {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Ext4, Self::Xfs, Self::Ntfs, Self::None];

    /// Returns the name that need files and options use.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Ext4 => "ext4",
            Self::Xfs => "xfs",
            Self::Ntfs => "ntfs",
        }
    }

    /// Returns the file system of a layout.
    #[must_use]
    pub fn from_layout(own: file::FileSystem) -> Self {
        match own {
            file::FileSystem::Ext4 => Self::Ext4,
            file::FileSystem::Xfs => Self::Xfs,
            file::FileSystem::Ntfs => Self::Ntfs,
        }
    }

    /// Returns the key of a layout's host that states it.
    pub(crate) fn key(self) -> Option<file::FileSystem> {
        match self {
            Self::None => None,
            Self::Ext4 => Some(file::FileSystem::Ext4),
            Self::Xfs => Some(file::FileSystem::Xfs),
            Self::Ntfs => Some(file::FileSystem::Ntfs),
        }
    }

    /// Returns the part of a disk that files cannot use, in millionths.
    #[must_use]
    pub fn overhead(self) -> u64 {
        match self {
            Self::None => 0,
            Self::Ext4 => 67_000,
            Self::Xfs => 20_000,
            Self::Ntfs => 10_000,
        }
    }

    /// Returns the room on disks that files of `size` need.
    #[must_use]
    pub fn room_for(self, size: Bytes) -> Bytes {
        let whole = u128::from(size.get()) * u128::from(WHOLE);
        let room = whole.div_ceil(u128::from(WHOLE - self.overhead()));
        Bytes::new(u64::try_from(room).unwrap_or(u64::MAX))
    }

    /// Returns the assumed overhead in words.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::None => "0 %",
            Self::Ext4 => "6.7 %: 1.7 % metadata and 5 % reserved for root",
            Self::Xfs => "2 %: metadata and its reserve",
            Self::Ntfs => "1 %: metadata",
        }
    }
}

impl FromStr for FileSystem {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|own| own.name().eq_ignore_ascii_case(text.trim()));
        known.ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("{text:?} is not a file system that can be planned for; use {names}")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disks_are_larger_by_the_overhead_of_the_file_system() {
        let check = |own: FileSystem, gib: u64, expect: u64| {
            assert_eq!(own.room_for(Bytes::gib(gib)).get(), expect, "{own:?}");
        };
        check(FileSystem::None, 1_000, 1_000 << 30);
        // 933 GiB are 93.3 % of 1,000 GiB, and so on.
        check(FileSystem::Ext4, 933, 1_000 << 30);
        check(FileSystem::Xfs, 980, 1_000 << 30);
        check(FileSystem::Ntfs, 990, 1_000 << 30);
        assert_eq!(FileSystem::Ext4.room_for(Bytes::new(1)).get(), 2);
        assert_eq!("XFS".parse(), Ok(FileSystem::Xfs));
        let error = "zfs".parse::<FileSystem>().unwrap_err();
        assert!(error.ends_with("use ext4, xfs, ntfs, none"), "{error}");
    }
}
