//! Where the time of a run comes from: virtual, as the device and the scheme say what comes next,
//! or real.

use foxy_base::{Instant, clock};
use foxy_device::{BlockingDevice, Device};
use std::time::Duration;

/// How long a real device may take for one operation before it is looked at again.
const PATIENCE: Duration = Duration::from_secs(60);

/// Where time comes from.
pub trait TimeSource<D> {
    /// The time now.
    fn now(&self) -> Instant;
    /// Lets time pass until something can be reaped, or until `deadline`. False when nothing is to
    /// come.
    fn wait(&mut self, device: &mut D, deadline: Option<Instant>) -> bool;
}

/// Virtual time: it is what the device and the scheme say comes next.
#[derive(Clone, Copy, Debug, Default)]
pub struct Virtual(pub Instant);

impl<D: Device> TimeSource<D> for Virtual {
    fn now(&self) -> Instant {
        self.0
    }

    fn wait(&mut self, device: &mut D, deadline: Option<Instant>) -> bool {
        let next = device.next_completion().into_iter().chain(deadline).min();
        self.0 = self.0.max(next.unwrap_or(self.0));
        next.is_some()
    }
}

/// Real time, on a real device.
#[derive(Clone, Copy, Debug, Default)]
pub struct Real;

impl<D: BlockingDevice> TimeSource<D> for Real {
    fn now(&self) -> Instant {
        clock::monotonic()
    }

    fn wait(&mut self, device: &mut D, deadline: Option<Instant>) -> bool {
        let busy = device.in_flight() > 0;
        if busy || deadline.is_some() {
            let now = clock::monotonic();
            device.wait(deadline.map(|deadline| deadline.since(now)).or(Some(PATIENCE)));
        }
        busy || deadline.is_some()
    }
}
