//! The faults that a faulty device injects, and their rates. The documentation of each field of
//! [`FaultPlan`] describes a failure that a user of a device must survive.

use foxy_base::Random;
use std::time::Duration;

/// The rates of all faults. A rate is the probability that an operation has the fault, if this kind
/// of operation can have the fault. An operation has at most one fault. The faults are drawn one
/// after another, in the order of the fields, until the operation has a fault. The default plan has
/// no faults and no delays.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FaultPlan {
    /// Any operation except `Close` fails with EIO. A failed write may have written any number of
    /// its first bytes. Other failed operations change nothing, and a failed `Sync` makes nothing
    /// durable.
    pub errors: f64,
    /// A `Write` or `Create` fails with ENOSPC. The `Write` may have written any number of its
    /// first bytes.
    pub no_space: f64,
    /// A `Read` returns fewer bytes than exist. The other bytes of its buffer contain garbage.
    pub short_reads: f64,
    /// A `Write` writes fewer bytes than requested and reports their number.
    pub short_writes: f64,
    /// A `Write` stores its bytes with one bit flipped. The write reports success.
    pub flips_written: f64,
    /// A `Read` returns one flipped bit. The stored data is correct, so the next read may be
    /// correct.
    pub flips_read: f64,
    /// A `Write` reports success but changes nothing.
    pub lost_writes: f64,
    /// A `Write` reports success but writes up to 64 sectors away from its offset, in the same
    /// file.
    pub misdirected_writes: f64,
    /// Shortest and longest delay of an operation. Delays are drawn uniformly, so operations finish
    /// in another order than they were submitted. An operation takes effect at the start or the end
    /// of its delay. A `Sync` always takes effect at the start, so it makes no later write durable.
    pub latency: (Duration, Duration),
}

impl FaultPlan {
    /// A plan without faults and delays, like the default.
    pub const NONE: Self = Self {
        errors: 0.0,
        no_space: 0.0,
        short_reads: 0.0,
        short_writes: 0.0,
        flips_written: 0.0,
        flips_read: 0.0,
        lost_writes: 0.0,
        misdirected_writes: 0.0,
        latency: (Duration::ZERO, Duration::ZERO),
    };
}

/// A kind of injected fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FaultKind {
    /// An operation that failed with EIO.
    Error,
    /// A write or creation that failed with ENOSPC.
    NoSpace,
    /// A read that returned too few bytes.
    ShortRead,
    /// A write that wrote too few bytes.
    ShortWrite,
    /// A bit that was flipped during a write.
    FlipWritten,
    /// A bit that was flipped during a read.
    FlipRead,
    /// A write that reported success but changed nothing.
    LostWrite,
    /// A write to a wrong offset.
    MisdirectedWrite,
}

impl FaultKind {
    /// All kinds in the order of the fields of [`FaultPlan`].
    pub const ALL: [Self; 8] = [
        Self::Error,
        Self::NoSpace,
        Self::ShortRead,
        Self::ShortWrite,
        Self::FlipWritten,
        Self::FlipRead,
        Self::LostWrite,
        Self::MisdirectedWrite,
    ];
}

/// A class of operations. The class decides which faults an operation can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// The operation is a read of at least one byte.
    Read,
    /// The operation is a write of at least one byte.
    Write,
    Create,
    Close,
    Other,
}

impl FaultPlan {
    const fn rate(&self, kind: FaultKind) -> f64 {
        match kind {
            FaultKind::Error => self.errors,
            FaultKind::NoSpace => self.no_space,
            FaultKind::ShortRead => self.short_reads,
            FaultKind::ShortWrite => self.short_writes,
            FaultKind::FlipWritten => self.flips_written,
            FaultKind::FlipRead => self.flips_read,
            FaultKind::LostWrite => self.lost_writes,
            FaultKind::MisdirectedWrite => self.misdirected_writes,
        }
    }

    /// Draws the fault of one operation. Returns `None` if the operation has no fault.
    pub(super) fn draw(&self, target: Target, random: &mut Random) -> Option<FaultKind> {
        let fits = |kind: &FaultKind| match kind {
            FaultKind::Error => target != Target::Close,
            FaultKind::NoSpace => matches!(target, Target::Write | Target::Create),
            FaultKind::ShortRead | FaultKind::FlipRead => target == Target::Read,
            FaultKind::ShortWrite
            | FaultKind::FlipWritten
            | FaultKind::LostWrite
            | FaultKind::MisdirectedWrite => target == Target::Write,
        };
        FaultKind::ALL.into_iter().filter(fits).find(|&kind| random.chance(self.rate(kind)))
    }

    pub(super) fn draw_latency(&self, random: &mut Random) -> Duration {
        let (least, most) = self.latency;
        let spread = u64::try_from(most.saturating_sub(least).as_nanos()).unwrap_or(u64::MAX - 1);
        least + Duration::from_nanos(random.below(spread + 1))
    }
}

/// Number of injected faults of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaultCounts([u64; FaultKind::ALL.len()]);

impl FaultCounts {
    /// Returns the number of faults of `kind`.
    #[must_use]
    pub const fn of(&self, kind: FaultKind) -> u64 {
        self.0[kind as usize]
    }

    /// Returns the number of faults of all kinds.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    pub(super) const fn add(&mut self, kind: FaultKind) {
        self.0[kind as usize] += 1;
    }
}
