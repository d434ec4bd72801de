//! Runs robots: clients that request pages at random times (a Poisson process), then the embedded
//! objects of each page. Each robot has a few connections. A plan decides how many robots are
//! active at each moment.

use crate::load::client::{Client, ClientTarget};
use crate::load::judge::judge;
use crate::load::options::LoadOptions;
use crate::load::outcome::{ErrorCause, LoadReport};
use crate::load::plan::Live;
use crate::load::plan::Plan;
use crate::wire;
use foxy_base::{Instant, Random, clock};
use foxy_workload::polymix::{IDLE_LIMIT, Side, connection_uses};
use foxy_workload::{Content, Request, RequestStream};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::timeout;

const MOST_OUTSTANDING: u64 = 50_000;
const SWEEP: Duration = Duration::from_secs(1);
const TICK: Duration = Duration::from_millis(100);
/// The distance between the numbers of two page requests. Requests for embedded objects use the
/// numbers in between.
const NUMBERS: u64 = 16;

/// The robots (clients) of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Robots {
    /// The number of robots (clients).
    pub count: usize,
    /// The number of connections per robot (client). Further requests wait in a queue. The wait of
    /// these requests does not count as response time.
    pub connections: usize,
    /// The page requests per second that all robots (clients) together start at full load.
    pub starts: f64,
}

struct Arrival {
    request: Request,
    number: u64,
    intended: Instant,
    section: usize,
    robot: usize,
}

/// Runs robots (clients) to the end of the plan. Returns one report for each section of the plan.
/// Calls `progress` with the number of started requests.
pub fn run(
    options: &LoadOptions,
    robots: Robots,
    plan: &mut dyn Plan,
    progress: &mut dyn FnMut(u64),
) -> io::Result<Vec<LoadReport>> {
    let live = Arc::new(Live::default());
    let wire = ClientTarget::new(options);
    let started = clock::monotonic();
    let (mut senders, mut handles) = (Vec::new(), Vec::new());
    let threads = options.threads.clamp(1, robots.count.max(1));
    for _ in 0..threads {
        let (sender, receiver) = unbounded_channel();
        senders.push(sender);
        let group = Group::new(&wire, &live, robots, threads, plan.sections());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        handles.push(std::thread::Builder::new().name("robots".into()).spawn(move || {
            let local = tokio::task::LocalSet::new();
            local.block_on(&runtime, group.run(receiver))
        })?);
    }
    let (not_sent, sending) = begin_all(options, robots, plan, &live, started, &senders, progress);
    drop(senders);
    let mut sections = vec![LoadReport::default(); plan.sections()];
    for handle in handles {
        let parts = handle
            .join()
            .map_err(|_| io::Error::other("a load thread panicked; its counts are lost"))?;
        sections.iter_mut().zip(&parts).for_each(|(sum, part)| sum.merge(part));
    }
    if let Some(last) = sections.last_mut() {
        last.errors[ErrorCause::NotSent as usize] += not_sent;
        last.sending = Some(sending);
    }
    Ok(sections)
}

/// Starts page requests until the plan ends. Returns the number of requests that were not sent
/// because too many were open, and the time of the last start.
fn begin_all(
    options: &LoadOptions,
    robots: Robots,
    plan: &mut dyn Plan,
    live: &Live,
    started: Instant,
    senders: &[UnboundedSender<Arrival>],
    progress: &mut dyn FnMut(u64),
) -> (u64, Duration) {
    let mut stream = RequestStream::new(&options.workload, options.seed);
    let mut random = Random::new(options.seed ^ 0x726f_626f_7473);
    let first = wire::first_of_run();
    let (mut next, mut starts, mut not_sent, mut last) = (started, 0, 0, Duration::ZERO);
    let mut section = 0;
    loop {
        let seen = live.seen(stream.is_frozen());
        let Some(step) = plan.step(next.since(started), &seen) else { return (not_sent, last) };
        if std::mem::replace(&mut section, step.section) != step.section {
            stream.begin_phase();
        }
        progress(seen.begun);
        if options.interrupted.load(Relaxed) {
            return (not_sent, last);
        }
        let rate = robots.starts * step.factors.load;
        let gap = -(1.0 - random.unit()).ln() / rate.max(1e-9);
        // The load may change during a long pause. A Poisson process has no memory, so the code may
        // draw the rest of the pause again after each `TICK`.
        let begins = gap <= TICK.as_secs_f64();
        next = next + if begins { Duration::from_secs_f64(gap) } else { TICK };
        std::thread::sleep(next.since(clock::monotonic()));
        if !begins {
            continue;
        }
        let active = (robots.count as f64 * step.factors.load).ceil() as u64;
        let robot = random.below(active.clamp(1, robots.count.max(1) as u64)) as usize;
        let request = stream.next_request_with(&step.factors);
        last = next.since(started);
        let number = first + starts * NUMBERS;
        starts += 1;
        if seen.begun - seen.ended >= MOST_OUTSTANDING {
            not_sent += 1;
            continue;
        }
        live.begin();
        let arrival = Arrival { request, number, intended: next, section: step.section, robot };
        // This send fails only if the receiving thread panicked. `join` reports the panic.
        let _ = senders[robot % senders.len()].send(arrival);
    }
}

