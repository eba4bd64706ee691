//! Waits of transactions, with SQL Server's names.

use weir_units::Span;

/// A kind of wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Wait {
    /// A page to be read is being read from its file.
    PageIoLatchSh,
    /// A page to be changed is being read or written.
    PageIoLatchEx,
    /// Another session holds the allocation page of a tempdb file, in memory.
    PageLatchUp,
    /// The log up to a commit is not written yet.
    WriteLog,
    /// The part of that which the log rate of the instance caused.
    InstanceLogRateGovernor,
    /// The log is full; a checkpoint must free a part of it.
    LogmgrReserveAppend,
    /// The buffer pool is full of dirty pages, which the lazy writer must write first.
    SleepBufferpoolHelpLw,
    /// The transaction is ready to run, and all schedulers are busy.
    SosSchedulerYield,
}

impl Wait {
    /// All kinds.
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

    /// Returns the name in `sys.dm_os_wait_stats`.
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
    /// The number of waits.
    pub count: u64,
    /// The sum of their times.
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

    /// Returns the waits of a kind.
    #[must_use]
    pub fn get(&self, wait: Wait) -> WaitTotals {
        self.0[wait as usize]
    }

    /// Returns the difference from `earlier`, an older reading of the same counters.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self(std::array::from_fn(|at| WaitTotals {
            count: self.0[at].count - earlier.0[at].count,
            time: self.0[at].time.saturating_sub(earlier.0[at].time),
        }))
    }

    /// Returns all kinds with their waits.
    pub fn iter(&self) -> impl Iterator<Item = (Wait, WaitTotals)> + '_ {
        Wait::ALL.into_iter().map(|wait| (wait, self.get(wait)))
    }
}
