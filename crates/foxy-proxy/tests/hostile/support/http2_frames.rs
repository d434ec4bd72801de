//! An origin that sends hand-written HTTP/2 frames, so that a test can make it break any rule.

use foxy_testkit::http2::{END_HEADERS, field, frame, kind};
use std::cell::Cell;
use std::rc::Rc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Frame type with which the test learns that a connection has opened. No real frame in these tests
/// has this type.
pub const OPENED: u8 = 255;

/// Frame type with which the test learns that a request over HTTP/1.1 begins.
pub const HTTP1: u8 = 254;

/// The encoded header field `:status: 200` (RFC 7541, appendix A).
pub const STATUS_200: u8 = 0x88;

/// The reaction of the origin to a frame.
pub enum React {
    /// The origin sends these bytes. The bytes may be empty.
    Send(Vec<u8>),
    /// The origin sends these bytes again and again.
    Forever(Vec<u8>),
    /// The origin sends these bytes and closes the connection.
    Close(Vec<u8>),
}

/// A frame that the origin has received.
pub struct Frame {
    pub connection: usize,
    pub kind: u8,
    pub stream: u32,
}

/// Returns an empty SETTINGS frame.
pub fn settings() -> Vec<u8> {
    frame(kind::SETTINGS, 0, 0, &[])
}

/// Returns a HEADERS frame with status 200 and the header fields `lines`.
pub fn head(stream: u32, flags: u8, lines: &[(&str, &str)]) -> Vec<u8> {
    let mut block = vec![STATUS_200];
    block.extend(lines.iter().flat_map(|(name, value)| field(name, value)));
    frame(kind::HEADERS, END_HEADERS | flags, stream, &block)
}

/// An origin that reacts to each frame as the test chooses.
pub struct FrameOrigin {
    pub port: u16,
    connections: Rc<Cell<usize>>,
}

impl FrameOrigin {
    /// Starts an origin on the current `LocalSet`. After each frame, the origin does what `react`
    /// returns.
    pub async fn start(react: impl Fn(Frame) -> React + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a loopback listener");
        let port = listener.local_addr().expect("bound").port();
        let origin = Self { port, connections: Rc::default() };
        let (connections, react) = (Rc::clone(&origin.connections), Rc::new(react));
        tokio::task::spawn_local(async move {
            loop {
                let (stream, _) = listener.accept().await.expect("a connection");
                let number = connections.replace(connections.get() + 1);
                let react = Rc::clone(&react);
                tokio::task::spawn_local(async move {
                    let _ = speak(stream, |kind, stream| {
                        react(Frame { connection: number, kind, stream })
                    })
                    .await;
                });
            }
        });
        origin
    }

    /// Returns the number of connections that the origin has accepted so far.
    pub fn connections(&self) -> usize {
        self.connections.get()
    }
}

async fn speak(mut socket: TcpStream, react: impl Fn(u8, u32) -> React) -> std::io::Result<()> {
    let mut preface = [0; 24];
    socket.read_exact(&mut preface).await?;
    let mut kind = if preface.starts_with(b"PRI * HTTP/2.0") { OPENED } else { HTTP1 };
    let mut stream = 0;
    loop {
        match react(kind, stream) {
            React::Send(bytes) => socket.write_all(&bytes).await?,
            React::Forever(bytes) => loop {
                socket.write_all(&bytes).await?;
            },
            React::Close(bytes) => {
                socket.write_all(&bytes).await?;
                return socket.shutdown().await;
            }
        }
        let mut header = [0; 9];
        socket.read_exact(&mut header).await?;
        let [high, middle, low, found, _, id @ ..] = header;
        let length = u32::from_be_bytes([0, high, middle, low]) as usize;
        socket.read_exact(&mut vec![0; length]).await?;
        (kind, stream) = (found, u32::from_be_bytes(id));
    }
}
