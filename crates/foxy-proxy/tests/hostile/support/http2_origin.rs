//! An origin that speaks HTTP/2 with the HTTP/2 library, over plain TCP or TLS.

use bytes::Bytes;
use futures_util::future::LocalBoxFuture;
use h2::server::{Builder, Connection, SendResponse};
use h2::{RecvStream, SendStream};
use http::{Request, Response};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio_rustls::TlsAcceptor;

/// A request that the origin has received.
pub struct Asked {
    pub request: Request<RecvStream>,
    pub respond: SendResponse<Bytes>,
}

impl Asked {
    pub fn path(&self) -> String {
        self.request.uri().path().to_owned()
    }

    /// Sends the head of an answer. `ended` means that no body follows.
    pub fn head(&mut self, status: u16, fields: &[(&str, &str)], ended: bool) -> SendStream<Bytes> {
        let mut response = Response::builder().status(status);
        for &(name, value) in fields {
            response = response.header(name, value);
        }
        self.respond
            .send_response(response.body(()).expect("a head"), ended)
            .expect("an open stream")
    }

    /// Answers with 200 and a body.
    pub fn ok(&mut self, fields: &[(&str, &str)], body: impl Into<Bytes>) {
        self.head(200, fields, false).send_data(body.into(), true).expect("an open stream");
    }
}

type Answer = Rc<dyn Fn(Asked) -> LocalBoxFuture<'static, ()>>;

/// An origin that answers each request with a function of the test.
pub struct Http2Origin {
    pub port: u16,
    state: Rc<State>,
}

#[derive(Default)]
struct State {
    connections: Cell<usize>,
    open: Cell<usize>,
    requests: RefCell<Vec<String>>,
    leave: Notify,
}

impl Http2Origin {
    /// Starts the origin on the current `LocalSet`.
    pub async fn start(
        builder: Builder,
        tls: Option<TlsAcceptor>,
        answer: impl Fn(Asked) -> LocalBoxFuture<'static, ()> + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a loopback listener");
        let origin =
            Self { port: listener.local_addr().expect("bound").port(), state: Rc::default() };
        let (state, answer) = (Rc::clone(&origin.state), Rc::new(answer) as Answer);
        tokio::task::spawn_local(async move {
            loop {
                let (stream, _) = listener.accept().await.expect("a connection");
                let (state, answer) = (Rc::clone(&state), Rc::clone(&answer));
                let (builder, tls) = (builder.clone(), tls.clone());
                tokio::task::spawn_local(async move {
                    state.connections.set(state.connections.get() + 1);
                    state.open.set(state.open.get() + 1);
                    match tls {
                        None => serve(&builder, stream, &state, answer).await,
                        Some(tls) => {
                            let Ok(stream) = tls.accept(stream).await else { return };
                            if stream.get_ref().1.alpn_protocol() == Some(b"h2") {
                                serve(&builder, stream, &state, answer).await;
                            } else {
                                let _ = serve_http1(stream, &state).await;
                            }
                        }
                    }
                    state.open.set(state.open.get() - 1);
                });
            }
        });
        origin
    }

    /// Starts an origin that speaks HTTP/2 over plain TCP, with the default settings.
    pub async fn plain(answer: impl Fn(Asked) -> LocalBoxFuture<'static, ()> + 'static) -> Self {
        Self::start(Builder::new(), None, answer).await
    }

    /// Returns the number of connections that the origin has accepted so far.
    pub fn connections(&self) -> usize {
        self.state.connections.get()
    }

    pub fn open(&self) -> usize {
        self.state.open.get()
    }

    /// Returns the paths of all requests so far, in order.
    pub fn requests(&self) -> Vec<String> {
        self.state.requests.borrow().clone()
    }

    /// Announces on one connection that the origin accepts no more requests on it (GOAWAY).
    pub fn leave(&self) {
        self.state.leave.notify_one();
    }
}

async fn serve(
    builder: &Builder,
    stream: impl AsyncRead + AsyncWrite + Unpin,
    state: &State,
    answer: Answer,
) {
    let Ok(mut connection): Result<Connection<_, Bytes>, _> = builder.handshake(stream).await
    else {
        return;
    };
    loop {
        let next = tokio::select! {
            next = connection.accept() => next,
            () = state.leave.notified() => {
                connection.graceful_shutdown();
                continue;
            }
        };
        let Some(Ok((request, respond))) = next else { return };
        state.requests.borrow_mut().push(request.uri().path().to_owned());
        tokio::task::spawn_local(answer(Asked { request, respond }));
    }
}

/// Answers one request over HTTP/1.1. If the request is an upgrade, accepts it and sends a word
/// through the tunnel. Answers any other request with the same word.
async fn serve_http1(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    state: &State,
) -> std::io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await?);
    }
    state.requests.borrow_mut().push("HTTP/1.1".to_owned());
    let upgrade = String::from_utf8_lossy(&head).to_lowercase().contains("\r\nupgrade:");
    let answer: &[u8] = if upgrade {
        b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\nword"
    } else {
        b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\nword"
    };
    stream.write_all(answer).await?;
    stream.shutdown().await
}
