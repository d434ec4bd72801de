//! The verifying origin on the wire: one thread and runtime each, keep-alive, constant memory a connection.
//! What is answered is decided in `answer`.

mod ports;

use crate::answer::{self, BodyPart, Reply};
use crate::tls::Throwaway;
use bytes::BytesMut;
use foxy_base::clock;
use foxy_http::{Persistence, RequestDecoder, RequestEvent, Version, encode};
use foxy_workload::polymix::exchange::{IDLE_LIMIT, Side, connection_uses};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio_rustls::TlsAcceptor;

/// Bytes of body made and sent at a time.
const PIECE: usize = 64 << 10;
/// Bytes asked of a connection at a time.
const READ: usize = 4 << 10;
/// Bytes of output that a connection keeps room for between answers.
const KEPT: usize = 16 << 10;
/// How long to wait when no connection can be accepted, such as for want of descriptors.
const PAUSE: Duration = Duration::from_millis(10);
/// How long a client has for its part of a TLS handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);

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
    connections: AtomicU64,
    stopping: AtomicBool,
    stop: Notify,
}

/// A running origin; it stops when dropped.
#[derive(Debug)]
pub struct Origin {
    servers: Vec<SocketAddr>,
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    authority: Option<String>,
}

impl Origin {
    /// Binds and starts serving.
    ///
    /// # Errors
    /// When the address cannot be bound or a thread cannot be started.
    pub fn start(options: OriginOptions) -> io::Result<Self> {
        Self::start_servers(options, 1)
    }

    /// Binds `servers` consecutive ports, the first of which is the address's, and starts serving: to a proxy they are
    /// different servers.
    ///
    /// # Errors
    /// When a port cannot be bound or a thread cannot be started.
    pub fn start_servers(options: OriginOptions, servers: u32) -> io::Result<Self> {
        Self::start_all(options, servers, None)
    }

    /// The same behind TLS, with a certificate that is made now.
    ///
    /// # Errors
    /// As [`Origin::start_servers`], and when no certificate can be made.
    pub fn start_tls(options: OriginOptions, servers: u32) -> io::Result<Self> {
        Self::start_all(options, servers, Some(Throwaway::make(options.listen.ip())?))
    }

    fn start_all(options: OriginOptions, servers: u32, tls: Option<Throwaway>) -> io::Result<Self> {
        let listeners = ports::bind(options.listen, servers)?;
        let servers = listeners.iter().map(TcpListener::local_addr).collect::<io::Result<_>>()?;
        let acceptor = tls.as_ref().map(|tls| TlsAcceptor::from(tls.server()));
        let shared = Arc::new(Shared::default());
        let mut threads = Vec::new();
        for _ in 0..options.threads.max(1) {
            let own = listeners.iter().map(TcpListener::try_clone).collect::<io::Result<Vec<_>>>()?;
            let (shared, acceptor) = (Arc::clone(&shared), acceptor.clone());
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            threads.push(std::thread::Builder::new().name("origin".into()).spawn(move || {
                tokio::task::LocalSet::new().block_on(&runtime, accept_all(own, shared, acceptor));
            })?);
        }
        Ok(Self { servers, shared, threads, authority: tls.map(|tls| tls.authority().to_owned()) })
    }

    /// The certificate, in PEM, of the authority that signed this origin's; `None` when it does not speak TLS.
    #[must_use]
    pub fn authority(&self) -> Option<&str> {
        self.authority.as_deref()
    }

    /// Where it listens: at the first of its servers, when there are several.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.servers[0]
    }

    /// Where each of its servers listens.
    #[must_use]
    pub fn servers(&self) -> &[SocketAddr] {
        &self.servers
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

async fn accept_all(listeners: Vec<TcpListener>, shared: Arc<Shared>, tls: Option<TlsAcceptor>) {
    let mut tasks = tokio::task::JoinSet::new();
    for listener in listeners {
        tasks.spawn_local(accept(listener, Arc::clone(&shared), tls.clone()));
    }
    tasks.join_all().await;
}

async fn accept(listener: TcpListener, shared: Arc<Shared>, tls: Option<TlsAcceptor>) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
    while !shared.stopping.load(Ordering::SeqCst) {
        tokio::select! {
            () = shared.stop.notified() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    let (shared, tls) = (Arc::clone(&shared), tls.clone());
                    tokio::task::spawn_local(async move {
                        // A client that goes away ends its connection, and nothing else.
                        let _ = greet(stream, tls, &shared).await;
                    });
                }
                Err(_) => tokio::time::sleep(PAUSE).await,
            },
        }
    }
}

