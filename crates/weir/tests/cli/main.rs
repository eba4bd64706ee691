//! The real `weir`, each test with a server of its own on sockets in a temporary
//! folder.

mod common;
mod errors;
mod figures;
mod kill;
mod lab;
mod real_clients;
mod serve;
mod sim;
mod tools;
