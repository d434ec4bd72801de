//! A pass-through proxy: it stores nothing and forwards each request on a new connection. It shows
//! how many bytes a path without a cache fetches (requirements R122 and R127 of `foxy figure
//! requirements`). It is a Multiplier (LEAP's request copier) with one path.

use crate::leap::front::{Front, serve};
use crate::leap::report::LeapReport;
use crate::leap::{LeapRun, Manner, Outgoing, Path};
use crate::wire::tls::Certificates;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::JoinHandle;
use std::time::Duration;

/// The name of a pass-through proxy's only path (its target server) in reports.
pub const PASSTHROUGH: &str = "passthrough";

pub const TIME_LIMIT: Duration = Duration::from_secs(60);

/// Returns the options of a pass-through proxy. If `parent` (a parent proxy) is set, every request
/// goes there. Otherwise a request goes to the address in its URL, if that address is loopback or
/// private.
pub fn passing_through(parent: Option<SocketAddr>, interrupted: Arc<AtomicBool>) -> LeapRun {
    let (manner, address) = match parent {
        Some(address) => (Manner::Reverse, address),
        None => (Manner::Named, SocketAddr::from(([0; 4], 0))),
    };
    let path = Path { name: PASSTHROUGH.into(), address, manner };
    LeapRun {
        time_limit: TIME_LIMIT,
        most_in_flight: 1024,
        interrupted,
        ..LeapRun::new(vec![path])
    }
}

/// A Multiplier (LEAP's request copier) or a pass-through proxy that runs on its own thread.
/// Dropping the value stops the thread.
#[derive(Debug)]
pub struct Multiplier {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<io::Result<LeapReport>>>,
}

impl Multiplier {
    /// Starts serving on a new thread. Setting the run's `interrupted` flag also stops the thread.
    pub fn start(run: LeapRun, front: Front) -> io::Result<Self> {
        let (address, stop) = (front.listener.local_addr()?, Arc::clone(&run.interrupted));
        let serve = move || serve(&run, None, front, &mut |_| {}, &mut |_| {});
        let thread = std::thread::Builder::new().name("multiplier".into()).spawn(serve)?;
        Ok(Self { address, stop, thread: Some(thread) })
    }

    /// Starts a pass-through proxy on a free loopback port.
    pub fn pass_through(parent: Option<SocketAddr>) -> io::Result<Self> {
        Self::pass_through_tls(parent, None, Outgoing::default(), TIME_LIMIT)
    }

    /// Starts a pass-through proxy that accepts TLS from clients and uses TLS for `https` URLs.
    /// `time_limit` limits the duration of an exchange, and so also of [`Multiplier::stop`].
    pub fn pass_through_tls(
        parent: Option<SocketAddr>,
        certificates: Option<Certificates>,
        outgoing: Outgoing,
        time_limit: Duration,
    ) -> io::Result<Self> {
        let authority = parent.map(|parent| parent.to_string());
        let any_host = parent.is_some();
        let front = Front { authority, any_host, certificates, ..Front::here()? };
        Self::start(
            LeapRun { outgoing, time_limit, ..passing_through(parent, Arc::default()) },
            front,
        )
    }

    /// Returns the address of the listener.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Stops accepting requests, waits for the open requests and returns the report.
    pub fn stop(mut self) -> io::Result<LeapReport> {
        self.stop.store(true, Relaxed);
        let Some(thread) = self.thread.take() else {
            return Err(io::ErrorKind::NotConnected.into());
        };
        thread.join().map_err(|_| io::Error::other("the Multiplier panicked"))?
    }
}

impl Drop for Multiplier {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panicked thread has already printed its panic, so the result is not needed.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::leap::tests::{honest, run_of};
    use crate::leap::{Asked, Verdict};
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    /// With a configured parent proxy, every request goes to it. Otherwise a request goes to the
    /// address in its URL.
    #[test]
    fn every_request_is_passed_on() {
        let origin = honest();
        for parent in [Some(origin), None] {
            let proxy = Multiplier::pass_through(parent).expect("started");
            let authority = origin.to_string();
            let run = run_of(&[
                ("direct", origin, Manner::Direct),
                ("pt", proxy.address(), Manner::Forward),
            ]);
            let asked =
                |path: &str| Asked::get(authority.as_str().into(), path.into(), Duration::ZERO);
            let mut requests = ["/a", "/a"].into_iter().map(asked);
            let report =
                crate::leap::run(&run, &asked("/probe"), &mut requests, &mut |_| {}, &mut |_| {});
            let report = report.expect("run");
            assert_eq!(report.paths[1].count(Verdict::Ok), 2, "{:?}", report.paths[1].examples);
            assert_eq!(proxy.stop().expect("served").paths[0].answers, 4);
        }
    }

    #[test]
    fn an_exchange_is_given_up_when_the_time_that_it_is_told_is_over() {
        let silent = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let origin = silent.local_addr().expect("bound");
        let (limit, outgoing) = (Duration::from_millis(20), Outgoing::default());
        let proxy =
            Multiplier::pass_through_tls(Some(origin), None, outgoing, limit).expect("started");
        let mut client = TcpStream::connect(proxy.address()).expect("connected");
        client.write_all(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").expect("sent");
        let mut answer = String::new();
        client.read_to_string(&mut answer).expect("text");
        assert!(answer.starts_with("HTTP/1.1 504 "), "{answer}");
    }
}
