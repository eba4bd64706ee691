//! From the observed rates of a role to the keys of a need.

use crate::error::PlanError;
use crate::need::RoleKeys;
use crate::share::WHOLE;
use weir_observe::sizing::Sized;
use weir_units::{Bytes, BytesPerSec, Iops};

impl RoleKeys {
    /// Takes the rates and sizes that were observed of a role, grown by `growth` millionths. A size
    /// that the need states stays as it is.
    ///
    /// # Errors
    ///
    /// [`PlanError::Need`] for a key that both the need and the observation, called `file`, state.
    pub fn take_observed(&mut self, own: &Sized, growth: u64, file: &str) -> Result<(), PlanError> {
        let role = &own.role;
        let stated = [
            ("iops", self.iops.is_some()),
            ("throughput", self.throughput.is_some()),
            ("request", self.request.is_some()),
            ("reads", self.reads.is_some()),
        ];
        if let Some((key, _)) = stated.into_iter().find(|(_, is_stated)| *is_stated) {
            let reason = format!("both {file} and the need give its {key}; leave out one");
            return Err(PlanError::need(role, reason));
        }
        let grown = |n: f64| n * (1.0 + float(growth) / float(WHOLE));
        let observed = own.size.filter(|size| *size > 0).map(|size| {
            // Files are made of whole GiB.
            Bytes::gib(whole(grown(float(size)) / float(1 << 30)).max(1))
        });
        self.size = self.size.or(observed);
        let iops = whole(grown(own.iops).round());
        let request = own.request.map(|bytes| whole(bytes).max(1).next_multiple_of(512));
        self.iops = Iops::new(iops);
        self.request = request.map(Bytes::new).filter(|_| iops > 0);
        // The peak of bytes counts where it is above that of operations.
        let bytes = own.bytes.map_or(0, |bytes| whole(grown(bytes)));
        let brought = iops.saturating_mul(request.unwrap_or(0));
        self.throughput = BytesPerSec::new(bytes).filter(|rate| rate.get() > brought && iops > 0);
        self.reads = own.reads.map(|reads| {
            let tenths = whole((reads * 1_000.0).floor()).min(1_000);
            format!("{}.{} %", tenths / 10, tenths % 10)
        });
        Ok(())
    }

    /// Refuses a role without a size.
    ///
    /// # Errors
    ///
    /// [`PlanError::Need`]
    pub fn check_size(&self, role: &str, file: &str) -> Result<(), PlanError> {
        if self.size.is_some() {
            return Ok(());
        }
        let how = if role == "data" { "--size SIZE, or " } else { "" };
        let reason =
            format!("the size of {role} is unknown; give {how}size in [{role}] of --need FILE");
        Err(PlanError::need(file, reason))
    }
}

#[expect(clippy::cast_precision_loss, reason = "rates and sizes are far below 2^53")]
fn float(n: u64) -> f64 {
    n as f64
}

/// Rounds up.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "bounded on both sides before"
)]
fn whole(n: f64) -> u64 {
    n.ceil().clamp(0.0, 4e18) as u64
}
