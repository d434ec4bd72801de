//! Begins the interception of a CONNECT: sends the answer, reads the client's ClientHello, and does
//! the TLS handshake. Afterwards, `connection` reads the requests inside the tunnel.

use crate::answer;
use crate::client::Sender;
use crate::client::io::ClientConnection;
use crate::core::counters::Counter;
use crate::core::places::ClientBlock;
use crate::core::tls::HANDSHAKE;
use crate::core::transport::Transport;
use crate::intercept::{Inside, Interception};
use crate::request::answered::{Aborted, AnswerOptions, SentResponse};
use crate::request::cache_status::CacheStatus;
use crate::request::reason::ErrorReason;
use crate::server::request_log::Ended;
use crate::upstream::{ConnectError, Origin};
use crate::worker::Worker;
use bytes::{Bytes, BytesMut};
use foxy_base::clock;
use foxy_http::ResponseHead;
use rustls::server::{Accepted, Acceptor};
use rustls::{AlertDescription, ServerConfig};
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use tokio::io::AsyncReadExt;
use tokio_rustls::{LazyConfigAcceptor, StartHandshake};

/// The reason why the TLS handshake with the client of an intercepted CONNECT failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InterceptFailure {
    /// The client did not send a TLS handshake.
    NotTls,
    /// The ClientHello names another host than the CONNECT.
    WrongName,
    /// The client does not trust the certificate.
    Distrusted,
    /// The client disconnected, was too slow, or uses a kind of TLS that the proxy does not
    /// support.
    Failed,
}

impl InterceptFailure {
    const fn counter(self) -> Counter {
        match self {
            Self::NotTls => Counter::InterceptNotTls,
            Self::WrongName => Counter::InterceptWrongName,
            Self::Distrusted => Counter::InterceptDistrusted,
            Self::Failed => Counter::InterceptFailures,
        }
    }
}

/// Answers the CONNECT if its host is intercepted. Otherwise does nothing and returns `None`.
pub(crate) async fn opened(
    worker: &Rc<Worker>,
    connection: &mut ClientConnection,
    options: AnswerOptions,
    (origin, asks): (&Origin, ClientBlock),
) -> Option<(Ended, u64)> {
    let interception = worker.settings().interception.as_ref()?;
    let plain = matches!(connection.stream, Transport::Plain(_));
    if !plain || !interception.wants(&origin.host, clock::wall()) {
        return None;
    }
    // Even if the host's name cannot be resolved now, the proxy can serve stored responses. But it
    // must serve no response if the destination policy forbids the host.
    let refusal = match worker.upstream.may_connect(origin, asks).await {
        Err(error @ ConnectError::Forbidden(_)) => Some(error),
        Ok(()) | Err(_) => None,
    };
    let is_at_tunnel = refusal.is_some() || connection.is_at_tunnel();
    let (_, sender) = connection.split(worker.settings().client_write);
    let mut sender = Sender::Http1(sender);
    if let Some(error) = refusal {
        let reason = ErrorReason::Upstream(error.into());
        let result =
            answer::error(worker, &mut sender, AnswerOptions { keep: false, ..options }, reason)
                .await;
        let ended = Ended::from(result);
        return Some((ended, sender.sent()));
    }
    if !is_at_tunnel {
        return Some((Ended::Aborted(Aborted::Client), 0));
    }
    let outcome = CacheStatus::Local { detail: "intercepted" };
    let mut head = ResponseHead::new(200);
    head.reason = Bytes::from_static(b"Connection Established");
    let status = outcome.of_cache(worker.settings().cache_name);
    head.headers.append("Cache-Status", status.to_string());
    let ended = match sender.head(&head).await {
        Err(_) => Ended::Aborted(Aborted::Client),
        Ok(()) => {
            let response = SentResponse {
                outcome,
                status: 200,
                body_bytes: 0,
                media_type: Default::default(),
            };
            Ended::Intercepted(Inside::new(origin), response)
        }
    };
    Some((ended, sender.sent()))
}

/// Does the TLS handshake with the client within the time limit. Returns the decrypted connection
/// inside the tunnel.
pub(crate) async fn enter(
    worker: &Worker,
    connection: ClientConnection,
    inside: Inside,
) -> Option<ClientConnection> {
    let interception = worker.settings().interception.as_ref()?;
    let ClientConnection { stream: stream @ Transport::Plain(_), buffer, .. } = connection else {
        return None;
    };
    let handshake = handshake(interception, stream, buffer, inside.host());
    let entered = tokio::time::timeout(worker.settings().client_handshake, handshake).await;
    match entered.unwrap_or(Err(InterceptFailure::Failed)) {
        Ok(transport) => {
            worker.counters.add(Counter::Intercepted, 1);
            let mut connection = ClientConnection::new(transport, worker.settings().limits);
            connection.inside = Some(inside);
            Some(connection)
        }
        Err(reason) => {
            worker.counters.add(reason.counter(), 1);
            None
        }
    }
}

