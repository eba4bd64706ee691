//! Plans for backups: as cheap as an exhaustive search, and within their window when simulated.

mod exhaustive;
mod plans;
