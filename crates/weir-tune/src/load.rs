//! The load that a layout has to carry.

use weir_oltp::Description;
use weir_plan::Need;
use weir_workload::JobFile;

/// A load.
#[derive(Debug, Clone)]
pub enum Load {
    /// Rates of each role, of several needs one at a time. Requests arrive at these rates, whether or
    /// not earlier ones are complete.
    Needs(Vec<Need>),
    /// Jobs of fio.
    Jobs(JobFile),
    /// Databases, and backups beside them.
    Databases(Vec<Description>, Vec<weir_pipeline::Description>),
}

impl Load {
    /// Returns the time that waits at limits are a share of, in words.
    pub(crate) fn time(&self) -> &'static str {
        match self {
            Self::Needs(_) | Self::Jobs(_) => "time at storage",
            Self::Databases(..) => "response time",
        }
    }

    /// Returns whether the load is a need without rates.
    pub(crate) fn is_nothing(&self) -> bool {
        match self {
            Self::Needs(needs) => {
                let mut roles = needs.iter().flat_map(|need| &need.roles);
                roles.all(|own| own.iops == 0 && own.throughput == 0)
            }
            Self::Jobs(_) | Self::Databases(..) => false,
        }
    }
}
