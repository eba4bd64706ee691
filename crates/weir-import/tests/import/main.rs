//! Imports of small texts of each kind, and of the genuine samples beside the project if they are
//! there.

mod backup;
mod bed;
mod cloud;
mod diskspd;
mod diskstats;
mod docs;
mod fio;
mod iostat;
mod iostat_json;
mod loads;
mod merge;
mod postgres;
mod requests;
mod sadf;
mod samples;
mod sar;
mod script;
mod sql;
mod trace;
mod two_kinds;
mod unknown;
mod vmstat;
mod windows;
