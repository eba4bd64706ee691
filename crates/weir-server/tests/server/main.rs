//! A whole server, in this process, on sockets in a temporary folder.

mod clients;
mod coming;
mod common;
mod freeze;
mod life;
