//! A client that sends HTTP/2 requests over TLS, on one connection until foxy ends it.

use crate::clients::{Load, PAGES};
use crate::origin::page;
use crate::tally::Kind;
use bytes::Bytes;
use foxy_base::clock;
use foxy_base::random::Random;
use foxy_testkit::certificates::TestAuthority;
use h2::client::SendRequest;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio_rustls::TlsConnector;

/// The reason why a request got no correct answer.
enum Failed {
    /// foxy refused the request before it processed any part of it, so the client may send the
    /// request again.
    Refused,
    Other(String),
}

impl From<h2::Error> for Failed {
    fn from(error: h2::Error) -> Self {
        let is_refused = error.is_go_away() && error.reason() == Some(h2::Reason::NO_ERROR)
            || error.reason() == Some(h2::Reason::REFUSED_STREAM);
        if is_refused { Self::Refused } else { Self::Other(error.to_string()) }
    }
}

impl Load {
    /// Sends HTTP/2 requests until the test is over. A large body is read slowly, on a connection
    /// of its own.
    pub fn browse_over_http2(&self, tls: &TlsConnector, seed: u64, pause: Duration) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(async {
            tokio::join!(self.pages(tls, seed, pause), self.large_bodies(tls));
        });
    }

    async fn pages(&self, tls: &TlsConnector, seed: u64, pause: Duration) {
        while !self.tally.is_over() {
            let connection = match self.connect(tls).await {
                Ok(connection) => connection,
                Err(error) => {
                    self.tally.failed(format!("HTTP/2: {error}"));
                    continue;
                }
            };
            self.tally.opened.fetch_add(1, Ordering::Relaxed);
            let seed = seed ^ self.tally.count(Kind::SecurePage);
            let task = |number| self.pages_on(connection.clone(), seed ^ number, pause);
            tokio::join!(task(0), task(1), task(2), task(3));
        }
    }

    async fn pages_on(&self, mut connection: SendRequest<Bytes>, seed: u64, pause: Duration) {
        let mut random = Random::new(seed);
        while !self.tally.is_over() {
            tokio::time::sleep(pause.mul_f64(random.unit())).await;
            let path = format!("/page/{}", random.below(PAGES));
            match self.page(&mut connection, &path).await {
                Ok(is_hit) => {
                    self.tally.finished(Kind::SecurePage);
                    self.tally.looked_up(is_hit);
                }
                Err(Failed::Refused) => {
                    self.tally.refused_streams.fetch_add(1, Ordering::Relaxed);
                    return;
                }
                Err(Failed::Other(why)) => {
                    self.tally.failed(format!("HTTP/2 {path}: {why}"));
                    return;
                }
            }
        }
    }

    async fn page(&self, connection: &mut SendRequest<Bytes>, path: &str) -> Result<bool, Failed> {
        let (head, mut stream) = self.begin(connection, path).await?;
        let mut body = Vec::new();
        while let Some(piece) = stream.data().await {
            let piece = piece?;
            stream.flow_control().release_capacity(piece.len())?;
            body.extend_from_slice(&piece);
        }
        if head.status != 200 || body != page(path) {
            return Err(Failed::Other(format!("{head:?}, {} bytes", body.len())));
        }
        let status = head.headers.get("cache-status").and_then(|value| value.to_str().ok());
        Ok(status.is_some_and(|status| status.contains("; hit")))
    }

    async fn begin(
        &self,
        connection: &mut SendRequest<Bytes>,
        path: &str,
    ) -> Result<(http::response::Parts, h2::RecvStream), Failed> {
        std::future::poll_fn(|context| connection.poll_ready(context)).await?;
        let request = http::Request::get(self.origin.url(path)).body(()).expect("a request");
        let (response, _) = connection.send_request(request, true)?;
        Ok(response.await?.into_parts())
    }

    async fn large_bodies(&self, tls: &TlsConnector) {
        while !self.tally.is_over() {
            self.tally.opened.fetch_add(1, Ordering::Relaxed);
            let read = match self.connect(tls).await {
                Ok(mut connection) => self.large_body(&mut connection).await,
                Err(error) => Err(Failed::Other(error.to_string())),
            };
            match read {
                Ok(()) => self.tally.finished(Kind::SecureBody),
                Err(Failed::Refused) => self.tally.failed("HTTP/2: the body was refused".into()),
                Err(Failed::Other(why)) => self.tally.failed(format!("HTTP/2 body: {why}")),
            }
        }
    }

    async fn large_body(&self, connection: &mut SendRequest<Bytes>) -> Result<(), Failed> {
        let (head, mut stream) = self.begin(connection, "/body/stored").await?;
        if head.status != 200 {
            return Err(Failed::Other(format!("{head:?}")));
        }
        let (length, began) = (self.origin.body_bytes, clock::monotonic());
        let mut at = 0;
        while let Some(piece) = stream.data().await {
            let piece = piece?;
            if self.tally.is_over() {
                return Ok(());
            }
            stream.flow_control().release_capacity(piece.len())?;
            if !self.origin.is_body(&piece, at) {
                return Err(Failed::Other(format!("wrong bytes after byte {at}")));
            }
            at += piece.len() as u64;
            let due = self.body_time.mul_f64(at as f64 / length as f64);
            tokio::time::sleep(due.saturating_sub(clock::monotonic().since(began))).await;
        }
        if at == length { Ok(()) } else { Err(Failed::Other(format!("{at} of {length} bytes"))) }
    }

    async fn connect(&self, tls: &TlsConnector) -> io::Result<SendRequest<Bytes>> {
        let stream = tokio::net::TcpStream::connect(self.to.secure).await?;
        stream.set_nodelay(true)?;
        let name = "localhost".try_into().expect("a name");
        let stream = tls.connect(name, stream).await?;
        let (sender, connection) = h2::client::handshake(stream).await.map_err(io::Error::other)?;
        // The streams also report errors of the connection, so its result is ignored here.
        tokio::spawn(async move { drop(connection.await) });
        Ok(sender)
    }
}

/// Makes TLS connections for HTTP/2 to a server whose certificate `authority` signed.
pub fn connector(authority: &TestAuthority) -> TlsConnector {
    let mut config = authority.client(None);
    config.alpn_protocols = vec![b"h2".to_vec()];
    TlsConnector::from(Arc::new(config))
}
