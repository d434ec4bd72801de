//! A load run: clients over threads, closed or open loop, until a count or a time.
//! Open-loop latency counts from the *intended* start, so a stalled proxy cannot hide (no coordinated omission).

use crate::client::Client;
use crate::outcome::LoadReport;
use foxy_base::{Instant, clock};
use foxy_workload::{RequestStream, Workload};
use std::cell::RefCell;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::Semaphore;

/// How requests name their origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Absolute form, to a forward proxy: `origin` is the authority in each URL.
    Forward {
        /// `host:port` of the origin.
        origin: String,
    },
    /// Origin form, to a reverse proxy or straight to an origin.
    Reverse {
        /// What the Host line says.
        host: String,
    },
}

/// When requests start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// Each client starts the next request when it has the answer.
    Closed,
    /// Requests start at this rate (1/s), evenly spaced, whether or not answers come.
    Open {
        /// Requests a second.
        rate: f64,
    },
}

/// When the run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// After this many requests.
    Requests(u64),
    /// After this time.
    After(Duration),
}

/// A load run as a value.
#[derive(Clone, Debug)]
pub struct LoadOptions {
    /// The proxy.
    pub target: SocketAddr,
    /// Forward or reverse.
    pub mode: Mode,
    /// What is asked for.
    pub workload: Workload,
    /// How many clients, each with a connection of its own.
    pub clients: usize,
    /// How many threads they run on.
    pub threads: usize,
    /// When requests start.
    pub pace: Pace,
    /// When the run ends.
    pub stop: Stop,
    /// The seed of every choice.
    pub seed: u64,
    /// After how long an answer counts as missing.
    pub time_limit: Duration,
    /// Number of the first request; runs that must not mistake each other's replies start at different ones.
    pub first_request: u64,
    /// Once set, no more requests begin: the run ends when those under way have ended.
    pub interrupted: Arc<AtomicBool>,
}

/// What the clients of one run share.
struct Run {
    options: LoadOptions,
    stream: RequestStream,
    taken: AtomicU64,
    started: Instant,
    /// In an open loop one permit for each request whose time has come.
    due: Semaphore,
}

impl Run {
    /// The number of the next request and when it should start; `None` when the run is over. In an open loop it
    /// waits for that time.
    async fn take(&self) -> Option<(u64, Instant)> {
        if matches!(self.options.pace, Pace::Open { .. }) {
            self.due.acquire().await.ok()?.forget();
        }
        let number = self.taken.fetch_add(1, Ordering::Relaxed);
        self.begins(number).map(|intended| (number, intended))
    }

    /// When request `number` should start; `None` when it is beyond the end of the run.
    fn begins(&self, number: u64) -> Option<Instant> {
        let intended = match self.options.pace {
            Pace::Closed => clock::monotonic(),
            #[expect(clippy::cast_precision_loss, reason = "requests of a run are far below 2^53")]
            Pace::Open { rate } => self.started + Duration::from_secs_f64(number as f64 / rate),
        };
        let over = match self.options.stop {
            Stop::Requests(count) => number >= count,
            Stop::After(time) => intended >= self.started + time,
        };
        (!over && !self.options.interrupted.load(Ordering::Relaxed)).then_some(intended)
    }

    /// Lets each request of an open loop start at its time. A thread of its own, since the runtime's timers round up
    /// to whole milliseconds, which would be read as the proxy's latency.
    fn pace(&self) {
        let mut number = 0;
        while let Some(intended) = self.begins(number) {
            std::thread::sleep(intended.since(clock::monotonic()));
            self.due.add_permits(1);
            number += 1;
        }
        // One more for each client, to find that the run is over.
        self.due.add_permits(self.options.clients.max(1));
    }
}

/// Runs to the end and says what was seen. `progress` is called with the number of requests begun, now and then.
///
/// # Errors
/// When a thread or its runtime cannot be had, or panics. Failed requests are counted, not errors.
pub fn run(options: &LoadOptions, progress: &mut dyn FnMut(u64)) -> io::Result<LoadReport> {
    let stream = RequestStream::new(&options.workload, options.seed);
    let started = clock::monotonic();
    let run = Arc::new(Run {
        options: options.clone(),
        stream,
        taken: AtomicU64::new(0),
        started,
        due: Semaphore::new(0),
    });
    let threads = options.threads.clamp(1, options.clients.max(1));
    let mut handles = Vec::new();
    for thread in 0..threads {
        let clients =
            options.clients.max(1) / threads + usize::from(thread < options.clients.max(1) % threads);
        let run = Arc::clone(&run);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        handles.push(std::thread::Builder::new().name("load".into()).spawn(move || {
            let local = tokio::task::LocalSet::new();
            local.block_on(&runtime, drive(run, clients))
        })?);
    }
    if matches!(options.pace, Pace::Open { .. }) {
        let run = Arc::clone(&run);
        std::thread::Builder::new().name("pace".into()).spawn(move || run.pace())?;
    }
    while !handles.iter().all(std::thread::JoinHandle::is_finished) {
        std::thread::sleep(Duration::from_millis(20));
        progress(run.taken.load(Ordering::Relaxed));
    }
    let mut report = LoadReport::default();
    for handle in handles {
        let part =
            handle.join().map_err(|_| io::Error::other("a load thread panicked; its counts are lost"))?;
        report.merge(&part?);
    }
    Ok(report)
}

/// Asks once for each object of the workload, in order: fills a cache before it is measured.
///
/// # Errors
/// As [`run`].
pub fn warm_up(options: &LoadOptions, progress: &mut dyn FnMut(u64)) -> io::Result<LoadReport> {
    let workload = Workload { popularity: foxy_workload::Popularity::InOrder, ..options.workload.clone() };
    let stop = Stop::Requests(workload.objects);
    run(&LoadOptions { workload, stop, pace: Pace::Closed, ..options.clone() }, progress)
}

/// The clients of one thread; they share one report.
async fn drive(run: Arc<Run>, clients: usize) -> io::Result<LoadReport> {
    let report = Rc::new(RefCell::new(LoadReport::default()));
    let start = |_| tokio::task::spawn_local(client(Arc::clone(&run), Rc::clone(&report)));
    let tasks: Vec<_> = (0..clients).map(start).collect();
    for task in tasks {
        task.await.map_err(io::Error::other)?;
    }
    let mut report = report.take();
    report.elapsed = clock::monotonic().since(run.started);
    Ok(report)
}

async fn client(run: Arc<Run>, report: Rc<RefCell<LoadReport>>) {
    let options = &run.options;
    let mut client = Client::new(options.target, options.mode.clone(), options.time_limit);
    while let Some((number, intended)) = run.take().await {
        let id = options.first_request + number;
        match client.ask(run.stream.object_at(number), id).await {
            Ok(answer) => report.borrow_mut().succeed(id, &answer, clock::monotonic().since(intended)),
            Err(cause) => report.borrow_mut().fail(cause),
        }
    }
}
