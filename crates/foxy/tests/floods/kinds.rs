//! The kinds of floods: what the hostile clients do, the number of their connections, and the
//! objects that foxy must store before.

use crate::frames::{self, ENHANCE_YOUR_CALM, Reader};
use crate::origin::{Origin, SILENT};
use foxy_testkit::http2::{frame, kind};
use std::cell::Cell;
use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::{LocalSet, spawn_local};
use tokio::time::{sleep, timeout};

/// Number of streams on each HTTP/2 connection.
const STREAMS: u64 = 100;
/// Length in bytes, and number, of the small stored objects that floods request.
const SMALL: (u64, u64) = (1_000_000, 40);
/// Length in bytes, and number, of the large stored objects.
const LARGE: (u64, u64) = (4_000_000, 60);
/// Length in bytes of objects that no client has requested before.
const NEW: u64 = 1_000_000;
/// Length in bytes of a request head just below foxy's limit of 64 KiB.
const HEAD: usize = 63 << 10;
/// Number of costly frames that each connection sends per second.
const FRAMES: u64 = 10_000;
/// Number of connections that send costly frames.
const FRAMING: u64 = 2;
/// Receive buffer, in bytes, of a client that does not read. The system allows no smaller buffer.
const NO_ROOM: u32 = 2_048;

/// A kind of flood: many hostile clients with the same behaviour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flood {
    Http2HitsUnread,
    Http2DiskHitsUnread,
    Http1HitsUnread,
    Http2MissesUnread,
    Http1MissesUnread,
    Http1Heads,
    Http2Heads,
    Idle,
    IdleFromOneAddress,
    SilentNames,
    Frames(Costly),
    FewDescriptors,
}

/// A type of HTTP/2 frame that costs the receiver more work than the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Costly {
    Settings,
    Ping,
    Priority,
    WindowUpdate,
    Unknown,
}

/// All floods with their names.
pub const ALL: [(&str, Flood); 16] = [
    ("http2-hits-unread", Flood::Http2HitsUnread),
    ("http2-disk-hits-unread", Flood::Http2DiskHitsUnread),
    ("http1-hits-unread", Flood::Http1HitsUnread),
    ("http2-misses-unread", Flood::Http2MissesUnread),
    ("http1-misses-unread", Flood::Http1MissesUnread),
    ("http1-heads", Flood::Http1Heads),
    ("http2-heads", Flood::Http2Heads),
    ("idle", Flood::Idle),
    ("idle-from-one-address", Flood::IdleFromOneAddress),
    ("silent-names", Flood::SilentNames),
    ("few-descriptors", Flood::FewDescriptors),
    ("http2-settings", Flood::Frames(Costly::Settings)),
    ("http2-ping", Flood::Frames(Costly::Ping)),
    ("http2-priority", Flood::Frames(Costly::Priority)),
    ("http2-window-update", Flood::Frames(Costly::WindowUpdate)),
    ("http2-unknown", Flood::Frames(Costly::Unknown)),
];

impl Flood {
    /// Returns the objects that foxy must store before the flood begins, with their lengths.
    pub fn stored(self, origin: &Origin) -> Vec<(String, u64)> {
        let (length, count) = match self {
            Self::Http2HitsUnread | Self::Http1HitsUnread => SMALL,
            Self::Http2DiskHitsUnread => LARGE,
            Self::Frames(_) => (SMALL.0, 1),
            _ => return Vec::new(),
        };
        (0..count).map(|number| (origin.url(length, &format!("flood/{number}")), length)).collect()
    }

    /// Returns the number of the flood's connections at full size.
    const fn connections(self) -> u64 {
        match self {
            Self::Http2HitsUnread | Self::Http2DiskHitsUnread | Self::Http2MissesUnread => 15,
            Self::Http1HitsUnread | Self::Http1MissesUnread => 1_000,
            Self::Http1Heads | Self::Http2Heads => 1_500,
            Self::Idle => 10_000,
            Self::IdleFromOneAddress => 8_192,
            Self::SilentNames => 1_200,
            Self::FewDescriptors => 2_000,
            Self::Frames(_) => FRAMING,
        }
    }

    /// Returns the local address of the connection with this number. A flood of idle connections
    /// uses many addresses.
    fn from(self, number: u64) -> SocketAddr {
        let last = u8::try_from(number % 40).expect("small");
        let address = match self {
            Self::Idle | Self::FewDescriptors => Ipv4Addr::new(127, 0, 1, 1 + last),
            _ => Ipv4Addr::new(127, 0, 0, 3),
        };
        (address, 0).into()
    }
}

