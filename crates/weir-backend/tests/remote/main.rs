//! Remote stores on servers of others.

#[cfg(test)]
mod common;
#[cfg(test)]
mod crash;
#[cfg(test)]
mod faults;
#[cfg(test)]
mod servers;
