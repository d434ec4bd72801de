//! The origin of the flood tests. It responds at once, and sends as fast as foxy reads. The
//! origin's name server resolves names below a zone, and never answers for names below another
//! zone.

use foxy_base::clock;
use foxy_base::time::Instant;
use foxy_testkit::http::head_length;
use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::task::{LocalSet, spawn_local};

/// Largest number of bytes in one write.
const PIECE: usize = 64 << 10;

/// Largest rate, in bytes per second, at which the origin sends objects that only a flood requests.
/// The limit keeps the disk from being the bottleneck.
const RATE: u64 = 100_000_000;

/// The name server resolves names below this zone. All other names fail.
pub const GOOD: &str = "good.test";

/// The name server sends no answer for names below this zone.
pub const SILENT: &str = "silent.test";

/// A running origin with its name server. Both run until the test process ends.
#[derive(Clone, Copy, Debug)]
pub struct Origin {
    pub address: SocketAddr,
    pub names: SocketAddr,
}

impl Origin {
    pub fn start() -> Self {
        let (tell, started) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            super::runtime().block_on(async move {
                let listener = TcpListener::bind("127.0.0.1:0").await.expect("bound");
                let names = UdpSocket::bind("127.0.0.1:0").await.expect("bound");
                let origin = Self {
                    address: listener.local_addr().expect("bound"),
                    names: names.local_addr().expect("bound"),
                };
                tell.send(origin).expect("somebody waits");
                tokio::spawn(answer_names(names));
                let bytes = (0..PIECE).map(|at| (at % 251) as u8).collect();
                let server = Rc::new(Server { bytes, free: Cell::new(Instant::ZERO) });
                let accept = async move {
                    loop {
                        if let Ok((stream, _)) = listener.accept().await {
                            spawn_local(Rc::clone(&server).serve(stream));
                        }
                    }
                };
                LocalSet::new().run_until(accept).await;
            });
        });
        started.recv().expect("it starts")
    }

    /// Returns the URL of an object of `length` bytes.
    pub fn url(&self, length: u64, name: &str) -> String {
        format!("http://{}/{length}/{name}", self.address)
    }
}

struct Server {
    bytes: Vec<u8>,
    /// Earliest time at which the origin may send another piece of an object to foxy for the flood.
    free: Cell<Instant>,
}

impl Server {
    /// Responds to each request. The first part of the path is the length of the body in bytes.
    async fn serve(self: Rc<Self>, mut stream: TcpStream) {
        let _only_slower = stream.set_nodelay(true);
        let mut buffer = Vec::new();
        loop {
            let end = loop {
                if let Some(end) = head_length(&buffer) {
                    break end;
                }
                if !matches!(stream.read_buf(&mut buffer).await, Ok(count) if count > 0) {
                    return;
                }
            };
            let text = String::from_utf8_lossy(&buffer[..end]).into_owned();
            buffer.drain(..end);
            let path = text.split(' ').nth(1).unwrap_or("");
            let Some(length) = path.split('/').nth(1).and_then(|length| length.parse().ok()) else {
                return;
            };
            let sent = self.answer(&mut stream, length, path.contains("/new/")).await;
            if sent.is_err() {
                return;
            }
        }
    }

    async fn answer(
        &self,
        stream: &mut TcpStream,
        mut left: usize,
        paced: bool,
    ) -> std::io::Result<()> {
        let head = format!(
            "HTTP/1.1 200 OK\r\nCache-Control: max-age=3600\r\nETag: \"1\"\r\n\
             Content-Length: {left}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await?;
        while left > 0 {
            let piece = &self.bytes[..left.min(PIECE)];
            if paced {
                self.turn(piece.len()).await;
            }
            stream.write_all(piece).await?;
            left -= piece.len();
        }
        Ok(())
    }

    /// Waits until the rate limit permits another `bytes` bytes.
    async fn turn(&self, bytes: usize) {
        let now = clock::monotonic();
        let turn = self.free.get().max(now);
        self.free.set(turn + Duration::from_nanos(bytes as u64 * 1_000_000_000 / RATE));
        tokio::time::sleep(turn.since(now)).await;
    }
}

/// Answers DNS questions for the IPv4 address of a name below [`GOOD`] with a loopback address.
/// Answers other questions with an empty response.
async fn answer_names(socket: UdpSocket) {
    let mut packet = [0; 512];
    loop {
        let Ok((length, from)) = socket.recv_from(&mut packet).await else { continue };
        let Some(answer) = name_answer(&packet[..length]) else { continue };
        let _lost_like_any_datagram = socket.send_to(&answer, from).await;
    }
}

/// Returns the response to a DNS question (RFC 1035 §4). Returns `None` for a name below
/// [`SILENT`], which gets no response.
fn name_answer(question: &[u8]) -> Option<Vec<u8>> {
    let mut end = 12;
    let mut name = String::new();
    while let length @ 1.. = usize::from(*question.get(end)?) {
        name.push_str(&String::from_utf8_lossy(question.get(end + 1..=end + length)?));
        name.push('.');
        end += length + 1;
    }
    if !name.to_ascii_lowercase().ends_with(&format!("{GOOD}.")) {
        return None;
    }
    let kind = question.get(end + 1..end + 3)?;
    let is_address = kind == [0, 1];
    let mut answer = question.get(..end + 5)?.to_vec();
    answer[2..12].copy_from_slice(&[0x81, 0x80, 0, 1, 0, u8::from(is_address), 0, 0, 0, 0]);
    if is_address {
        answer.extend_from_slice(&[0xc0, 12, 0, 1, 0, 1, 0, 0, 1, 44, 0, 4, 127, 0, 0, 1]);
    }
    Some(answer)
}
