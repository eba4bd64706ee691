//! Remote stores on servers of others.

#[cfg(test)]
mod common;
#[cfg(test)]
mod crash;
#[cfg(test)]
mod cuts;
#[cfg(test)]
mod durable;
#[cfg(test)]
mod faults;
#[cfg(test)]
mod load;
#[cfg(test)]
mod proxy;
#[cfg(test)]
mod servers;
#[cfg(test)]
mod stalls;