async fn handshake(
    interception: &Interception,
    mut stream: Transport,
    mut first: BytesMut,
    host: &str,
) -> Result<Transport, InterceptFailure> {
    while first.is_empty() {
        let read = stream.read_buf(&mut first).await;
        if !read.is_ok_and(|count| count > 0) {
            return Err(InterceptFailure::Failed);
        }
    }
    if first[0] != HANDSHAKE {
        return Err(InterceptFailure::NotTls);
    }
    let start = match parse_hello(&first)? {
        Hello::Whole(accepted) => StartHandshake::from_parts(*accepted, stream),
        Hello::Partial(acceptor) => {
            LazyConfigAcceptor::new(*acceptor, stream).await.map_err(|error| failure(&error))?
        }
    };
    if start.client_hello().server_name().is_some_and(|name| !is_same(name, host)) {
        return Err(InterceptFailure::WrongName);
    }
    let config: Arc<ServerConfig> =
        interception.config(host, clock::wall()).map_err(|_| InterceptFailure::Failed)?;
    start.into_stream(config).await.map(Transport::tls).map_err(|error| failure(&error))
}

enum Hello {
    Whole(Box<Accepted>),
    Partial(Box<Acceptor>),
}

/// Parses the bytes of a ClientHello that have arrived so far.
fn parse_hello(mut bytes: &[u8]) -> Result<Hello, InterceptFailure> {
    let mut acceptor = Acceptor::default();
    loop {
        if bytes.is_empty() {
            return Ok(Hello::Partial(Box::new(acceptor)));
        }
        acceptor.read_tls(&mut bytes).map_err(|_| InterceptFailure::Failed)?;
        match acceptor.accept() {
            Ok(None) => {}
            // After the ClientHello, a client must send nothing until the server answers.
            Ok(Some(accepted)) if bytes.is_empty() => return Ok(Hello::Whole(Box::new(accepted))),
            Ok(Some(_)) | Err(_) => return Err(InterceptFailure::Failed),
        }
    }
}

/// Returns true if the name in a ClientHello is the host of the CONNECT. The name in a ClientHello
/// has no final dot (RFC 6066 §3).
fn is_same(name: &str, host: &str) -> bool {
    name.eq_ignore_ascii_case(host.strip_suffix('.').unwrap_or(host))
}

fn failure(error: &io::Error) -> InterceptFailure {
    use AlertDescription as Alert;
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    match inner {
        Some(rustls::Error::AlertReceived(
            Alert::UnknownCA
            | Alert::BadCertificate
            | Alert::CertificateUnknown
            | Alert::CertificateExpired
            | Alert::CertificateRevoked
            | Alert::UnsupportedCertificate
            | Alert::AccessDenied,
        )) => InterceptFailure::Distrusted,
        _ => InterceptFailure::Failed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_hello_is_the_hosts_in_any_case_and_without_its_last_dot() {
        for (name, host, expected) in [
            ("a.test", "a.test", true),
            ("A.TEST", "a.test", true),
            ("a.test", "a.test.", true),
            ("b.test", "a.test", false),
            ("a.test", "192.0.2.1", false),
        ] {
            assert_eq!(is_same(name, host), expected, "{name} {host}");
        }
    }

    #[test]
    fn what_is_no_hello_is_given_up_and_half_a_one_waited_for() {
        assert!(matches!(
            parse_hello(&[HANDSHAKE, 3, 1, 0, 5, 9, 0, 0, 1, 0]),
            Err(InterceptFailure::Failed)
        ));
        assert!(matches!(parse_hello(&[HANDSHAKE, 3, 1]), Ok(Hello::Partial(_))));
    }

    #[test]
    fn an_alert_about_the_certificate_is_distrust_and_any_other_is_not() {
        let alert = |alert| failure(&io::Error::other(rustls::Error::AlertReceived(alert)));
        assert_eq!(alert(AlertDescription::UnknownCA), InterceptFailure::Distrusted);
        assert_eq!(alert(AlertDescription::HandshakeFailure), InterceptFailure::Failed);
        assert_eq!(failure(&io::ErrorKind::UnexpectedEof.into()), InterceptFailure::Failed);
    }
}