/// Counters of the flood's connections.
#[derive(Default)]
pub struct Seen {
    pub opened: Cell<u64>,
    /// Number of connections that foxy closed or refused.
    pub ended: Cell<u64>,
    /// Number of connections that received the error ENHANCE_YOUR_CALM.
    pub calmed: Cell<u64>,
}

fn count(cell: &Cell<u64>) {
    cell.set(cell.get() + 1);
}

/// The addresses of the proxy under test and of its origin, and the size of the flood.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    pub proxy: SocketAddr,
    pub origin: Origin,
    /// The test uses the full number of connections, divided by this number.
    pub smaller: u64,
}

/// Starts a flood with one task for each connection. Each task runs until the flood ends.
pub fn begin(flood: Flood, target: Target, tasks: &LocalSet, seen: &Rc<Seen>) {
    let connections = match flood {
        Flood::Frames(_) => FRAMING,
        _ => (flood.connections() / target.smaller).max(2),
    };
    for number in 0..connections {
        let seen = Rc::clone(seen);
        tasks.spawn_local(async move {
            // The connections start at different times. Otherwise the system's queue of new
            // connections would overflow, which is not the subject of this test.
            sleep(Duration::from_micros(number * 300)).await;
            loop {
                let _ = one(flood, target, number, &seen).await;
                count(&seen.ended);
                // A rejected client waits before it reconnects, because the flood shares the
                // processor with foxy.
                sleep(Duration::from_secs(1)).await;
            }
        });
    }
}

/// Runs the connection with this number until foxy closes it.
async fn one(flood: Flood, target: Target, number: u64, seen: &Rc<Seen>) -> std::io::Result<()> {
    let narrow = matches!(flood, Flood::Http1HitsUnread | Flood::Http1MissesUnread);
    let mut stream = connect(target.proxy, flood.from(number), narrow).await?;
    count(&seen.opened);
    let origin = target.origin;
    let get = |url: &str| {
        let host = url.trim_start_matches("http://").split('/').next().unwrap_or("");
        format!("GET {url} HTTP/1.1\r\nHost: {host}\r\n\r\n")
    };
    match flood {
        Flood::Http2HitsUnread => {
            ask_all(stream, number, |stream| (SMALL.0, stored(number, stream, SMALL.1)), origin)
                .await
        }
        Flood::Http2DiskHitsUnread => {
            ask_all(stream, number, |stream| (LARGE.0, stored(number, stream, LARGE.1)), origin)
                .await
        }
        Flood::Http2MissesUnread => {
            ask_all(stream, number, |stream| (NEW, format!("new/{number}/{stream}")), origin).await
        }
        Flood::Http1HitsUnread => {
            let url = origin.url(SMALL.0, &format!("flood/{}", number % SMALL.1));
            stream.write_all(get(&url).as_bytes()).await?;
            unread(stream).await
        }
        Flood::Http1MissesUnread => {
            let url = origin.url(NEW, &format!("new/{number}"));
            stream.write_all(get(&url).as_bytes()).await?;
            unread(stream).await
        }
        Flood::Http1Heads => {
            let begun = get(&origin.url(1, "head"));
            let padding = format!("x-pad: {}\r\n", "a".repeat(4_000)).repeat(HEAD / 4_009);
            let text = format!("{}{padding}", begun.trim_end_matches("\r\n").to_owned() + "\r\n");
            stream.write_all(text.as_bytes()).await?;
            drain(stream).await
        }
        Flood::Http2Heads => {
            stream.write_all(&frames::opening()).await?;
            stream.write_all(&frames::endless_head(origin.address, HEAD)).await?;
            drain(stream).await
        }
        Flood::Idle | Flood::FewDescriptors if number.is_multiple_of(2) => drain(stream).await,
        Flood::Idle | Flood::IdleFromOneAddress | Flood::FewDescriptors => {
            stream.write_all(get(&origin.url(100, "idle")).as_bytes()).await?;
            drain(stream).await
        }
        Flood::SilentNames => {
            let url = format!("http://n{number}-{}.{SILENT}/", seen.opened.get());
            stream.write_all(get(&url).as_bytes()).await?;
            let mut byte = [0];
            stream.read(&mut byte).await.map(|_| ())
        }
        Flood::Frames(costly) => frames_of(costly, stream, origin, seen).await,
    }
}

