//! What other people's systems say, read: small texts of each kind here, and the genuine files
//! that lie beside the project, where they do.

mod bed;
mod diskspd;
mod fio;
mod cloud;
mod iostat;
mod loads;
mod samples;
mod trace;
mod windows;
mod postgres;
mod samples;
mod sql;
mod diskstats;
mod iostat;
mod iostat_json;
mod sadf;
mod samples;
mod sar;
mod vmstat;
