//! A connection to a NATS server, with blocking calls. A lost connection is never opened again, so
//! all calls reach the same run of the server.

use super::NatsServer;
use crate::purges::engine::{CALL_TIMEOUT, EngineError};
use async_nats::{Client, ConnectOptions, Event, HeaderMap, Message, Request, RequestErrorKind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;

/// The pause before the NATS library would open a lost connection again. It is so long that this
/// never happens: foxy opens a new connection itself.
const NEVER: Duration = Duration::from_secs(1 << 30);

/// A connection to a NATS server, with the Tokio runtime that runs during calls.
pub struct NatsConnection {
    /// The Tokio runtime. `None` only while this value is dropped.
    runtime: Option<Runtime>,
    client: Client,
    is_lost: watch::Receiver<bool>,
}

fn away(error: impl std::fmt::Display) -> EngineError {
    EngineError::Away(error.to_string())
}

fn options(server: &NatsServer, lost: watch::Sender<bool>) -> ConnectOptions {
    let has_tried = AtomicBool::new(false);
    let options = match (server.user.as_str(), server.password.as_str()) {
        ("", "") => ConnectOptions::new(),
        ("", token) => ConnectOptions::with_token(token.to_owned()),
        (user, password) => {
            ConnectOptions::with_user_and_password(user.to_owned(), password.to_owned())
        }
    };
    options
        .name("foxy")
        .connection_timeout(CALL_TIMEOUT)
        .ignore_discovered_servers()
        .reconnect_delay_callback(move |_| {
            if has_tried.swap(true, Ordering::Relaxed) { NEVER } else { Duration::ZERO }
        })
        .event_callback(move |event| {
            if matches!(event, Event::Disconnected | Event::Closed) {
                lost.send_replace(true);
            }
            async {}
        })
}

impl NatsConnection {
    /// Connects to a NATS server.
    pub fn open(server: &NatsServer) -> Result<Self, EngineError> {
        let runtime = Builder::new_current_thread().enable_all().build().map_err(away)?;
        let (sender, is_lost) = watch::channel(false);
        let connecting = options(server, sender).connect(server.address.clone());
        let limited =
            runtime.block_on(async { tokio::time::timeout(CALL_TIMEOUT, connecting).await });
        match limited {
            Ok(Ok(client)) => Ok(Self { runtime: Some(runtime), client, is_lost }),
            Ok(Err(error)) => {
                runtime.shutdown_background();
                Err(away(error))
            }
            Err(_) => {
                runtime.shutdown_background();
                Err(away("the NATS server does not answer"))
            }
        }
    }

    /// Returns the NATS client. Its calls must run within `block_on`.
    pub const fn client(&self) -> &Client {
        &self.client
    }

    /// Runs `calls` until they finish. Returns an error if the connection is lost or the time limit
    /// passes.
    pub fn block_on<T>(
        &self,
        limit: Duration,
        calls: impl Future<Output = Result<T, EngineError>>,
    ) -> Result<T, EngineError> {
        let Some(runtime) = &self.runtime else { return Err(away("the connection has ended")) };
        let mut is_lost = self.is_lost.clone();
        runtime.block_on(async {
            tokio::select! {
                biased;
                _ = is_lost.wait_for(|is_lost| *is_lost) => {
                    Err(away("the NATS server closed the connection"))
                }
                result = tokio::time::timeout(limit, calls) => {
                    result.unwrap_or_else(|_| Err(away("the NATS server does not answer in time")))
                }
            }
        })
    }
}

impl Drop for NatsConnection {
    /// Drops the runtime without waiting for a thread that still resolves a host name.
    fn drop(&mut self) {
        self.runtime.take().into_iter().for_each(Runtime::shutdown_background);
    }
}

/// Sends a NATS request and returns its answer. This function has no time limit, so the caller must
/// limit the time.
pub async fn request(
    client: &Client,
    subject: String,
    headers: HeaderMap,
    payload: Vec<u8>,
) -> Result<Message, EngineError> {
    let request = Request::new().payload(payload.into()).timeout(None);
    let request = if headers.is_empty() { request } else { request.headers(headers) };
    client.send_request(subject, request).await.map_err(|error| match error.kind() {
        RequestErrorKind::NoResponders => away("the NATS server lacks JetStream or the stream"),
        _ => away(error),
    })
}
