//! What other people's systems say, read: small texts of each kind here, and the genuine files
//! that lie beside the project, where they do.

mod bed;
mod iostat;
mod samples;
mod trace;
