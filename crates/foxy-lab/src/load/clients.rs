//! Runs load clients on threads. Each client sends one request at a time. In an open loop, requests
//! start at planned times, and the latency of a request counts from its planned start. So the delay
//! of a stalled proxy stays visible (no coordinated omission).

use crate::load::client::{Client, ClientTarget};
use crate::load::fault::Fault;
use crate::load::judge::judge;
use crate::load::options::{LoadOptions, Pace, Stop};
use crate::load::outcome::{ErrorCause, LoadReport, Unanswered};
use crate::wire;
use foxy_base::{Instant, clock};
use foxy_workload::{Request, RequestStream};
use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;

/// The time after the end of an open-loop run in which clients still send requests whose planned
/// start was before the end.
const LEEWAY: Duration = Duration::from_millis(100);
const TICK: Duration = Duration::from_millis(50);

struct Run {
    options: LoadOptions,
    first: u64,
    wire: ClientTarget,
    stream: Mutex<(RequestStream, u64)>,
    taken: AtomicU64,
    started: Instant,
    /// The permits of an open loop, in which requests start at planned times. At the planned start
    /// of a request, the pacing thread adds a permit. A client takes a permit before it sends a
    /// request.
    due: Semaphore,
}

enum Next {
    Send(Due),
    Leave,
}

struct Due {
    request: Request,
    number: u64,
    intended: Instant,
    /// The part of the start delay that the load generator alone caused. `None` if no client was
    /// free, so that the proxy caused the delay.
    late: Option<Duration>,
}

impl Run {
    async fn take(&self) -> Option<Next> {
        let mut waited = false;
        if self.options.pace.is_open() {
            match self.due.try_acquire() {
                Ok(permit) => permit.forget(),
                Err(_) => {
                    waited = true;
                    self.due.acquire().await.ok()?.forget();
                }
            }
        }
        let (request, number) = {
            let mut stream = self.stream.lock().unwrap_or_else(PoisonError::into_inner);
            stream.1 += 1;
            (stream.0.next_request(), stream.1 - 1)
        };
        self.taken.store(number + 1, Ordering::Relaxed);
        let intended = self.begins(number)?;
        // If a client was already waiting for this request, this machine alone caused the delay. So
        // the client sends the request even after the end of the run.
        if self.options.pace.is_open() && !waited && self.is_over() {
            return Some(Next::Leave);
        }
        let late = waited.then(|| clock::monotonic().since(intended));
        Some(Next::Send(Due { request, number: self.first + number, intended, late }))
    }

    fn is_over(&self) -> bool {
        let now = clock::monotonic().since(self.started);
        matches!(self.options.stop, Stop::After(time) if now >= time + LEEWAY)
    }

    /// Returns the planned start of request `number`. Returns `None` if the run has ended by then.
    fn begins(&self, number: u64) -> Option<Instant> {
        let model = &self.options.workload.model;
        let intended = match self.options.pace {
            #[expect(clippy::cast_precision_loss, reason = "requests of a run are far below 2^53")]
            Pace::Open { rate } => self.started + Duration::from_secs_f64(number as f64 / rate),
            Pace::Recorded { times } => self.started + model.recorded(number)?.div_f64(times),
            Pace::Closed | Pace::Random { .. } => clock::monotonic(),
        };
        let over = match self.options.stop {
            Stop::Requests(count) => number >= count,
            Stop::After(time) => intended >= self.started + time,
        };
        let over = over || model.requests().is_some_and(|requests| number >= requests);
        (!over && !self.options.interrupted.load(Ordering::Relaxed)).then_some(intended)
    }

    /// Sleeps until `time`. Returns false if the stop flag ends the run first.
    fn wait_until(&self, time: Instant) -> bool {
        loop {
            let left = time.since(clock::monotonic());
            if left.is_zero() || self.options.interrupted.load(Ordering::Relaxed) {
                return left.is_zero();
            }
            std::thread::sleep(left.min(TICK));
        }
    }

