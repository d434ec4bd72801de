//! Runs a list of tasks on several threads and returns the results in the order of the tasks.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

const TICK: Duration = Duration::from_millis(100);

/// Runs every task once, on at most `threads` threads. Meanwhile the calling thread calls `tick`
/// repeatedly.
pub fn run_all<T: Sync, R: Send>(
    tasks: &[T],
    threads: usize,
    run: &(dyn Fn(&T) -> R + Sync),
    tick: &mut dyn FnMut(),
) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let (sender, receiver) = mpsc::channel();
    let mut results: Vec<Option<R>> = tasks.iter().map(|_| None).collect();
    std::thread::scope(|scope| {
        for _ in 0..threads.max(1).min(tasks.len()) {
            let (sender, next) = (sender.clone(), &next);
            scope.spawn(move || {
                loop {
                    let place = next.fetch_add(1, Relaxed);
                    let Some(task) = tasks.get(place) else { return };
                    sender
                        .send((place, run(task)))
                        .expect("the receiver lives as long as the threads");
                }
            });
        }
        drop(sender);
        loop {
            match receiver.recv_timeout(TICK) {
                Ok((place, result)) => results[place] = Some(result),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            tick();
        }
    });
    results.into_iter().map(|result| result.expect("every task was run")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;

    #[test]
    fn results_stand_in_the_order_of_the_tasks_whichever_ends_first() {
        let barrier = Barrier::new(2);
        let run = |&task: &u32| {
            if task < 2 {
                barrier.wait();
            }
            task * 10
        };
        assert_eq!(run_all(&[0, 1, 2, 3, 4], 2, &run, &mut || {}), [0, 10, 20, 30, 40]);
    }

    #[test]
    fn no_task_is_no_result_and_one_thread_is_the_least() {
        let run = |&task: &u32| task;
        assert!(run_all(&[], 4, &run, &mut || {}).is_empty());
        assert_eq!(run_all(&[7, 8], 0, &run, &mut || {}), [7, 8]);
    }
}
