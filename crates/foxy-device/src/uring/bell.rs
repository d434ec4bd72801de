//! What ends the ring owner's sleep: an eventfd that the ring watches. It carries no data.

use crate::park::Waker;
use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Rung by any thread, silenced by the owner.
#[derive(Debug)]
pub(super) struct Bell {
    descriptor: OwnedFd,
    /// Whether it was rung since it was last silenced: only the first ring costs a system call.
    rung: AtomicBool,
}

impl Bell {
    pub(super) fn new() -> Result<Self, Errno> {
        let descriptor = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self { descriptor, rung: AtomicBool::new(false) })
    }

    pub(super) fn waker(bell: &Arc<Self>) -> Waker {
        let bell = Arc::clone(bell);
        Waker::new(move || bell.ring())
    }

    pub(super) const fn descriptor(&self) -> &OwnedFd {
        &self.descriptor
    }

    pub(super) fn ring(&self) {
        if !self.rung.swap(true, Ordering::AcqRel) {
            // A counter of eight bytes that is silenced before it can overflow takes every write.
            let _ = rustix::io::write(&self.descriptor, &1u64.to_ne_bytes());
        }
    }

    /// Readies the bell for the next ring. What was done before a ring that this swallows is
    /// visible afterwards.
    pub(super) fn silence(&self) {
        // It has nothing to read when the ring saw it before the ringer was done: that ring then
        // ends a wait too many.
        let _ = rustix::io::read(&self.descriptor, &mut [0; 8]);
        self.rung.swap(false, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_audible(bell: &Bell) -> bool {
        let audible = rustix::io::read(&bell.descriptor, &mut [0; 8]).is_ok();
        if audible {
            rustix::io::write(&bell.descriptor, &1u64.to_ne_bytes())
                .expect("an eventfd takes a write");
        }
        audible
    }

    #[test]
    fn it_sounds_from_the_first_ring_until_it_is_silenced() {
        let bell = Bell::new().expect("an eventfd");
        assert!(!is_audible(&bell));
        bell.ring();
        bell.ring();
        assert!(is_audible(&bell));
        bell.silence();
        assert!(!is_audible(&bell));
        bell.ring();
        assert!(is_audible(&bell));
    }
}
