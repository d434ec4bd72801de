//! The verifying origin on the wire: one thread and runtime each, keep-alive, constant memory a connection.
//! What is answered is decided in `answer`.

use crate::answer::{self, BodyPart, Reply};
use bytes::BytesMut;
use foxy_base::clock;
use foxy_http::{Persistence, RequestDecoder, RequestEvent, encode};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Notify;

/// Bytes of body made and sent at a time.
const PIECE: usize = 64 << 10;

/// How an origin runs.
#[derive(Clone, Copy, Debug)]
pub struct OriginOptions {
    /// Where it listens; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Threads that serve.
    pub threads: usize,
}

#[derive(Debug, Default)]
struct Shared {
    requests: AtomicU64,
    body_bytes: AtomicU64,
    stopping: AtomicBool,
    stop: Notify,
}

/// A running origin; it stops when dropped.
#[derive(Debug)]
pub struct Origin {
    address: SocketAddr,
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

impl Origin {
    /// Binds and starts serving.
    ///
    /// # Errors
    /// When the address cannot be bound or a thread cannot be started.
    pub fn start(options: OriginOptions) -> io::Result<Self> {
        let listener = TcpListener::bind(options.listen)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared::default());
        let mut threads = Vec::new();
        for _ in 0..options.threads.max(1) {
            let (listener, shared) = (listener.try_clone()?, Arc::clone(&shared));
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            threads.push(std::thread::Builder::new().name("origin".into()).spawn(move || {
                tokio::task::LocalSet::new().block_on(&runtime, accept(listener, shared));
            })?);
        }
        Ok(Self { address, shared, threads })
    }

    /// Where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Requests answered so far.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.shared.requests.load(Ordering::Relaxed)
    }

    /// Body bytes sent so far.
    #[must_use]
    pub fn body_bytes(&self) -> u64 {
        self.shared.body_bytes.load(Ordering::Relaxed)
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        self.shared.stopping.store(true, Ordering::SeqCst);
        for thread in self.threads.drain(..) {
            while !thread.is_finished() {
                self.shared.stop.notify_waiters();
                std::thread::yield_now();
            }
            // A thread that panicked has said so itself; there is nothing to add while dropping.
            let _ = thread.join();
        }
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
    while !shared.stopping.load(Ordering::SeqCst) {
        tokio::select! {
            () = shared.stop.notified() => {}
            accepted = listener.accept() => if let Ok((stream, _)) = accepted {
                let shared = Arc::clone(&shared);
                tokio::task::spawn_local(async move {
                    // A client that goes away ends its connection, and nothing else.
                    let _ = serve(stream, &shared).await;
                });
            },
        }
    }
}

async fn serve(mut stream: TcpStream, shared: &Shared) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let (mut decoder, mut input, mut output) = (RequestDecoder::default(), BytesMut::new(), BytesMut::new());
    let mut pending: Option<(Reply, bool)> = None;
    loop {
        match decoder.next(&mut input) {
            Ok(Some(RequestEvent::Head(head, _))) => {
                let persistent = Persistence::of(head.version, &head.headers) == Persistence::KeepAlive;
                pending = Some((answer::answer(&head, clock::wall()), persistent));
            }
            Ok(Some(RequestEvent::End)) => {
                let Some((reply, persistent)) = pending.take() else { continue };
                shared.requests.fetch_add(1, Ordering::Relaxed);
                send(&mut stream, &reply, &mut output, shared).await?;
                if !persistent {
                    return stream.shutdown().await;
                }
            }
            Ok(Some(RequestEvent::Body(_) | RequestEvent::Trailers(_))) => {}
            Ok(None) => {
                if stream.read_buf(&mut input).await? == 0 {
                    return Ok(());
                }
            }
            Err(error) => {
                let text = format!(
                    "HTTP/1.1 {} Refused\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
                    error.status()
                );
                stream.write_all(text.as_bytes()).await?;
                return stream.shutdown().await;
            }
        }
    }
}

async fn send(
    stream: &mut TcpStream,
    reply: &Reply,
    output: &mut BytesMut,
    shared: &Shared,
) -> io::Result<()> {
    if !reply.delay.is_zero() {
        tokio::time::sleep(reply.delay).await;
    }
    output.clear();
    encode::response_head(&reply.head, output);
    if let Some(BodyPart { stream: body, offset, length }) = reply.body {
        let mut sent = 0;
        while sent < length {
            let piece = usize::try_from(length - sent).unwrap_or(PIECE).min(PIECE);
            if reply.chunked {
                output.extend_from_slice(format!("{piece:x}\r\n").as_bytes());
            }
            let start = output.len();
            output.resize(start + piece, 0);
            body.fill(offset + sent, &mut output[start..]);
            if reply.chunked {
                output.extend_from_slice(encode::CRLF);
            }
            stream.write_all(output).await?;
            output.clear();
            sent += piece as u64;
        }
        shared.body_bytes.fetch_add(length, Ordering::Relaxed);
        if reply.chunked {
            output.extend_from_slice(b"0\r\n\r\n");
        }
    }
    stream.write_all(output).await
}
