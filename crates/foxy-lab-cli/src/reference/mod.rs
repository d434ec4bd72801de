//! Reference architectures of the Wisconsin Proxy Benchmark: small caching forward proxies. They
//! differ in how they handle connections, and in how they search and write the cache. The
//! benchmark's paper names a cause for each of its figures, and an option of the proxies removes
//! this cause.

mod event_loop;
mod files;
mod message;
mod pools;
mod process;

use files::Files;
use foxy_base::clock;
use message::{Answer, Incoming, WantedUrl};
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

pub use process::serve_connection;

const TIME_LIMIT: Duration = Duration::from_secs(120);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Architecture {
    ProcessPerRequest,
    Prefork,
    FixedPool,
    EventLoop,
    ThreadPerRequest,
}

impl Architecture {
    pub const ALL: [(&str, Self, &str); 5] = [
        (
            "process-per-request",
            Self::ProcessPerRequest,
            "a process for each connection; the cache is found by reading a text file for each server (CERN)",
        ),
        (
            "prefork",
            Self::Prefork,
            "64 workers; an answer goes to a temporary file, is copied into place, and then sent (Apache 1.3)",
        ),
        (
            "fixed-pool",
            Self::FixedPool,
            "32 workers, 16 connections waiting for them, any more are reset (Proxy N)",
        ),
        ("event-loop", Self::EventLoop, "one thread for everything, the index in memory (Squid)"),
        ("thread-per-request", Self::ThreadPerRequest, "a thread for each connection (Oops)"),
    ];

    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, known, _)| *known == self).map_or("", |(name, ..)| name)
    }

    pub const fn workers(self) -> Option<usize> {
        match self {
            Self::Prefork => Some(64),
            Self::FixedPool => Some(32),
            Self::ProcessPerRequest | Self::EventLoop | Self::ThreadPerRequest => None,
        }
    }
}

#[derive(Clone, Debug)]
pub struct Options {
    pub architecture: Architecture,
    pub store: PathBuf,
    pub workers: usize,
    pub backlog: usize,
    pub scan: bool,
    pub two_phase: bool,
    pub index: bool,
    pub cache: bool,
}

impl Options {
    pub fn new(architecture: Architecture, store: PathBuf) -> Self {
        Self {
            architecture,
            store,
            workers: architecture.workers().unwrap_or(0),
            backlog: 16,
            scan: architecture == Architecture::ProcessPerRequest,
            two_phase: architecture == Architecture::Prefork,
            index: architecture == Architecture::EventLoop,
            cache: true,
        }
    }
}

pub fn start(options: &Options, listener: TcpListener) -> io::Result<()> {
    let proxy = Arc::new(Proxy::open(options)?);
    match options.architecture {
        Architecture::ProcessPerRequest => process::start(options, listener),
        Architecture::Prefork => pools::prefork(&proxy, options.workers, &listener),
        Architecture::FixedPool => pools::fixed(&proxy, options.workers, options.backlog, listener),
        Architecture::ThreadPerRequest => pools::thread_each(proxy, listener),
        Architecture::EventLoop => event_loop::start(proxy, options.index, listener),
    }
}

#[derive(Debug)]
struct Proxy {
    files: Files,
    two_phase: bool,
    cache: bool,
}

impl Proxy {
    fn open(options: &Options) -> io::Result<Self> {
        let files = Files::open(&options.store, options.scan)?;
        Ok(Self { files, two_phase: options.two_phase, cache: options.cache })
    }

    /// Serves one request of a connection.
    fn serve(&self, mut client: TcpStream) {
        let _gone = self.exchange(&mut client).and_then(|()| client.shutdown(Shutdown::Write));
    }

    fn exchange(&self, client: &mut TcpStream) -> io::Result<()> {
        client.set_read_timeout(Some(TIME_LIMIT))?;
        client.set_write_timeout(Some(TIME_LIMIT))?;
        let mut incoming = Incoming::default();
        let mut piece = [0; 4096];
        let wanted = loop {
            let read = client.read(&mut piece)?;
            if read == 0 {
                return Ok(());
            }
            match incoming.take(&piece[..read]) {
                Ok(None) => {}
                Ok(Some(wanted)) => break wanted,
                Err(refusal) => return client.write_all(refusal),
            }
        };
        if self.cache
            && !wanted.reload
            && let Some(answer) = self.files.find(&wanted, clock::wall().seconds())
        {
            return client.write_all(&answer);
        }
        let Ok(bytes) = fetch(&wanted) else { return client.write_all(message::BAD_GATEWAY) };
        let answer = Answer::of(bytes, clock::wall().seconds());
        match answer.expires.filter(|_| self.cache) {
            None => client.write_all(&answer.bytes),
            Some(expires) if self.two_phase => {
                client.write_all(&self.files.keep_in_two_phases(&wanted, &answer.bytes, expires)?)
            }
            Some(expires) => {
                client.write_all(&answer.bytes)?;
                self.files.keep(&wanted, &answer.bytes, expires)
            }
        }
    }
}

fn fetch(wanted: &WantedUrl) -> io::Result<Vec<u8>> {
    let mut server = TcpStream::connect(&wanted.authority)?;
    server.set_read_timeout(Some(TIME_LIMIT))?;
    server.write_all(&wanted.text)?;
    let mut answer = Vec::new();
    server.read_to_end(&mut answer)?;
    Ok(answer)
}
