//! Well-behaved clients during a flood. On eight connections, they request objects one after
//! another: a mixture of memory hits, disk hits and misses. Measures the time of each request.

use crate::origin::{GOOD, Origin};
use foxy_base::clock;
use foxy_base::random::Random;
use foxy_report::Latencies;
use foxy_testkit::http::head_length;
use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::LocalSet;
use tokio::time::timeout;

const CLIENTS: u64 = 8;

/// Number of requests that a client sends on a connection. Then the client opens a new connection.
const KEPT: u64 = 25;

/// Time limit of a request.
const PATIENCE: Duration = Duration::from_secs(10);

/// Local address of the well-behaved clients. It differs from the addresses of the flood.
const FROM: &str = "127.0.0.2:0";

/// Number of objects for memory hits, and their length in bytes.
const MEMORY: (u64, u64) = (200, 10_000);

/// Length in bytes of each object for disk hits.
const DISK: u64 = 32_768;
/// Length in bytes of each object that is not stored yet, so that a request is a miss.
const MISS: u64 = 10_000;

static UNIQUE: AtomicU64 = AtomicU64::new(0);

/// The mixture of requests that the well-behaved clients send.
#[derive(Clone, Copy, Debug)]
pub struct Mixture {
    pub proxy: SocketAddr,
    pub origin: Origin,
    /// Number of objects for disk hits. All these objects together are larger than the memory
    /// cache.
    pub disk: u64,
    /// Whether some of the requests use host names that foxy has not resolved yet.
    pub names: bool,
}

/// Measurements of one phase of the test.
#[derive(Default)]
pub struct Measured {
    pub all: Latencies,
    pub memory: Latencies,
    pub disk: Latencies,
    pub miss: Latencies,
    pub names: Latencies,
    /// Number of requests without a complete response of status 200.
    pub failures: u64,
    /// Reasons of the first few failures.
    pub reasons: Vec<String>,
}

impl Measured {
    /// Adds the result of a request. Returns false if the request failed.
    fn add(
        &mut self,
        kind: Kind,
        url: &str,
        result: Option<Result<(), String>>,
        took: Duration,
    ) -> bool {
        let why = match result {
            Some(Ok(())) => {
                self.all.add(took);
                match kind {
                    Kind::Memory => &mut self.memory,
                    Kind::Disk => &mut self.disk,
                    Kind::Miss => &mut self.miss,
                    Kind::Name => &mut self.names,
                }
                .add(took);
                return true;
            }
            Some(Err(why)) => format!("{url}: {why}"),
            None => format!("{url}: no answer within {PATIENCE:?}"),
        };
        self.failures += 1;
        if self.reasons.len() < 3 {
            self.reasons.push(why);
        }
        false
    }
}

/// A phase of the test, in which clients run on their own thread until the phase is stopped.
pub struct Phase {
    over: Arc<AtomicBool>,
    thread: std::thread::JoinHandle<Measured>,
}

impl Phase {
    pub fn begin(mixture: Mixture, seed: u64) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let until = Arc::clone(&over);
        let thread = std::thread::spawn(move || {
            let measured = Rc::new(RefCell::new(Measured::default()));
            let tasks = LocalSet::new();
            for number in 0..CLIENTS {
                let client =
                    Client { mixture, random: Random::new(seed ^ number), stream: None, used: 0 };
                tasks.spawn_local(client.run(Arc::clone(&until), Rc::clone(&measured)));
            }
            super::runtime().block_on(tasks);
            Rc::into_inner(measured).expect("all clients have ended").into_inner()
        });
        Self { over, thread }
    }

    pub fn end(self) -> Measured {
        self.over.store(true, Ordering::SeqCst);
        self.thread.join().expect("honest clients end")
    }
}

/// Requests each object once, so that foxy stores it.
pub fn fetch_all(proxy: SocketAddr, objects: Vec<(String, u64)>) -> Vec<String> {
    let tasks = LocalSet::new();
    let (objects, failed) = (Rc::new(RefCell::new(objects)), Rc::new(RefCell::new(Vec::new())));
    for _ in 0..CLIENTS {
        let (objects, failed) = (Rc::clone(&objects), Rc::clone(&failed));
        tasks.spawn_local(async move {
            let mut stream = None;
            loop {
                let Some((url, length)) = objects.borrow_mut().pop() else { return };
                if let Err(why) = ask(&mut stream, proxy, &url, length).await {
                    failed.borrow_mut().push(why);
                }
            }
        });
    }
    super::runtime().block_on(tasks);
    failed.take()
}

impl Mixture {
    /// Returns all objects that must be stored before, with their lengths, so that later requests
    /// are hits.
    pub fn stored(&self) -> Vec<(String, u64)> {
        let memory = (0..MEMORY.0).map(|number| (self.memory(number), MEMORY.1));
        // `fetch_all` starts at the end of this list. So the objects for memory hits, at the start,
        // are fetched last and remain in memory.
        memory.chain((0..self.disk).map(|number| (self.on_disk(number), DISK))).collect()
    }

