//! Whether requests come by chance or evenly.

use weir_observe::load::Load;

/// What comes by chance varies from sample to sample by the root of its number: its variance is
/// that. Of what comes in turns, as a timer or the end of those before lets it, that is a
/// small part.
const EVEN: f64 = 0.5;

/// How much the numbers of operations vary from sample to sample.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Arrivals {
    /// Operations a second of the sample before, if there were any.
    before: Option<f64>,
    /// What is expected of the squares of the differences if they come by chance, and what they are.
    expected: f64,
    squares: f64,
}

impl Arrivals {
    pub(super) fn take(&mut self, load: &Load) {
        let seconds = load.seconds();
        let now = load.operations.filter(|operations| *operations > 0.0).map(|all| all / seconds);
        if let (Some(before), Some(now)) = (self.before, now) {
            // Of two numbers around the same mean, the difference has the variance of both.
            self.squares += (now - before).powi(2) * seconds.powi(2);
            self.expected += (now + before) * seconds;
        }
        self.before = now;
    }

    /// Whether they come evenly, as far as was seen.
    pub(super) fn are_even(&self) -> bool {
        self.expected > 0.0 && self.squares < EVEN * self.expected
    }
}
