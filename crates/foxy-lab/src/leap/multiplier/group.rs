//! Sends one request on all paths (proxies and origin). The order of the paths changes with each
//! request. If a proxy's answer differs from the origin's answer, the origin receives the request a
//! second time.

use crate::leap::context::RunContext;
use crate::leap::exchange::relay::Tap;
use crate::leap::exchange::{self, Copied};
use crate::leap::verdict::reference::is_doubtful;
use crate::leap::{Asked, Manner, Path};
use foxy_base::{WallTime, clock};
use std::rc::Rc;

#[derive(Debug)]
pub struct RequestGroup {
    pub asked: Asked,
    pub number: u64,
    pub at: WallTime,
    pub copies: Vec<Copied>,
    /// The origin's answer to the second request. `None` if no answer differed from the origin's
    /// first answer.
    pub again: Option<Copied>,
}

pub async fn ask(
    context: Rc<RunContext>,
    asked: Asked,
    number: u64,
    mut client: Option<(usize, Tap)>,
) -> RequestGroup {
    let (at, begun) = (clock::wall(), clock::monotonic());
    let (run, numbers, count) = (&context.run, context.numbers, context.run.paths.len());
    if let Some(wanted) = &run.wanted {
        wanted.note(&asked.authority, &asked.path);
    }
    let asked = Rc::new(asked);
    let tasks: Vec<_> = (0..count)
        .map(|path| {
            let (context, asked) = (Rc::clone(&context), Rc::clone(&asked));
            let place = place(number, path, count);
            let tap = client.take_if(|(its, _)| *its == path).map(|(_, tap)| tap);
            tokio::task::spawn_local(async move {
                context.pause(begun + context.run.stagger * place).await;
                exchange::ask(&context, path, &asked, context.numbers.copy(number, path), tap).await
            })
        })
        .collect();
    let mut copies = Vec::new();
    for task in tasks {
        copies.push(task.await.expect("a copy does not panic"));
    }
    // The origin must not receive a request with an unsafe method twice.
    let direct = direct(&run.paths).filter(|_| asked.message.method.is_safe());
    let direct =
        direct.filter(|&direct| is_doubtful(&asked, &copies, direct, &context.noise.borrow()));
    let again = match direct {
        Some(direct) => {
            let number = numbers.second_asking(number);
            Some(exchange::ask(&context, direct, &asked, number, None).await)
        }
        None => None,
    };
    RequestGroup { asked: Rc::unwrap_or_clone(asked), number, at, copies, again }
}

/// Returns the position of a path in the sending order of request `number`. The order rotates by
/// one place per request, and reverses after each full round. So in each pair of paths, each path
/// is first equally often. With rotation alone, a path would often directly follow the same other
/// path. It would then profit from objects that this other path had just stored.
pub fn place(number: u64, path: usize, count: usize) -> u32 {
    let number = usize::try_from(number).unwrap_or(0);
    let turned = (path + count - number % count) % count;
    let place = if (number / count).is_multiple_of(2) { turned } else { count - 1 - turned };
    u32::try_from(place).unwrap_or(u32::MAX)
}

pub fn direct(paths: &[Path]) -> Option<usize> {
    paths.iter().position(|path| path.manner == Manner::Direct)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::leap::Numbers;
    use crate::leap::tests::{honest, run_of};
    use crate::leap::{Asked, LeapRun};
    use std::sync::Arc;
    use std::sync::atomic::AtomicU64;
    use std::sync::atomic::Ordering::Relaxed;
    use std::time::Duration;

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
        // The Multiplier (LEAP's request copier) has sent the first copy, and the second copy would
        // follow after an hour. The interrupt flag ends this wait.
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
