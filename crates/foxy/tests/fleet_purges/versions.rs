//! An origin whose objects have versions. The answer to a request has the version that was newest
//! when the request came. Some answers are slow, so purges overtake them.

use crate::support::Response;
use foxy_testkit::http::{header, ok, read_request};
use std::collections::BTreeMap;
use std::io::Write;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Every answer of this number is slow.
const SLOW: u64 = 8;
const DELAY: Duration = Duration::from_millis(40);
/// Number of lines in the body of a large object.
const LARGE: usize = 8_000;

pub struct Versions {
    address: SocketAddr,
    newest: Arc<Mutex<BTreeMap<String, u64>>>,
    requests: Arc<AtomicU64>,
}

impl Versions {
    /// Starts the origin on loopback.
    pub fn start() -> Self {
        Self::start_at("127.0.0.1")
    }

    pub fn start_at(host: &str) -> Self {
        let listener = TcpListener::bind((host, 0)).expect("a free port");
        let address = listener.local_addr().expect("bound");
        let origin = Self { address, newest: Arc::default(), requests: Arc::default() };
        let (newest, requests) = (Arc::clone(&origin.newest), Arc::clone(&origin.requests));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (newest, requests) = (Arc::clone(&newest), Arc::clone(&requests));
                std::thread::spawn(move || serve(stream, &newest, &requests));
            }
        });
        origin
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Returns the number of requests so far.
    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// Makes a new version of an object. Returns its number.
    pub fn change(&self, path: &str) -> u64 {
        let mut newest = self.newest.lock().expect("sound");
        let version = newest.entry(path.to_owned()).or_default();
        *version += 1;
        *version
    }
}

fn serve(mut stream: TcpStream, newest: &Mutex<BTreeMap<String, u64>>, requests: &AtomicU64) {
    while let Some(request) = read_request(&mut stream) {
        let number = requests.fetch_add(1, Ordering::Relaxed);
        let path = request.split(' ').nth(1).unwrap_or("");
        let version = newest.lock().expect("sound").get(path).copied().unwrap_or(0);
        if number % SLOW == SLOW - 1 {
            std::thread::sleep(DELAY);
        }
        if stream.write_all(&answer(&request, path, version)).is_err() {
            return;
        }
    }
}

/// Returns the answer with a version. The tag of an object is the first segment of its path.
fn answer(request: &str, path: &str, version: u64) -> Vec<u8> {
    let (etag, tag) = (format!("\"{version}\""), path.split('/').nth(1).unwrap_or(""));
    let lines = format!("Cache-Control: max-age=3600\r\nETag: {etag}\r\nSurrogate-Key: {tag}\r\n");
    if header(request, "if-none-match") == Some(etag.as_str()) {
        return format!("HTTP/1.1 304 Not Modified\r\n{lines}\r\n").into_bytes();
    }
    let count = if path.ends_with("large") { LARGE } else { 1 };
    ok(&lines, vec![format!("version {version}"); count].join("\n").as_bytes())
}

/// Returns the version in a body, if all lines have the same version.
pub fn version(response: &Response) -> Option<u64> {
    let mut lines = response.body.lines();
    let first = lines.next()?;
    let version = first.strip_prefix("version ")?.parse().ok()?;
    lines.all(|line| line == first).then_some(version)
}
