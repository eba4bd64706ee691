//! A workload that ran.
