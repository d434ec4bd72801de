//! A store that speaks S3 (`moto_server`), and a relay in front of it that can fail.

use crate::support::{commands, request};
use foxy_testkit::ports::free_address;
use foxy_testkit::wait::until;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex};

const BUCKET: &str = "cache";

/// How the relay treats connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Mood {
    /// Passes all bytes on.
    Works,
    /// Closes each connection.
    Away,
    /// Accepts connections, and never answers.
    Silent,
}

pub struct S3 {
    child: Child,
    server: SocketAddr,
    relay: SocketAddr,
    mood: Arc<AtomicU8>,
    open: Arc<Mutex<Vec<TcpStream>>>,
}

impl S3 {
    /// Starts a store with an empty bucket. Returns `None` if the machine has no `moto_server`.
    pub fn start() -> Option<Self> {
        let server = free_address();
        let (host, port) = (server.ip().to_string(), server.port().to_string());
        let start = |program: PathBuf| {
            let mut command = Command::new(program);
            command.args(["-H", &host, "-p", &port]);
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().ok()
        };
        let target = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
        let own = target.with_file_name("tools").join("moto/bin/moto_server");
        let child = start(own).or_else(|| start("moto_server".into()))?;
        let (mood, open) = (Arc::<AtomicU8>::default(), Arc::<Mutex<Vec<TcpStream>>>::default());
        let relay = relay(server, Arc::clone(&mood), Arc::clone(&open));
        let s3 = Self { child, server, relay, mood, open };
        until("the start of moto_server", || {
            TcpStream::connect(server).ok()?;
            (s3.ask("PUT", "").0 == 200).then_some(())
        });
        Some(s3)
    }

    /// Returns flags for a foxy that uses this store, with names that begin with `prefix`.
    pub fn flags(&self, prefix: &str, credentials: &str) -> Vec<String> {
        let (url, endpoint) = (format!("s3://{BUCKET}/{prefix}"), format!("http://{}", self.relay));
        let flags = [("url", &*url), ("endpoint", &*endpoint), ("credentials-file", credentials)];
        flags
            .iter()
            .flat_map(|(name, value)| [format!("--cold-{name}"), value.to_string()])
            .collect()
    }

    /// Sets how the relay treats connections. Closes the present connections.
    pub fn becomes(&self, mood: Mood) {
        self.mood.store(mood as u8, Ordering::Release);
        for stream in self.open.lock().expect("sound").drain(..) {
            let _closed_already = stream.shutdown(Shutdown::Both);
        }
    }

    /// Halts the server, so that it keeps its connections and does not answer.
    pub fn halt(&self) {
        commands::signal(self.child.id(), "STOP");
    }

    pub fn kill(&mut self) {
        self.child.kill().expect("a running child");
        self.child.wait().expect("a child");
    }

    /// Returns the sizes of all objects whose names begin with `prefix`.
    pub fn objects(&self, prefix: &str) -> Vec<u64> {
        let (status, body) = self.ask("GET", &format!("?list-type=2&prefix={prefix}"));
        assert_eq!(status, 200, "{body}");
        let sizes = body.split("<Size>").skip(1);
        sizes.map(|rest| rest.split('<').next().expect("text").parse().expect("a size")).collect()
    }

    fn ask(&self, method: &str, query: &str) -> (u16, String) {
        let text = format!(
            "{method} /{BUCKET}{query} HTTP/1.1\r\nHost: {}\r\nContent-Length: 0\r\n\
             Connection: close\r\n\r\n",
            self.server
        );
        let answer = request(self.server, &text);
        (answer.status, answer.body)
    }
}

impl Drop for S3 {
    fn drop(&mut self) {
        let _ended_already = self.child.kill();
        let _ended_already = self.child.wait();
    }
}

fn relay(to: SocketAddr, mood: Arc<AtomicU8>, open: Arc<Mutex<Vec<TcpStream>>>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("bound");
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let now = mood.load(Ordering::Acquire);
            if now == Mood::Away as u8 {
                continue;
            }
            let clone = |stream: &TcpStream| stream.try_clone().expect("a descriptor");
            open.lock().expect("sound").push(clone(&stream));
            if now == Mood::Works as u8 {
                // The server may be dead.
                let Ok(server) = TcpStream::connect(to) else { continue };
                open.lock().expect("sound").push(clone(&server));
                let (one, other) = (clone(&stream), clone(&server));
                std::thread::spawn(move || pump(one, other));
                std::thread::spawn(move || pump(server, stream));
            }
        }
    });
    address
}

fn pump(mut from: TcpStream, mut to: TcpStream) {
    let mut buffer = vec![0; 64 << 10];
    while let Ok(read @ 1..) = from.read(&mut buffer) {
        if to.write_all(&buffer[..read]).is_err() {
            break;
        }
    }
    let _closed_already = to.shutdown(Shutdown::Both);
}
