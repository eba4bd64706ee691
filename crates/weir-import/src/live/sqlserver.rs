//! The queries for SQL Server.

/// The T-SQL script that queries a server for the result sets that are read.
pub const SCRIPT: &str = include_str!("../../scripts/sqlserver.sql");
