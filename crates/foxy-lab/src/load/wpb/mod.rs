//! Runs the Wisconsin Proxy Benchmark 1.0 over the network (paper 003 in docs/figures.md). Each
//! client sends one request after another, each on a new connection. A *point* is a test with a
//! fixed number of clients. It has three parts: a control run without a cache, and two phases.
//! `foxy_workload::wpb` chooses the requests.

mod exchange;
mod report;
#[cfg(test)]
mod tests;

pub use report::{Cause, Part, PartReport, PointReport, measurable};

use crate::wire;
use foxy_base::clock;
use foxy_workload::wpb::{Phase, Wpb, WpbClient};
use std::cell::RefCell;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::task::LocalSet;

/// The default delay before each answer of the benchmark's servers.
pub const LATENCY: Duration = Duration::from_secs(3);
/// The number of clients for each server of the benchmark.
pub const CLIENTS_PER_SERVER: u32 = 4;

/// Returns the scale of a run: `latency` (the delay of the servers' answers), divided by the
/// default delay.
pub fn scale(latency: Duration) -> f64 {
    latency.as_secs_f64() / LATENCY.as_secs_f64()
}

/// The kind of server that receives the requests, which determines the form of requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Route {
    /// Absolute form, to a forward proxy.
    Forward {
        /// The addresses of the servers, by number.
        servers: Vec<SocketAddr>,
    },
    /// Origin form, to a reverse proxy with one server.
    Reverse {
        /// The value of the Host field.
        host: String,
    },
}

/// The options of one point of the benchmark: a test with a fixed number of clients, in three
/// parts.
#[derive(Clone, Debug)]
pub struct WpbRun {
    /// The address of the proxy or origin that receives the requests.
    pub target: SocketAddr,
    /// The form of requests, and the addresses of the benchmark's servers.
    pub route: Route,
    /// The number of clients.
    pub clients: u32,
    /// The parameters of the workload.
    pub knobs: Wpb,
    /// The delay of each answer of the benchmark's servers.
    pub latency: Duration,
    /// The number of bytes per second that a slow client reads. With `None`, clients read as fast
    /// as they can.
    pub slow: Option<u64>,
    /// The time limit of an answer. Slow clients get additional time for reading.
    pub time_limit: Duration,
    /// Once set, no more requests start.
    pub interrupted: Arc<AtomicBool>,
}

/// Runs a point (a test with a fixed number of clients) to its end. Calls `progress` with the
/// number of started requests, and `ended` after each part. The report counts failed requests; they
/// are not an error.
///
/// The control part repeats phase 1 with URLs whose answers have the directive `no-store`. So the
/// proxy works without its cache. (`Cache-Control: no-cache` in requests would still let the proxy
/// store answers.)
pub fn run(
    run: &WpbRun,
    progress: &mut dyn FnMut(u64),
    ended: &mut dyn FnMut(Part),
) -> io::Result<PointReport> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let begun = Rc::new(AtomicU64::new(0));
    let first = wire::first_of_run();
    let mut clients: Vec<WpbClient> =
        (0..run.clients).map(|n| WpbClient::new(&run.knobs, n)).collect();
    let mut part = |part: Part, clients: Vec<WpbClient>| {
        let everyone = together(run, part, clients, first, Rc::clone(&begun), progress);
        let counted = LocalSet::new().block_on(&runtime, everyone);
        ended(part);
        counted
    };
    let (control, _) = part(Part::Control, clients.clone())?;
    let first;
    (first, clients) = part(Part::First, clients)?;
    let (second, _) = part(Part::Second, clients)?;
    let whole = !run.interrupted.load(Ordering::Relaxed);
    Ok(PointReport {
        clients: run.clients,
        servers: run.knobs.servers,
        parts: [control, first, second],
        whole,
    })
}

/// Sends one uncacheable request to check whether the proxy answers. The inner error is a failure
/// of the request. The outer error is a failure of the async runtime.
pub fn probe(run: &WpbRun) -> io::Result<Result<(), Cause>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let run = WpbRun { latency: Duration::ZERO, slow: None, ..run.clone() };
    let request = WpbClient::new(&run.knobs, u32::MAX).next_request();
    let Some(request) = request else { return Ok(Ok(())) };
    Ok(runtime.block_on(exchange::ask(&run, &request, wire::first_of_run(), false)).map(|_| ()))
}

/// Runs one part of the test with all clients, and returns the clients for the next part. The
/// first request has the number `first`.
async fn together(
    run: &WpbRun,
    part: Part,
    clients: Vec<WpbClient>,
    first: u64,
    begun: Rc<AtomicU64>,
    progress: &mut dyn FnMut(u64),
) -> io::Result<(PartReport, Vec<WpbClient>)> {
    let (started, used) = (clock::monotonic(), clock::thread_processor_time());
    let report = Rc::new(RefCell::new(PartReport::default()));
    let run = Rc::new(run.clone());
    let begin = |client| {
        let (run, report, begun) = (Rc::clone(&run), Rc::clone(&report), Rc::clone(&begun));
        tokio::task::spawn_local(through(run, part, client, first, begun, report))
    };
    let tasks: Vec<_> = clients.into_iter().map(begin).collect();
    while !tasks.iter().all(tokio::task::JoinHandle::is_finished) {
        tokio::time::sleep(Duration::from_millis(2)).await;
        progress(begun.load(Ordering::Relaxed));
    }
    let mut clients = Vec::new();
    for task in tasks {
        clients.push(task.await.map_err(io::Error::other)?);
    }
    let mut report = report.take();
    report.elapsed = clock::monotonic().since(started);
    report.generator = clock::thread_processor_time().saturating_sub(used);
    Ok((report, clients))
}

async fn through(
    run: Rc<WpbRun>,
    part: Part,
    mut client: WpbClient,
    first: u64,
    begun: Rc<AtomicU64>,
    report: Rc<RefCell<PartReport>>,
) -> WpbClient {
    let phase = if part == Part::Second { Phase::Second } else { Phase::First };
    while client.phase() == Some(phase) && !run.interrupted.load(Ordering::Relaxed) {
        let Some(request) = client.next_request() else { break };
        let number = first + begun.fetch_add(1, Ordering::Relaxed);
        let began = clock::monotonic();
        let outcome = exchange::ask(&run, &request, number, part != Part::Control).await;
        report.borrow_mut().take(&request, outcome, clock::monotonic().since(began));
    }
    client
}
