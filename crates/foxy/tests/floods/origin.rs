//! The origin of the floods, which answers at once and as fast as it is read, and a name server
//! that answers for some names and is silent about all others.

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

/// Bytes that are sent at a time.
const PIECE: usize = 64 << 10;

/// Bytes that go out in a second of objects that a flood alone asks for, so that the disk is not
/// what is tried.
const RATE: u64 = 100_000_000;

/// Names below this resolve; no other does.
pub const GOOD: &str = "good.test";

/// Names below this are never answered.
pub const SILENT: &str = "silent.test";

/// A running origin with its name server. Both end with the test's process.
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

    /// The URL of an object of this length.
    pub fn url(&self, length: u64, name: &str) -> String {
        format!("http://{}/{length}/{name}", self.address)
    }
}

struct Server {
    bytes: Vec<u8>,
    /// When the next piece for a flood may go out.
    free: Cell<Instant>,
}

impl Server {
    /// Answers each request with as many bytes as the first part of its path says.
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

    /// Waits until `bytes` bytes may go out.
    async fn turn(&self, bytes: usize) {
        let now = clock::monotonic();
        let turn = self.free.get().max(now);
        self.free.set(turn + Duration::from_nanos(bytes as u64 * 1_000_000_000 / RATE));
        tokio::time::sleep(turn.since(now)).await;
    }
}

/// Answers questions for the IPv4 address of good names with this machine, and for other things
/// with nothing.
async fn answer_names(socket: UdpSocket) {
    let mut packet = [0; 512];
    loop {
        let Ok((length, from)) = socket.recv_from(&mut packet).await else { continue };
        let Some(answer) = name_answer(&packet[..length]) else { continue };
        let _lost_like_any_datagram = socket.send_to(&answer, from).await;
    }
}

/// The answer to a question (RFC 1035 §4); none where it is for a name that is never answered.
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