fn stored(connection: u64, stream: u64, count: u64) -> String {
    format!("flood/{}", (connection * 7 + stream) % count)
}

async fn connect(proxy: SocketAddr, from: SocketAddr, narrow: bool) -> std::io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    if narrow {
        socket.set_recv_buffer_size(NO_ROOM)?;
    }
    socket.bind(from)?;
    let stream = timeout(Duration::from_secs(20), socket.connect(proxy)).await??;
    stream.set_zero_linger()?;
    Ok(stream)
}

/// Reads and ignores responses until the connection closes.
async fn drain(mut stream: TcpStream) -> std::io::Result<()> {
    let mut buffer = [0; 4_096];
    while stream.read(&mut buffer).await? > 0 {}
    Ok(())
}

/// Reads nothing. Returns when foxy resets the connection.
async fn unread(stream: TcpStream) -> std::io::Result<()> {
    loop {
        sleep(Duration::from_millis(500)).await;
        if let Some(error) = stream.take_error()? {
            return Err(error);
        }
    }
}

/// Sends requests on all streams of an HTTP/2 connection. The flow-control window of each stream is
/// 0 bytes, so no body can arrive.
async fn ask_all(
    mut stream: TcpStream,
    _number: u64,
    object: impl Fn(u64) -> (u64, String),
    origin: Origin,
) -> std::io::Result<()> {
    stream.write_all(&frames::opening()).await?;
    for number in 0..STREAMS {
        let (length, name) = object(number);
        let id = u32::try_from(2 * number + 1).expect("small");
        stream.write_all(&frames::get(id, origin.address, &format!("/{length}/{name}"))).await?;
    }
    let mut reader = Reader::default();
    let mut buffer = [0; 4_096];
    loop {
        let length = stream.read(&mut buffer).await?;
        let (goaway, settings) = reader.add(&buffer[..length]);
        if length == 0 || goaway.is_some() {
            return Ok(());
        }
        if settings {
            frames::acknowledge(&mut stream).await?;
        }
    }
}

/// Sends costly frames at a fixed rate. Meanwhile a hundred other streams of the connection wait
/// for a flow-control window.
async fn frames_of(
    costly: Costly,
    stream: TcpStream,
    origin: Origin,
    seen: &Rc<Seen>,
) -> std::io::Result<()> {
    const PERIOD: Duration = Duration::from_millis(20);
    let (mut reading, mut writing) = stream.into_split();
    let told = Rc::clone(seen);
    let reader = spawn_local(async move {
        let (mut reader, mut buffer) = (Reader::default(), vec![0; 64 << 10]);
        while let Ok(length @ 1..) = reading.read(&mut buffer).await {
            if reader.add(&buffer[..length]).0 == Some(ENHANCE_YOUR_CALM) {
                count(&told.calmed);
                return;
            }
        }
    });
    let mut opening = [frames::opening(), frame(kind::SETTINGS, frames::ACK, 0, &[])].concat();
    for number in 0..STREAMS {
        let id = u32::try_from(2 * number + 1).expect("small");
        opening.extend(frames::get(id, origin.address, &format!("/{}/flood/0", SMALL.0)));
    }
    writing.write_all(&opening).await?;
    let batch: Vec<u8> = (0..FRAMES / 50).flat_map(|number| frame_of(costly, number)).collect();
    while !reader.is_finished() {
        timeout(Duration::from_secs(5), writing.write_all(&batch)).await??;
        sleep(PERIOD).await;
    }
    Ok(())
}

fn frame_of(costly: Costly, number: u64) -> Vec<u8> {
    let stream = u32::try_from(2 * (number % STREAMS) + 1).expect("small");
    match costly {
        // A window of 0 or 1 bytes is too small for a body, so every response stays open.
        Costly::Settings => frames::window(u32::try_from(number % 2).expect("small")),
        Costly::Ping => frame(kind::PING, 0, 0, &number.to_be_bytes()),
        Costly::Priority => frame(kind::PRIORITY, 0, stream, &[0, 0, 0, 0, 16]),
        Costly::WindowUpdate => frame(kind::WINDOW_UPDATE, 0, 0, &[0, 0, 0, 1]),
        Costly::Unknown => frame(frames::UNKNOWN, 0, 0, &[0; 8]),
    }
}
