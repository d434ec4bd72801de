//! Tests which connections a pool returns, and which connections it closes.

use super::*;
use crate::upstream::Scheme;
use crate::upstream::address::destination::ChosenBy;
use crate::upstream::dial::Origin;
use socket2::SockRef;
use std::io::Write;
use std::mem::MaybeUninit;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

struct Origins {
    listener: TcpListener,
}

impl Origins {
    async fn new() -> Self {
        Self { listener: TcpListener::bind("127.0.0.1:0").await.expect("a loopback listener") }
    }

    /// Returns a connection of the proxy, and the origin's end of the same connection.
    async fn connect(&self) -> (Connection, TcpStream) {
        let address = self.listener.local_addr().expect("its address");
        let ours = TcpStream::connect(address).await.expect("a connection");
        let (theirs, _) = self.listener.accept().await.expect("its other end");
        (Connection::new(Transport::Plain(ours), Limits::default()), theirs)
    }
}

fn pool(per_origin: usize, total: usize) -> Pool {
    Pool::new(PoolLimits { per_origin, total, idle: Duration::from_secs(30) })
}

fn origin(host: &str) -> Route {
    Route::direct(Origin::new(Scheme::Http, host, 80, ChosenBy::Client))
}

fn port_of(connection: &Connection) -> u16 {
    connection.stream.with_socket(TcpStream::local_addr).expect("its address").port()
}

#[tokio::test]
async fn the_last_one_in_is_the_first_one_out() {
    let (origins, mut pool, now) = (Origins::new().await, pool(8, 8), Instant::now());
    let (one, _one) = origins.connect().await;
    let (two, _two) = origins.connect().await;
    let ports = (port_of(&one), port_of(&two));
    pool.put(&origin("a"), one, now);
    pool.put(&origin("a"), two, now);
    assert!(pool.take(&origin("b"), now).is_none());
    let taken = [pool.take(&origin("a"), now), pool.take(&origin("a"), now)];
    assert_eq!(
        taken.each_ref().map(|taken| taken.as_ref().map(port_of)),
        [Some(ports.1), Some(ports.0)]
    );
    assert_eq!(pool.len(), 0);
}

#[tokio::test]
async fn what_the_operator_opened_is_not_given_to_clients() {
    let (origins, mut pool, now) = (Origins::new().await, pool(8, 8), Instant::now());
    let (connection, _end) = origins.connect().await;
    let operators = Origin::new(Scheme::Http, "a", 80, ChosenBy::Operator);
    pool.put(&Route::direct(operators), connection, now);
    assert!(pool.take(&origin("a"), now).is_none());
}

#[tokio::test]
async fn closed_and_talking_connections_are_not_given() {
    let (origins, mut pool, now) = (Origins::new().await, pool(8, 8), Instant::now());
    let (closed, end) = origins.connect().await;
    let (talking, mut talker) = origins.connect().await;
    drop(end);
    talker.write_all(b"HTTP/1.1 408 Request Timeout\r\n\r\n").await.expect("written");
    for connection in [&closed, &talking] {
        let Transport::Plain(socket) = &connection.stream else { panic!("no TLS was asked for") };
        socket.readable().await.expect("the end or bytes arrive");
    }
    pool.put(&origin("a"), closed, now);
    pool.put(&origin("b"), talking, now);
    assert!(pool.take(&origin("a"), now).is_none());
    pool.sweep(now);
    assert_eq!(pool.len(), 0);
    assert_eq!(talker.read(&mut [0; 8]).await.unwrap_or(0), 0, "the talking connection was closed");
}

#[tokio::test]
async fn bytes_that_the_runtime_has_not_seen_yet_are_found() {
    let (origins, mut pool, now) = (Origins::new().await, pool(8, 8), Instant::now());
    let (connection, end) = origins.connect().await;
    let copy =
        connection.stream.with_socket(|socket| SockRef::from(socket).try_clone().expect("a copy"));
    pool.put(&origin("a"), connection, now);
    // From here on, the test never yields to the runtime. So the runtime does not learn that these
    // bytes have arrived.
    let mut end = end.into_std().expect("a socket");
    end.write_all(b"late").expect("written");
    while copy.peek(&mut [MaybeUninit::uninit()]).is_err() {
        std::thread::yield_now();
    }
    assert!(pool.take(&origin("a"), now).is_none());
}

#[tokio::test]
async fn old_connections_are_closed() {
    let (origins, mut pool, now) = (Origins::new().await, pool(8, 8), Instant::now());
    let (old, _old) = origins.connect().await;
    let (young, _young) = origins.connect().await;
    pool.put(&origin("a"), old, now);
    pool.put(&origin("b"), young, now + Duration::from_secs(10));
    pool.sweep(now + Duration::from_secs(30));
    assert_eq!(pool.len(), 1);
    assert!(pool.take(&origin("b"), now + Duration::from_secs(40)).is_none());
    assert_eq!(pool.len(), 0);
}

#[tokio::test]
async fn limits_close_the_oldest() {
    let (origins, mut pool, now) = (Origins::new().await, pool(2, 3), Instant::now());
    let mut ends = Vec::new();
    for (second, host) in ["a", "a", "a", "b", "c"].into_iter().enumerate() {
        let (connection, end) = origins.connect().await;
        ends.push(end);
        pool.put(&origin(host), connection, now + Duration::from_secs(second as u64));
    }
    assert_eq!(pool.len(), 3);
    let now = now + Duration::from_secs(5);
    let left = ["a", "a", "b", "c"].map(|host| pool.take(&origin(host), now).is_some());
    assert_eq!(left, [true, false, true, true]);
}
