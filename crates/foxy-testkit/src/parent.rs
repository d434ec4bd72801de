//! A test parent proxy, to which the proxy under test forwards requests. A function of the test
//! answers each request. A 200 to a CONNECT opens a tunnel to the port that the CONNECT names, on
//! this machine.

use crate::http::{ok, read_request};
use crate::origin::listen;
use crate::tunnel::{OPEN, pump};
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};

/// A parent proxy on a free port of the loopback address. It runs until the process ends, and keeps
/// all requests.
pub struct TestParent {
    /// Address of the listening socket.
    pub address: SocketAddr,
    heads: Arc<Mutex<Vec<String>>>,
}

impl TestParent {
    /// Starts a parent proxy that sends the result of `answer` for each request. The parent closes
    /// the connection after an empty response. If the result is a 200 to a CONNECT, the parent
    /// opens a tunnel to the port that the CONNECT names, at the loopback address.
    pub fn start(answer: impl Fn(&str) -> Vec<u8> + Send + Sync + 'static) -> Self {
        let heads: Arc<Mutex<Vec<String>>> = Arc::default();
        let seen = Arc::clone(&heads);
        let address = listen(move |mut client| {
            while let Some(request) = read_request(&mut client) {
                let bytes = answer(&request);
                let port = bytes.starts_with(b"HTTP/1.1 200").then(|| tunnel_port(&request));
                seen.lock().expect("not poisoned").push(request);
                if bytes.is_empty() || client.write_all(&bytes).is_err() {
                    return;
                }
                if let Some(Some(port)) = port {
                    return pump(client, (Ipv4Addr::LOCALHOST, port));
                }
            }
        });
        Self { address, heads }
    }

    /// Starts a parent proxy that opens every tunnel, and answers other requests with the body
    /// `parent`.
    pub fn usual() -> Self {
        Self::start(usual_answer)
    }

    /// Starts a parent proxy that answers every request with this text.
    pub fn with_answer(answer: &'static str) -> Self {
        Self::start(|_| answer.into())
    }

    /// Returns the URL of this parent proxy with `credentials`, which are empty or end in `@`.
    pub fn url(&self, credentials: &str) -> String {
        format!("http://{credentials}{}", self.address)
    }

    /// Removes and returns, in order, the requests that the parent proxy received since the last
    /// call.
    pub fn take_requests(&self) -> Vec<String> {
        std::mem::take(&mut *self.heads.lock().expect("not poisoned"))
    }
}

fn tunnel_port(request: &str) -> Option<u16> {
    let authority = request.strip_prefix("CONNECT ")?.split(' ').next()?;
    authority.rsplit_once(':')?.1.parse().ok()
}

/// Opens a tunnel for a CONNECT, and answers other requests with a response that is fresh for a
/// minute.
pub fn usual_answer(request: &str) -> Vec<u8> {
    if request.starts_with("CONNECT ") {
        OPEN.into()
    } else {
        ok("Cache-Control: max-age=60\r\n", b"parent")
    }
}

/// Returns the URL of an address at which no server listens.
pub fn dead_url() -> String {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    format!("http://{}", listener.local_addr().expect("bound"))
}