struct Group {
    wire: ClientTarget,
    started: Instant,
    live: Arc<Live>,
    connections: usize,
    threads: usize,
    robots: RefCell<Vec<Robot>>,
    reports: RefCell<Vec<LoadReport>>,
    opened: Cell<u64>,
    busy: Cell<usize>,
    ended: Notify,
}

#[derive(Default)]
struct Robot {
    idle: Vec<(Client, Instant)>,
    busy: usize,
    waiting: VecDeque<Arrival>,
}

impl Group {
    fn new(
        wire: &ClientTarget,
        live: &Arc<Live>,
        robots: Robots,
        threads: usize,
        sections: usize,
    ) -> Self {
        let own = robots.count.div_ceil(threads);
        Self {
            wire: wire.clone(),
            started: clock::monotonic(),
            live: Arc::clone(live),
            connections: robots.connections,
            threads,
            robots: RefCell::new((0..own).map(|_| Robot::default()).collect()),
            reports: RefCell::new(vec![LoadReport::default(); sections]),
            opened: Cell::new(0),
            busy: Cell::new(0),
            ended: Notify::new(),
        }
    }

    async fn run(self, mut arrivals: UnboundedReceiver<Arrival>) -> Vec<LoadReport> {
        let group = Rc::new(self);
        let mut sweep = tokio::time::interval(SWEEP);
        loop {
            tokio::select! {
                arrival = arrivals.recv() => match arrival {
                    Some(arrival) => group.offer(arrival),
                    None => break,
                },
                _ = sweep.tick() => group.close_idle(),
            }
        }
        if timeout(group.wire.time_limit, group.all_ended()).await.is_err() {
            group.give_up_waiting();
            group.all_ended().await;
        }
        let mut reports = group.reports.take();
        if let Some(last) = reports.last_mut() {
            last.end_of_thread(clock::monotonic().since(group.started));
        }
        reports
    }

    async fn all_ended(&self) {
        while self.busy.get() > 0 {
            self.ended.notified().await;
        }
    }

    /// Counts the requests that still wait for a connection as not sent.
    fn give_up_waiting(&self) {
        let mut reports = self.reports.borrow_mut();
        for robot in self.robots.borrow_mut().iter_mut() {
            robot
                .waiting
                .drain(..)
                .for_each(|arrival| reports[arrival.section].fail(ErrorCause::NotSent));
        }
    }

    fn close_idle(&self) {
        let now = clock::monotonic();
        for robot in self.robots.borrow_mut().iter_mut() {
            robot.idle.retain(|(_, since)| now.since(*since) < IDLE_LIMIT);
        }
    }

    fn offer(self: &Rc<Self>, arrival: Arrival) {
        let mut robots = self.robots.borrow_mut();
        let robot = &mut robots[arrival.robot / self.threads];
        let ready = robot.idle.iter().rposition(|(client, _)| client.leads_to(&arrival.request));
        let client = match ready {
            Some(at) => robot.idle.remove(at).0,
            None if robot.busy + robot.idle.len() < self.connections => {
                Client::new(self.wire.clone())
            }
            // All connections are open to other servers. So the client that was idle longest gets
            // this request, and closes its old connection.
            None if !robot.idle.is_empty() => robot.idle.remove(0).0,
            None => return robot.waiting.push_back(arrival),
        };
        robot.busy += 1;
        self.busy.set(self.busy.get() + 1);
        tokio::task::spawn_local(Rc::clone(self).work(client, arrival));
    }

    /// Sends a request, then all requests that waited for a connection of this robot (client).
    async fn work(self: Rc<Self>, mut client: Client, mut arrival: Arrival) {
        let mut waited = false;
        loop {
            self.carry(&mut client, &arrival, waited).await;
            let mut robots = self.robots.borrow_mut();
            let robot = &mut robots[arrival.robot / self.threads];
            match robot.waiting.pop_front() {
                Some(next) => (arrival, waited) = (next, true),
                None => {
                    robot.busy -= 1;
                    if client.is_connected() {
                        client.rest();
                        robot.idle.push((client, clock::monotonic()));
                    }
                    break;
                }
            }
        }
        self.busy.set(self.busy.get() - 1);
        self.ended.notify_one();
    }

    async fn carry(self: &Rc<Self>, client: &mut Client, arrival: &Arrival, waited: bool) {
        let &Arrival { request, number, intended, section, robot } = arrival;
        if !client.leads_to(&request) {
            client.disconnect(self.uses(&request));
        }
        let (begun, now) = (clock::wall(), clock::monotonic());
        let answer = client.ask(&request, number, begun).await;
        let outcome = answer.map(|answer| (answer, judge(&request, number, &answer, begun)));
        let ended = clock::monotonic();
        let latency = ended.since(if waited { now } else { intended });
        {
            let report = &mut self.reports.borrow_mut()[section];
            if !waited {
                report.generator.late.add(now.since(intended));
            }
            report.take(&request, &outcome, latency, ended.since(self.started));
        }
        self.live.end(&request, &outcome, latency);
        if matches!(outcome, Ok((_, Ok(_)))) {
            for (number, request) in (number + 1..).zip(request.embedded()) {
                self.live.begin();
                self.offer(Arrival { request, number, intended: ended, section, robot });
            }
        }
    }

    fn uses(&self, request: &Request) -> u32 {
        self.opened.set(self.opened.get() + 1);
        match request.content {
            Content::Document(_) => connection_uses(Side::Client, self.opened.get()),
            Content::Object(..) => u32::MAX,
        }
    }
}
