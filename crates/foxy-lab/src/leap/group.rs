//! One request on all its paths: the copies sent after each other in turning order (R108), and the
//! origin asked again where needed.

use super::exchange::{self, Copied};
use super::kept::Kept;
use super::noise::Noise;
use super::reference::is_doubtful;
use super::relay::Tap;
use super::{Asked, LeapRun, Manner, Path};
use crate::alarm::Alarm;
use crate::numbers;
use foxy_base::{Instant, WallTime, clock};
use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// How long at most until a signal is noticed between two copies.
const TICK: Duration = Duration::from_millis(50);

/// What came of one request.
#[derive(Debug)]
pub struct Group {
    pub asked: Asked,
    pub number: u64,
    /// When it began.
    pub at: WallTime,
    /// By path.
    pub copies: Vec<Copied>,
    /// What the origin itself answered when asked again, because an answer was not like its first.
    pub again: Option<Copied>,
}

/// What asking takes, the same for all requests of a run.
#[derive(Debug)]
pub struct Means {
    pub run: LeapRun,
    pub numbers: Numbers,
    pub noise: RefCell<Noise>,
    /// When copies and requests are due; it must be running.
    pub alarm: Alarm,
    /// The connections that wait for a request.
    pub kept: Kept,
}

impl Means {
    /// Those of a run that begins now; must be made inside a runtime.
    ///
    /// # Errors
    /// The kernel gives no timer.
    pub fn new(run: &LeapRun) -> io::Result<Self> {
        let paths = run.paths.len();
        Ok(Self {
            run: run.clone(),
            numbers: run.numbers.unwrap_or_else(|| Numbers::new(paths)),
            noise: RefCell::new(Noise::new(paths)),
            alarm: Alarm::new()?,
            kept: Kept::new(paths, run.most_in_flight),
        })
    }

    /// Waits until a copy is due; once the run is interrupted, what is left to send is sent at
    /// once.
    async fn pause(&self, due: Instant) {
        loop {
            let now = clock::monotonic();
            let left = due.since(now);
            if left.is_zero() || self.run.interrupted.load(Relaxed) {
                break;
            }
            self.alarm.until(now + left.min(TICK)).await;
        }
    }
}

/// Asks on every path as request `number` of the run; a client gets the answer of its path through
/// its tap.
pub async fn ask(
    means: Rc<Means>,
    (asked, number): (Asked, u64),
    mut client: Option<(usize, Tap)>,
) -> Group {
    let (at, begun) = (clock::wall(), clock::monotonic());
    let (run, numbers, count) = (&means.run, means.numbers, means.run.paths.len());
    if let Some(wanted) = &run.wanted {
        wanted.note(&asked.authority, &asked.path);
    }
    let asked = Rc::new(asked);
    let tasks: Vec<_> = (0..count)
        .map(|path| {
            let (means, asked) = (Rc::clone(&means), Rc::clone(&asked));
            let place = place(number, path, count);
            let tap = client.take_if(|(its, _)| *its == path).map(|(_, tap)| tap);
            tokio::task::spawn_local(async move {
                means.pause(begun + means.run.stagger * place).await;
                exchange::ask(&means, path, &asked, means.numbers.copy(number, path), tap).await
            })
        })
        .collect();
    let mut copies = Vec::new();
    for task in tasks {
        copies.push(task.await.expect("a copy does not panic"));
    }
    // What may change something at the origin is never asked a second time.
    let direct = direct(&run.paths).filter(|_| asked.message.method.is_safe());
    let direct =
        direct.filter(|&direct| is_doubtful(&asked, &copies, direct, &means.noise.borrow()));
    let again = match direct {
        Some(direct) => {
            let number = numbers.second_asking(number);
            Some(exchange::ask(&means, direct, &asked, number, None).await)
        }
        None => None,
    };
    Group { asked: Rc::unwrap_or_clone(asked), number, at, copies, again }
}