    /// Releases each request of an open loop at its planned start. Runs on its own thread, because
    /// the runtime's timers round up to whole milliseconds. The rounding would count as latency of
    /// the proxy.
    fn pace(&self) {
        let mut number = 0;
        while let Some(intended) = self.begins(number) {
            if !self.wait_until(intended) {
                break;
            }
            self.due.add_permits(1);
            number += 1;
        }
        // Each client gets one more permit. It wakes up and notices the end of the run.
        self.due.add_permits(self.options.clients.max(1));
    }
}

pub fn run(options: &LoadOptions, progress: &mut dyn FnMut(u64)) -> io::Result<LoadReport> {
    let started = clock::monotonic();
    let run = Arc::new(Run {
        wire: ClientTarget::new(options),
        stream: Mutex::new((RequestStream::new(&options.workload, options.seed), 0)),
        options: options.clone(),
        first: wire::first_of_run(),
        taken: AtomicU64::new(0),
        started,
        due: Semaphore::new(0),
    });
    let threads = options.threads.clamp(1, options.clients.max(1));
    let mut handles = Vec::new();
    for thread in 0..threads {
        let clients = options.clients.max(1) / threads
            + usize::from(thread < options.clients.max(1) % threads);
        let run = Arc::clone(&run);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        handles.push(std::thread::Builder::new().name("load".into()).spawn(move || {
            let local = tokio::task::LocalSet::new();
            local.block_on(&runtime, drive(run, clients))
        })?);
    }
    if options.pace.is_open() {
        let run = Arc::clone(&run);
        std::thread::Builder::new().name("pace".into()).spawn(move || run.pace())?;
    }
    while !handles.iter().all(std::thread::JoinHandle::is_finished) {
        std::thread::sleep(Duration::from_millis(20));
        progress(run.taken.load(Ordering::Relaxed));
    }
    let mut report = LoadReport::default();
    for handle in handles {
        let part = handle
            .join()
            .map_err(|_| io::Error::other("a load thread panicked; its counts are lost"))?;
        report.merge(&part?);
    }
    if let Stop::After(time) = options.stop {
        report.elapsed = report.elapsed.min(time.max(report.answering.last_right()));
    }
    Ok(report)
}

async fn drive(run: Arc<Run>, clients: usize) -> io::Result<LoadReport> {
    let report = Rc::new(RefCell::new(LoadReport::default()));
    let start = |_| tokio::task::spawn_local(client(Arc::clone(&run), Rc::clone(&report)));
    let tasks: Vec<_> = (0..clients).map(start).collect();
    for task in tasks {
        task.await.map_err(io::Error::other)?;
    }
    let mut report = report.take();
    report.end_of_thread(clock::monotonic().since(run.started));
    Ok(report)
}

async fn client(run: Arc<Run>, report: Rc<RefCell<LoadReport>>) {
    let mut client = Client::new(run.wire.clone());
    while let Some(next) = run.take().await {
        let Next::Send(Due { request, number, intended, late }) = next else {
            report.borrow_mut().fail(ErrorCause::NotSent);
            continue;
        };
        let (begun, sent) = (clock::wall(), clock::monotonic().since(run.started));
        let fault = run.options.fault.as_deref();
        let phase = fault.map(Fault::phase);
        let answer = client.ask(&request, number, begun).await;
        let outcome = answer.map(|answer| (answer, judge(&request, number, &answer, begun)));
        let mut report = report.borrow_mut();
        if let Some(late) = late {
            report.generator.late.add(late);
        }
        if run.options.pace.is_open() {
            report.sending = report.sending.max(Some(sent));
        }
        let ended = clock::monotonic();
        report.take(&request, &outcome, ended.since(intended), ended.since(run.started));
        if let Some((began, fault)) = phase.zip(fault) {
            let failed = !matches!(outcome, Ok((_, Ok(_))) | Err(Unanswered::BrokenOff));
            report.around_fault.get_or_insert_default().count(began, fault.phase(), failed);
        }
    }
}
