//! Plans of single backups.
