//! A timer with a precision of 0.1 ms for many waiting tasks. The async runtime's timers round up
//! to whole milliseconds. With them, requests would start in groups, and replayed delays would be
//! too long. One kernel timer wakes all waiting tasks.

use foxy_base::{Instant, clock};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::net::unix::pipe::Receiver;

#[derive(Debug)]
pub struct Alarm {
    /// The kernel timer. Its type is tokio's reader of pipes, which can read any file descriptor.
    timer: Receiver,
    waiting: RefCell<Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    wakers: BTreeMap<(Instant, u64), Waker>,
    next: u64,
}

impl Alarm {
    /// Creates the timer. The caller must be inside a Tokio runtime.
    pub fn new() -> io::Result<Self> {
        let timer = timerfd_create(
            TimerfdClockId::Monotonic,
            TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC,
        )?;
        Ok(Self { timer: Receiver::from_owned_fd_unchecked(timer)?, waiting: RefCell::default() })
    }

    pub fn until(&self, due: Instant) -> Until<'_> {
        Until { alarm: self, due, place: None }
    }

    /// Wakes the tasks whose time has come. This method must run as long as any task waits.
    pub async fn run(&self) -> io::Result<()> {
        loop {
            self.timer.readable().await?;
            let mut count = [0; 8];
            // If another task has set the timer again meanwhile, no expiration is left to read, and
            // the read fails. This error does not matter.
            let _cleared = self.timer.try_read(&mut count);
            let now = clock::monotonic();
            while let Some(first) =
                self.waiting.borrow_mut().wakers.first_entry().filter(|e| e.key().0 <= now)
            {
                first.remove().wake();
            }
            self.set(now)?;
        }
    }

    fn set(&self, now: Instant) -> io::Result<()> {
        let first = self.waiting.borrow().wakers.first_key_value().map(|(&(due, _), _)| due);
        let Some(due) = first else { return Ok(()) };
        let wait = due.since(now).max(Duration::from_nanos(1));
        let wait = Timespec {
            tv_sec: i64::try_from(wait.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: wait.subsec_nanos().into(),
        };
        let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: wait };
        timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &once)?;
        Ok(())
    }
}

#[derive(Debug)]
pub struct Until<'a> {
    alarm: &'a Alarm,
    due: Instant,
    place: Option<u64>,
}

impl Future for Until<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let now = clock::monotonic();
        if now >= self.due {
            return Poll::Ready(());
        }
        let is_first = {
            let mut waiting = self.alarm.waiting.borrow_mut();
            let place = self.place.unwrap_or(waiting.next);
            waiting.next = waiting.next.max(place + 1);
            self.place = Some(place);
            waiting.wakers.insert((self.due, place), context.waker().clone());
            waiting.wakers.first_key_value().is_some_and(|(&first, _)| first == (self.due, place))
        };
        // If the timer cannot be set, the task would never wake. So its pause ends now, and `run`
        // reports the error.
        if is_first && self.alarm.set(now).is_err() { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl Drop for Until<'_> {
    fn drop(&mut self) {
        if let Some(place) = self.place {
            self.alarm.waiting.borrow_mut().wakers.remove(&(self.due, place));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::rc::Rc;

    #[test]
    fn everyone_is_woken_and_nobody_early_and_a_wait_given_up_is_forgotten() {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let woken = Rc::new(Cell::new(0));
        tokio::task::LocalSet::new().block_on(&runtime, async {
            let alarm = Rc::new(Alarm::new().expect("a timer"));
            let driver = Rc::clone(&alarm);
            tokio::task::spawn_local(async move { driver.run().await });
            let begun = clock::monotonic();
            let given_up = tokio::time::timeout(
                Duration::from_millis(5),
                alarm.until(begun + Duration::from_secs(9)),
            );
            assert!(given_up.await.is_err());
            assert!(alarm.waiting.borrow().wakers.is_empty());
            let tasks: Vec<_> = [30, 10, 20, 0]
                .map(|wait| (wait, Rc::clone(&alarm), Rc::clone(&woken)))
                .into_iter()
                .map(|(wait, alarm, woken)| {
                    tokio::task::spawn_local(async move {
                        let due = begun + Duration::from_millis(wait);
                        alarm.until(due).await;
                        assert!(clock::monotonic() >= due);
                        woken.set(woken.get() + 1);
                    })
                })
                .collect();
            for task in tasks {
                task.await.expect("it ends");
            }
        });
        assert_eq!(woken.get(), 4);
    }
}
