//! What can be tortured: a table of schemes, each with the limits it was made with. New schemes only need a row.

use crate::canary::{Flaw, Slots};
use foxy_store::Scheme;

/// What a scheme must stay within.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes in files on the device.
    pub disk_bytes: u64,
    /// Operations in flight.
    pub operations: u64,
    /// Bytes in the buffers of operations in flight.
    pub buffer_bytes: u64,
}

/// A scheme with its limits.
#[derive(Clone, Copy, Debug)]
pub struct Subject {
    /// What scripts call it.
    pub name: &'static str,
    /// Makes a new scheme, as a new process would.
    pub scheme: fn() -> Box<dyn Scheme>,
    /// Bytes of records it was made for; decides the sizes in random schedules.
    pub capacity: u64,
    /// What it must stay within.
    pub limits: Limits,
}

/// The schemes of `foxy-store`.
pub const SCHEMES: &[Subject] = &[];

/// The honest canary, and the flawed ones that must be caught.
pub const CANARIES: &[Subject] = &[
    canary("canary-honest", || Box::new(Slots::new(Flaw::None))),
    canary("canary-skips-checksum", || Box::new(Slots::new(Flaw::SkipsChecksum))),
    canary("canary-removes-without-sync", || Box::new(Slots::new(Flaw::RemovesWithoutSync))),
    canary("canary-checks-half-the-key", || Box::new(Slots::new(Flaw::ChecksHalfTheKey))),
    canary("canary-serves-previous", || Box::new(Slots::new(Flaw::ServesPrevious))),
    canary("canary-loses-answers", || Box::new(Slots::new(Flaw::LosesAnswers))),
];

/// Schemes and canaries.
pub fn all() -> impl Iterator<Item = &'static Subject> {
    SCHEMES.iter().chain(CANARIES)
}

/// The subject of that name, canaries included.
#[must_use]
pub fn find(name: &str) -> Option<&'static Subject> {
    all().find(|subject| subject.name == name)
}

const fn canary(name: &'static str, scheme: fn() -> Box<dyn Scheme>) -> Subject {
    let capacity = Slots::CAPACITY;
    let limits = Limits { disk_bytes: capacity, operations: 1, buffer_bytes: 24 << 10 };
    Subject { name, scheme, capacity, limits }
}
