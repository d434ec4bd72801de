//! The layouts there are, by name.

use super::classes::Classes;
use super::cyclic::Cyclic;
use super::layout::Layout;
use super::mapped::Mapped;
use super::ring::Ring;

/// The layouts there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayoutKind {
    /// One file, the next free slots cyclically (R22).
    Cyclic,
    /// A file for each size, the first free slot; a file of its own for what is larger (R20).
    Classes,
    /// One file as a ring of stripes; what lies in the next stripe is dropped (R61).
    Ring,
    /// A mapped file for small records, cyclically; a file of its own in Squid's folders for what
    /// is larger (R37).
    Mapped,
    /// The same, small records within a page.
    MappedAligned,
}

impl LayoutKind {
    /// Makes the layout for so many slots. `threshold` is the largest record, in slots, that shares
    /// a file.
    pub fn make(self, slots: u32, threshold: u32) -> Box<dyn Layout> {
        match self {
            Self::Cyclic => Box::new(Cyclic::new(slots)),
            Self::Classes => Box::new(Classes::new(slots, threshold)),
            Self::Ring => Box::new(Ring::new(slots)),
            Self::Mapped => Box::new(Mapped::new(slots, false)),
            Self::MappedAligned => Box::new(Mapped::new(slots, true)),
        }
    }
}
