//! The Multiplier, which runs on one thread. It starts each request at its time, sends copies on
//! every path (proxies and origin) and has the answers judged. Module `group` sends the copies of
//! one request.

pub mod group;
pub mod passthrough;

use crate::leap::report::LeapReport;
use crate::leap::report::line::Line;
use crate::leap::verdict::judging::Judging;
use crate::leap::{Asked, LeapPace, LeapRun};
use foxy_base::{Instant, clock};
use std::io;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::LocalSet;

const TICK: Duration = Duration::from_millis(50);

/// Performs a whole run. First sends `probe` twice on every path (proxies and origin) to learn
/// which fields vary by themselves. Calls `log` for each answer, and `progress` with the number of
/// requests so far. The report counts failures of paths; they are not an error.
pub fn run(
    run: &LeapRun,
    probe: &Asked,
    requests: &mut dyn Iterator<Item = Asked>,
    log: &mut dyn FnMut(&Line),
    progress: &mut dyn FnMut(u64),
) -> io::Result<LeapReport> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    LocalSet::new().block_on(&runtime, async {
        let mut judging = Judging::new(run)?;
        judging.learn(probe).await;
        judging.drive(requests, log, progress).await;
        Ok(judging.finish())
    })
}

impl Judging {
    async fn drive(
        &mut self,
        requests: &mut dyn Iterator<Item = Asked>,
        log: &mut dyn FnMut(&Line),
        progress: &mut dyn FnMut(u64),
    ) {
        let (ends, mut ended) = mpsc::unbounded_channel();
        let context = Rc::clone(&self.context);
        let (started, used) = (clock::monotonic(), clock::thread_processor_time());
        let (mut number, mut in_flight, mut next) = (0, 0, requests.next());
        loop {
            next = next.filter(|_| !self.context.run.interrupted.load(Ordering::Relaxed));
            let wait = match &next {
                None if in_flight == 0 => break,
                None => TICK,
                Some(asked) => self.wait(started, asked, number, in_flight),
            };
            if let Some(asked) = next.take_if(|_| wait.is_zero()) {
                self.late(started, &asked, number);
                if in_flight < self.context.run.most_in_flight {
                    let (context, ends) = (Rc::clone(&context), ends.clone());
                    tokio::task::spawn_local(async move {
                        let group = group::ask(context, asked, number, None).await;
                        // This send cannot fail. The receiver lives until the results of all
                        // requests have arrived.
                        let _ = ends.send(group);
                    });
                    in_flight += 1;
                } else {
                    self.report.refused += 1;
                }
                number += 1;
                progress(number);
                next = requests.next();
                tokio::task::yield_now().await;
            } else {
                tokio::select! {
                    biased;
                    Some(group) = ended.recv() => {
                        in_flight -= 1;
                        self.take(&group, log);
                    }
                    () = context.alarm.until(clock::monotonic() + wait.min(TICK)) => {}
                }
            }
            while let Ok(group) = ended.try_recv() {
                in_flight -= 1;
                self.take(&group, log);
            }
        }
        self.report.elapsed = clock::monotonic().since(started);
        self.report.generator = clock::thread_processor_time().saturating_sub(used);
    }

    /// Returns the time at which a request must start. Returns `None` if the run only keeps a
    /// number of requests in flight.
    fn due(&self, started: Instant, asked: &Asked, number: u64) -> Option<Instant> {
        match self.context.run.pace {
            LeapPace::Closed(_) => None,
            #[expect(clippy::cast_precision_loss, reason = "requests of a run are far below 2^53")]
            LeapPace::Rate(rate) => Some(started + Duration::from_secs_f64(number as f64 / rate)),
            LeapPace::Recorded(times) => Some(started + asked.at.div_f64(times)),
        }
    }

    fn wait(&self, started: Instant, asked: &Asked, number: u64, in_flight: usize) -> Duration {
        match (self.due(started, asked, number), self.context.run.pace) {
            (Some(due), _) => due.since(clock::monotonic()),
            (None, LeapPace::Closed(most))
                if in_flight >= most.min(self.context.run.most_in_flight) =>
            {
                TICK
            }
            (None, _) => Duration::ZERO,
        }
    }

    fn late(&mut self, started: Instant, asked: &Asked, number: u64) {
        if let Some(due) = self.due(started, asked, number) {
            self.report.late.add(clock::monotonic().since(due));
        }
    }
}