    fn memory(&self, number: u64) -> String {
        self.origin.url(MEMORY.1, &format!("memory/{number}"))
    }

    fn on_disk(&self, number: u64) -> String {
        self.origin.url(DISK, &format!("disk/{number}"))
    }
}

/// The place from which foxy is expected to serve a response.
#[derive(Clone, Copy)]
enum Kind {
    Memory,
    Disk,
    Miss,
    Name,
}

struct Client {
    mixture: Mixture,
    random: Random,
    stream: Option<TcpStream>,
    used: u64,
}

impl Client {
    async fn run(mut self, over: Arc<AtomicBool>, measured: Rc<RefCell<Measured>>) {
        while !over.load(Ordering::SeqCst) {
            let (kind, url, length) = self.choose();
            if self.used.is_multiple_of(KEPT) {
                self.stream = None;
            }
            self.used += 1;
            let begun = clock::monotonic();
            let result =
                timeout(PATIENCE, ask(&mut self.stream, self.mixture.proxy, &url, length)).await;
            let took = clock::monotonic().since(begun);
            if measured.borrow_mut().add(kind, &url, result.ok(), took) {
                continue;
            }
            self.stream = None;
            // If foxy has ended, every request fails at once. This pause then limits the number of
            // attempts per second.
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    fn choose(&mut self) -> (Kind, String, u64) {
        let mixture = &self.mixture;
        match self.random.below(100) {
            0..5 if mixture.names => {
                let number = UNIQUE.fetch_add(1, Ordering::Relaxed);
                let port = mixture.origin.address.port();
                (Kind::Name, format!("http://n{number}.{GOOD}:{port}/{MISS}/name"), MISS)
            }
            0..10 => {
                let number = UNIQUE.fetch_add(1, Ordering::Relaxed);
                (Kind::Miss, mixture.origin.url(MISS, &format!("miss/{number}")), MISS)
            }
            10..40 => (Kind::Disk, mixture.on_disk(self.random.below(mixture.disk)), DISK),
            _ => (Kind::Memory, mixture.memory(self.random.below(MEMORY.0)), MEMORY.1),
        }
    }
}

/// Sends a request. Repeats it on a new connection if foxy closed the old connection without
/// sending a byte of the response.
async fn ask(
    stream: &mut Option<TcpStream>,
    proxy: SocketAddr,
    url: &str,
    length: u64,
) -> Result<(), String> {
    let reused = stream.is_some();
    match once(stream, proxy, url, length).await {
        Err((0, _)) if reused => once(stream, proxy, url, length).await.map_err(|(_, why)| why),
        result => result.map_err(|(_, why)| why),
    }
}

/// Sends the request once. The error has the number of received bytes and the reason.
async fn once(
    place: &mut Option<TcpStream>,
    proxy: SocketAddr,
    url: &str,
    length: u64,
) -> Result<(), (usize, String)> {
    let failed = |count: usize, error: std::io::Error| (count, error.to_string());
    let mut stream = match place.take() {
        Some(stream) => stream,
        None => connect(proxy).await.map_err(|error| (1, error.to_string()))?,
    };
    let host = url.trim_start_matches("http://").split('/').next().unwrap_or("");
    let text = format!("GET {url} HTTP/1.1\r\nHost: {host}\r\n\r\n");
    stream.write_all(text.as_bytes()).await.map_err(|error| failed(0, error))?;
    let mut buffer = Vec::with_capacity(64 << 10);
    let end = loop {
        if let Some(end) = head_length(&buffer) {
            break end;
        }
        let count =
            stream.read_buf(&mut buffer).await.map_err(|error| failed(buffer.len(), error))?;
        if count == 0 {
            return Err((buffer.len(), "closed before the end of the head".into()));
        }
    };
    let head = String::from_utf8_lossy(&buffer[..end]).into_owned();
    if !head.starts_with("HTTP/1.1 200 ") {
        return Err((end, head.replace("\r\n", " | ")));
    }
    let mut left = usize::try_from(length).expect("small").saturating_sub(buffer.len() - end);
    while left > 0 {
        buffer.clear();
        let count = stream.read_buf(&mut buffer).await.map_err(|error| failed(1, error))?;
        if count == 0 {
            return Err((1, format!("closed with {left} bytes to come")));
        }
        left = left.saturating_sub(count);
    }
    *place = Some(stream);
    Ok(())
}

async fn connect(proxy: SocketAddr) -> std::io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.bind(FROM.parse().expect("an address"))?;
    let stream = socket.connect(proxy).await?;
    stream.set_nodelay(true)?;
    stream.set_zero_linger()?;
    Ok(stream)
}
