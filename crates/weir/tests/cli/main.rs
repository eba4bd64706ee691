//! The real `weir`, each test with a server of its own on sockets in a temporary
//! folder.

mod baselines;
mod blob;
mod common;
mod diagnose;
mod errors;
mod export;
mod figures;
mod kill;
mod lab;
mod live;
mod mount;
mod observe;
mod observe_imports;
mod plan;
mod plan_choice;
mod plan_keep;
mod plan_options;
mod real_clients;
mod run;
mod samples;
mod serve;
mod sim;
mod sim_backup;
mod sim_oltp;
mod tools;