/// Where in the order of its copies request `number` is sent on a path, of `count`: the order
/// turns, and after each round it is turned round, so that of any two paths each is first equally
/// often. Turning alone would let the second of two neighbours find what the first had stored.
pub fn place(number: u64, path: usize, count: usize) -> u32 {
    let number = usize::try_from(number).unwrap_or(0);
    let turned = (path + count - number % count) % count;
    let place = if (number / count).is_multiple_of(2) { turned } else { count - 1 - turned };
    u32::try_from(place).unwrap_or(u32::MAX)
}

/// The numbers that copies carry: no two of a run are the same.
#[derive(Clone, Copy, Debug)]
pub struct Numbers {
    first: u64,
    paths: u64,
}

impl Numbers {
    /// For a run of so many paths that begins now.
    #[must_use]
    pub fn new(paths: usize) -> Self {
        Self { first: numbers::first_of_run(), paths: paths as u64 }
    }

    /// The two that a path is probed with beforehand.
    pub const fn probes(self, path: usize) -> [u64; 2] {
        let first = self.first + 2 * path as u64;
        [first, first + 1]
    }

    /// That of request `number` on a path.
    pub const fn copy(self, number: u64, path: usize) -> u64 {
        self.second_asking(number) + 1 + path as u64
    }

    /// Which path a copy of that number is sent on; none for those of probes and of a second
    /// asking.
    #[must_use]
    pub fn path(self, number: u64) -> Option<usize> {
        let since = number.checked_sub(self.first + 2 * self.paths)?;
        usize::try_from((since % (self.paths + 1)).checked_sub(1)?).ok()
    }

    /// That of request `number` when the origin is asked a second time.
    const fn second_asking(self, number: u64) -> u64 {
        self.first + 2 * self.paths + number * (self.paths + 1)
    }
}

/// The path to the origin itself.
pub fn direct(paths: &[Path]) -> Option<usize> {
    paths.iter().position(|path| path.manner == Manner::Direct)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::leap::tests::{honest, run_of};
    use std::sync::Arc;
    use std::sync::atomic::AtomicU64;

    #[test]
    fn lesson_8_every_path_has_every_place_and_of_two_each_is_first_equally_often() {
        for count in 1..=9_usize {
            let rounds = 0..2 * count as u64;
            for path in 0..count {
                let at = |place_wanted: u32| {
                    rounds
                        .clone()
                        .filter(|&number| place(number, path, count) == place_wanted)
                        .count()
                };
                assert!((0..count).all(|wanted| at(wanted as u32) == 2), "{path} of {count}");
                for other in (0..count).filter(|&other| other != path) {
                    let first =
                        |&number: &u64| place(number, path, count) < place(number, other, count);
                    assert_eq!(
                        rounds.clone().filter(first).count(),
                        count,
                        "{path} and {other} of {count}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_number_says_which_path_its_copy_goes_to_and_nothing_of_other_requests() {
        let numbers = Numbers::new(3);
        for number in [0, 1, 70] {
            for path in 0..3 {
                assert_eq!(numbers.path(numbers.copy(number, path)), Some(path));
            }
            assert_eq!(numbers.path(numbers.second_asking(number)), None);
        }
        assert!(
            (0..3).flat_map(|path| numbers.probes(path)).all(|probe| numbers.path(probe).is_none())
        );
    }

    #[test]
    fn a_signal_ends_the_pauses_between_copies() {
        let (one, other) = (honest(), honest());
        let run = run_of(&[("a", one, Manner::Reverse), ("b", other, Manner::Reverse)]);
        let run = LeapRun { stagger: Duration::from_secs(3600), ..run };
        let (flag, begun) = (Arc::clone(&run.interrupted), AtomicU64::new(0));
        let asked = || Asked::get("o.test".into(), "/a".into(), Duration::ZERO);
        // Begun, its second copy would be sent in an hour.
        let mut progress = |requests| {
            begun.store(requests, Relaxed);
            flag.store(true, Relaxed);
        };
        let mut one = std::iter::once(asked());
        let report =
            crate::leap::run(&run, &asked(), &mut one, &mut |_| {}, &mut progress).expect("run");
        assert_eq!((begun.into_inner(), report.requests), (1, 1));
    }
}
