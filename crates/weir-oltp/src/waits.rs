//! What transactions wait for, by the names that SQL Server gives them.

use weir_units::Span;

/// A kind of wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Wait {
    /// A page to be read comes from its file.
    PageIoLatchSh,
    /// A page to be changed comes from its file, or is on its way there.
    PageIoLatchEx,
    /// The allocation page of a tempdb file, in memory, is another's.
    PageLatchUp,
    /// The log is not yet where a commit needs it.
    WriteLog,
    /// The log would be there, were it not for the rate that the instance allows.
    InstanceLogRateGovernor,
    /// The log is full; a checkpoint must free a part of it.
    LogmgrReserveAppend,
    /// Memory is full of pages that must be written first; the lazy writer is at it.
    SleepBufferpoolHelpLw,
    /// Ready to run, and every scheduler has another.
    SosSchedulerYield,
}

impl Wait {
    /// Every kind.
    pub const ALL: [Self; 8] = [
        Self::PageIoLatchSh,
        Self::PageIoLatchEx,
        Self::PageLatchUp,
        Self::WriteLog,
        Self::InstanceLogRateGovernor,
        Self::LogmgrReserveAppend,
        Self::SleepBufferpoolHelpLw,
        Self::SosSchedulerYield,
    ];

    /// The name in `sys.dm_os_wait_stats`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::PageIoLatchSh => "PAGEIOLATCH_SH",
            Self::PageIoLatchEx => "PAGEIOLATCH_EX",
            Self::PageLatchUp => "PAGELATCH_UP",
            Self::WriteLog => "WRITELOG",
            Self::InstanceLogRateGovernor => "INSTANCE_LOG_RATE_GOVERNOR",
            Self::LogmgrReserveAppend => "LOGMGR_RESERVE_APPEND",
            Self::SleepBufferpoolHelpLw => "SLEEP_BUFFERPOOL_HELPLW",
            Self::SosSchedulerYield => "SOS_SCHEDULER_YIELD",
        }
    }
}

/// Waits of one kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WaitTotals {
    /// How many waited.
    pub count: u64,
    /// For how long, all together.
    pub time: Span,
}

/// Waits by kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WaitStats([WaitTotals; Wait::ALL.len()]);

impl WaitStats {
    /// Counts a wait.
    pub(crate) fn count(&mut self, wait: Wait, time: Span) {
        let totals = &mut self.0[wait as usize];
        totals.count += 1;
        totals.time += time;
    }

    /// The waits of a kind.
    #[must_use]
    pub fn get(&self, wait: Wait) -> WaitTotals {
        self.0[wait as usize]
    }

    /// What was counted since `earlier`, an older reading of the same counters.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self(std::array::from_fn(|at| WaitTotals {
            count: self.0[at].count - earlier.0[at].count,
            time: self.0[at].time.saturating_sub(earlier.0[at].time),
        }))
    }

    /// Every kind with its waits.
    pub fn iter(&self) -> impl Iterator<Item = (Wait, WaitTotals)> + '_ {
        Wait::ALL.into_iter().map(|wait| (wait, self.get(wait)))
    }
}
