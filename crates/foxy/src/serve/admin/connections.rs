//! Connections of the admin server. A client that sends nothing cannot keep others out: a new
//! connection replaces the least important open connection if there are too many.

use crate::serve::admin::{Operated, routes};
use foxy_proxy::server::listener::Acceptor;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use std::cell::Cell;
use std::cmp::Reverse;
use std::convert::Infallible;
use std::future::poll_fn;
use std::net::IpAddr;
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep, timeout_at};

pub const MAX_HEAD_BYTES: usize = 8 * 1024;
const MAX_FIELDS: usize = 64;
const EXCHANGE_TIMEOUT: Duration = Duration::from_secs(5);
const MAX_CONNECTIONS: usize = 64;
/// Pause before the next accept after an error, such as no free file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The client of a connection, and its rights.
#[derive(Debug)]
pub struct AdminConnection {
    pub client: IpAddr,
    /// Whether the client has shown that it may change the cache.
    is_permitted: Cell<bool>,
    /// The connection ends at this time.
    deadline: Cell<Instant>,
}

impl AdminConnection {
    pub fn new(client: IpAddr) -> Self {
        let deadline = Cell::new(Instant::now() + EXCHANGE_TIMEOUT);
        Self { client: client.to_canonical(), is_permitted: Cell::new(false), deadline }
    }

    /// Notes that the client may change the cache. Its answer may take `more` time than usual.
    pub fn permit(&self, more: Duration) {
        self.is_permitted.set(true);
        self.deadline.set(self.deadline.get() + more);
    }
}

/// Accepts connections and answers their requests until the future is dropped. Must run inside a
/// Tokio `LocalSet`.
pub async fn run(listener: Acceptor, operated: Rc<dyn Operated>) {
    let mut open: Vec<(Rc<AdminConnection>, AbortHandle)> = Vec::new();
    loop {
        let Ok((stream, peer)) = listener.accept().await else {
            sleep(ACCEPT_PAUSE).await;
            continue;
        };
        open.retain(|(_, task)| !task.is_finished());
        if open.len() >= MAX_CONNECTIONS {
            let place = least_important(open.iter().map(|(connection, _)| &**connection));
            open.remove(place).1.abort();
        }
        let connection = Rc::new(AdminConnection::new(peer.ip()));
        let serving = serve(stream, Rc::clone(&connection), Rc::clone(&operated));
        open.push((connection, tokio::task::spawn_local(serving).abort_handle()));
    }
}

/// Returns the position of the connection to close. `open` has the oldest connection first.
fn least_important<'a>(open: impl Iterator<Item = &'a AdminConnection> + Clone) -> usize {
    let importance = |(place, connection): (usize, &AdminConnection)| {
        let AdminConnection { client, is_permitted, .. } = connection;
        let others = open.clone().filter(|other| other.client == *client).count();
        (is_permitted.get(), client.is_loopback(), Reverse(others), place)
    };
    let least = open.clone().enumerate().min_by_key(|numbered| importance(*numbered));
    least.map_or(0, |(place, _)| place)
}

/// Answers the request of a connection, unless its time ends before.
pub async fn serve<S: AsyncRead + AsyncWrite + Unpin>(
    stream: S,
    connection: Rc<AdminConnection>,
    operated: Rc<dyn Operated>,
) {
    let mut exchange = pin!(exchange(stream, &connection, &*operated));
    // A request that takes long, such as an upgrade, gets a later deadline.
    let mut deadline = None;
    while deadline != Some(connection.deadline.get()) {
        let until = connection.deadline.get();
        if timeout_at(until, exchange.as_mut()).await.is_ok() {
            return;
        }
        deadline = Some(until);
    }
}

async fn exchange<S: AsyncRead + AsyncWrite + Unpin>(
    stream: S,
    connection: &AdminConnection,
    operated: &dyn Operated,
) -> std::io::Result<()> {
    let service = service_fn(move |request| {
        let answered = routes::answer(request, connection, operated);
        Box::pin(async { Ok::<_, Infallible>(answered.await) })
    });
    let mut http = http1::Builder::new()
        .keep_alive(false)
        .half_close(true)
        .title_case_headers(true)
        .max_headers(MAX_FIELDS)
        .max_header_size(MAX_HEAD_BYTES)
        .serve_connection(TokioIo::new(stream), service);
    // An error is ignored here, because hyper has sent its status to the client.
    let _unreadable = poll_fn(|context| http.poll_without_shutdown(context)).await;
    let mut stream = http.into_parts().io.into_inner();
    stream.shutdown().await?;
    // Reads and ignores the rest of the request. If unread bytes remained, the close would reset
    // the connection, and the client could lose the response.
    let mut rest = [0; 1024];
    while stream.read(&mut rest).await? > 0 {}
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the connection to close. Each text is a client, with `+` if it is permitted.
    fn closed(open: &[&str]) -> usize {
        let connection = |text: &&str| {
            let client = text.trim_end_matches('+').parse().expect("an address");
            let connection = AdminConnection::new(client);
            connection.is_permitted.set(text.ends_with('+'));
            connection
        };
        let open: Vec<_> = open.iter().map(connection).collect();
        least_important(open.iter())
    }

    #[test]
    fn the_oldest_silent_connection_of_the_busiest_remote_client_closes_first() {
        let (here, one, two) = ("127.0.0.1", "192.0.2.1", "192.0.2.2");
        assert_eq!(closed(&[here, one, two, two]), 2);
        assert_eq!(closed(&[here, here, here, one]), 3);
        assert_eq!(closed(&["127.0.0.1+", here, "::1", here]), 1);
        assert_eq!(closed(&["192.0.2.1+", "192.0.2.1+", two, here]), 2);
        assert_eq!(closed(&["192.0.2.1+", "127.0.0.1+"]), 0);
    }
}
