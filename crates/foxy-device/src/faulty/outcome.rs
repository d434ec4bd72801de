//! What a faulty device makes of the completions of the device underneath.

use crate::buffer::IoBuffer;
use crate::io::{IoDone, IoError, IoOutput};
use foxy_base::Instant;

/// What the rest of a short read's buffer is filled with.
const GARBAGE: u8 = 0xdb;

/// When something happens; the number keeps the order of submission among equals.
pub(super) type Due = (Instant, u64);

/// What to make of a completion.
#[derive(Debug)]
pub(super) struct Expected {
    pub(super) due: Due,
    /// The submitter's buffer, where another one was passed on.
    pub(super) buffer: Option<IoBuffer>,
    pub(super) outcome: Outcome,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Outcome {
    AsItIs,
    Fails(IoError),
    /// A read gives at most so many bytes.
    ReadsShort(usize),
    /// A bit flips: this one, modulo the bits there are.
    Flips(u64),
}

impl Expected {
    pub(super) fn settle(self, done: IoDone) -> IoDone {
        let mut buffer = self.buffer.or(done.buffer);
        let result = match (self.outcome, done.result) {
            (Outcome::Fails(error), _) => Err(error),
            (Outcome::ReadsShort(most), Ok(IoOutput::Moved { count })) => {
                Ok(IoOutput::Moved { count: count.min(most) })
            }
            (_, result) => result,
        };
        if let (Ok(IoOutput::Moved { count }), Some(buffer)) = (&result, &mut buffer) {
            match self.outcome {
                Outcome::Flips(at) => flip(&mut buffer.as_mut()[..*count], at),
                Outcome::ReadsShort(_) => buffer.as_mut()[*count..].fill(GARBAGE),
                Outcome::AsItIs | Outcome::Fails(_) => {}
            }
        }
        IoDone { id: done.id, result, buffer }
    }
}

/// Flips bit `at`, modulo the bits there are.
pub(super) fn flip(bytes: &mut [u8], at: u64) {
    if !bytes.is_empty() {
        let bit = at % (bytes.len() as u64 * 8);
        let byte = usize::try_from(bit / 8).expect("within a slice");
        bytes[byte] ^= 1 << (bit % 8);
    }
}
