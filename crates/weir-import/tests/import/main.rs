//! What other people's systems say, read: small texts of each kind here, and the genuine files
//! that lie beside the project, where they do.

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
