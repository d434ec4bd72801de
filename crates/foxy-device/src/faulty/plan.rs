//! Which faults a faulty device injects and how often, and how many it has injected. Each field
//! says what the fault does, and so what its user must survive.

use foxy_base::Random;
use std::time::Duration;

/// How likely each fault is, as a probability for each operation it can befall; at most one befalls
/// an operation, drawn in the order of the fields. The default is a device without faults that
/// takes no time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FaultPlan {
    /// Any operation but `Close` fails with EIO. A failed write may have been carried out up to any
    /// byte; any other failed operation has changed nothing, and a failed `Sync` has made nothing
    /// durable.
    pub errors: f64,
    /// A `Write` or `Create` fails with ENOSPC; the write may have been carried out up to any byte.
    pub no_space: f64,
    /// A `Read` gives fewer bytes than there are; the rest of its buffer is garbage.
    pub short_reads: f64,
    /// A `Write` writes fewer bytes than asked, and says how many.
    pub short_writes: f64,
    /// One bit of what a `Write` writes is flipped on its way, for good; the write is said to have
    /// succeeded.
    pub flips_written: f64,
    /// One bit of what a `Read` gives is flipped; the medium is sound, and the next read may be.
    pub flips_read: f64,
    /// A `Write` is said to have succeeded and never happens.
    pub lost_writes: f64,
    /// A `Write` is said to have succeeded and happens up to 64 sectors beside its place, in the
    /// same file.
    pub misdirected_writes: f64,
    /// Every operation takes between these two times, evenly drawn, so that completions change
    /// their order. It is carried out at the beginning or at the end of that time; a `Sync` at the
    /// beginning, so that it covers no more than it must.
    pub latency: (Duration, Duration),
}

/// A kind of injected fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FaultKind {
    /// EIO.
    Error,
    /// ENOSPC.
    NoSpace,
    /// A read that gave too few bytes.
    ShortRead,
    /// A write that took too few bytes.
    ShortWrite,
    /// A bit flipped on its way to the medium.
    FlipWritten,
    /// A bit flipped on its way from the medium.
    FlipRead,
    /// A write that never happened.
    LostWrite,
    /// A write that went elsewhere.
    MisdirectedWrite,
}

impl FaultKind {
    /// All kinds, in the order of [`FaultPlan`]'s fields.
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

/// What a fault must fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// A read of at least one byte.
    Read,
    /// A write of at least one byte.
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

    /// The fault that befalls one operation.
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

    /// How long one operation takes.
    pub(super) fn draw_latency(&self, random: &mut Random) -> Duration {
        let (least, most) = self.latency;
        let spread = u64::try_from(most.saturating_sub(least).as_nanos()).unwrap_or(u64::MAX - 1);
        least + Duration::from_nanos(random.below(spread + 1))
    }
}

/// How many faults of each kind were injected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaultCounts([u64; FaultKind::ALL.len()]);

impl FaultCounts {
    /// Of one kind.
    #[must_use]
    pub const fn of(&self, kind: FaultKind) -> u64 {
        self.0[kind as usize]
    }

    /// Of all kinds.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    pub(super) const fn add(&mut self, kind: FaultKind) {
        self.0[kind as usize] += 1;
    }
}
