//! An open trace, whose requests are summed into samples or collected.

use super::request::{Origin, ReadRequests};
use super::summing::{Samples, Summing};
use crate::options::Options;
use crate::sheet::ReadSamples;

/// An open trace.
pub(crate) struct Trace {
    pub(crate) reader: Box<dyn ReadRequests>,
    /// The moment that times count from.
    pub(crate) origin: Origin,
    /// Resolution of times, in nanoseconds.
    pub(crate) resolution: u64,
}

impl Trace {
    /// Creates a trace whose times count from an unknown moment and are exact.
    pub(crate) fn new(reader: impl ReadRequests + 'static) -> Self {
        Self { reader: Box::new(reader), origin: Origin::Unknown, resolution: 0 }
    }

    /// Sums the requests into samples.
    pub(crate) fn samples(self, options: &Options) -> Box<dyn ReadSamples> {
        let mut summing = Summing::new(options);
        summing.origin = self.origin;
        summing.resolution = self.resolution;
        Box::new(Samples::new(self.reader, summing))
    }
}
