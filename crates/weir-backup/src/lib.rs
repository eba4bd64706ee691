//! Striped backups: their format, the engine that makes them, and restore.

#![forbid(unsafe_code)]