/// How many answers a connection carried, and how many it may once one of them was short-lived.
struct Uses {
    carried: u32,
    most: u32,
    limited: bool,
}

/// Serves a connection, where TLS is spoken after the handshake.
async fn greet(stream: TcpStream, tls: Option<TlsAcceptor>, shared: &Shared) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let Some(tls) = tls else { return serve(stream, shared).await };
    let stream = tokio::time::timeout(HANDSHAKE, tls.accept(stream)).await??;
    // Boxed, so that connections without TLS have no room for it.
    Box::pin(serve(stream, shared)).await
}

async fn serve(mut stream: impl AsyncRead + AsyncWrite + Unpin, shared: &Shared) -> io::Result<()> {
    let (mut decoder, mut input, mut output) = (RequestDecoder::default(), BytesMut::new(), BytesMut::new());
    let mut pending: Option<(Reply, bool)> = None;
    let number = shared.connections.fetch_add(1, Ordering::Relaxed);
    let mut uses = Uses { carried: 0, most: connection_uses(Side::Server, number), limited: false };
    loop {
        match decoder.next(&mut input) {
            Ok(Some(RequestEvent::Head(head, _))) => {
                let persistent = Persistence::of(head.version, &head.headers) == Persistence::KeepAlive;
                let mut reply = answer::answer(&head, clock::wall());
                let goes_on = persistent && uses.go_on(&reply);
                if persistent && !goes_on {
                    reply.head.headers.append("Connection", "close");
                } else if persistent && head.version == Version::Http10 {
                    reply.head.headers.append("Connection", "keep-alive");
                }
                pending = Some((reply, goes_on));
            }
            Ok(Some(RequestEvent::End)) => {
                let Some((reply, goes_on)) = pending.take() else { continue };
                shared.requests.fetch_add(1, Ordering::Relaxed);
                if !send(&mut stream, &reply, &mut output, shared).await? || !goes_on {
                    return stream.shutdown().await;
                }
                if output.capacity() > KEPT {
                    output = BytesMut::new();
                }
            }
            Ok(Some(RequestEvent::Body(_) | RequestEvent::Trailers(_))) => {}
            Ok(None) => {
                input.reserve(READ);
                if !read(&mut stream, &mut input, uses.limited).await? {
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

impl Uses {
    /// Counts an answer; says whether another may follow.
    const fn go_on(&mut self, reply: &Reply) -> bool {
        self.carried += 1;
        self.limited |= reply.short_lived;
        !self.limited || self.carried < self.most
    }
}

/// Reads what comes; `false` at the end of the stream, or when nothing comes for too long.
async fn read(
    stream: &mut (impl AsyncRead + Unpin),
    input: &mut BytesMut,
    limited: bool,
) -> io::Result<bool> {
    if !limited {
        return Ok(stream.read_buf(input).await? > 0);
    }
    match tokio::time::timeout(IDLE_LIMIT, stream.read_buf(input)).await {
        Ok(read) => Ok(read? > 0),
        Err(_) => Ok(false),
    }
}

/// Sends an answer; `false` when it was broken off.
async fn send(
    stream: &mut (impl AsyncWrite + Unpin),
    reply: &Reply,
    output: &mut BytesMut,
    shared: &Shared,
) -> io::Result<bool> {
    if !reply.delay.is_zero() {
        tokio::time::sleep(reply.delay).await;
    }
    output.clear();
    encode::response_head(&reply.head, output);
    if let Some(BodyPart { stream: body, offset, length }) = reply.body {
        let length = reply.breaks_off.unwrap_or(length);
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
    stream.write_all(output).await?;
    stream.flush().await?;
    Ok(reply.breaks_off.is_none())
}
