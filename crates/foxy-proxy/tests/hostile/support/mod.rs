//! Origins on loopback that follow a script. They send raw bytes, so that they can break every
//! rule.

pub mod http2;
pub mod http2_frames;
pub mod http2_origin;
pub mod proxy;
pub mod requests;
pub mod store;
pub mod wire;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// A step of an origin's script for one connection. The origin closes the connection after the last
/// step.
#[derive(Clone, Debug)]
pub enum Step {
    /// Reads a request head from the proxy.
    Head,
    /// Reads this number of body bytes from the proxy.
    Body(usize),
    /// Sends these bytes.
    Send(Vec<u8>),
    /// Sends these bytes again and again until the peer closes the connection.
    SendForever(Vec<u8>),
    /// Sends this byte again and again, with this pause after each byte.
    Drip(u8, Duration),
    /// Waits until the peer closes the connection.
    AwaitClose,
    /// Waits for this time.
    Pause(Duration),
    /// Waits until the test notifies this `Notify`.
    AwaitGo(Rc<tokio::sync::Notify>),
    /// Does nothing more, and keeps the connection open.
    Hang,
    Reset,
}

/// Runs a test whose origins and clients are tasks on this thread.
pub async fn local<T>(test: impl Future<Output = T>) -> T {
    tokio::task::LocalSet::new().run_until(test).await
}

pub fn send(text: &str) -> Step {
    Step::Send(text.as_bytes().to_vec())
}

/// An origin on a loopback port that follows scripts.
pub struct ScriptedOrigin {
    pub port: u16,
    heard: Rc<RefCell<Vec<String>>>,
    connections: Rc<Cell<usize>>,
    closed: Rc<tokio::sync::Notify>,
}

impl ScriptedOrigin {
    /// Starts an origin on the current `LocalSet`. The n-th connection follows the n-th script. All
    /// further connections follow the last script.
    pub async fn start(scripts: Vec<Vec<Step>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a loopback listener");
        let port = listener.local_addr().expect("its address").port();
        let origin =
            Self { port, heard: Rc::default(), connections: Rc::default(), closed: Rc::default() };
        let (heard, connections, closed) =
            (Rc::clone(&origin.heard), Rc::clone(&origin.connections), Rc::clone(&origin.closed));
        tokio::task::spawn_local(async move {
            loop {
                let (stream, _) = listener.accept().await.expect("a connection");
                let script = scripts[connections.get().min(scripts.len() - 1)].clone();
                connections.set(connections.get() + 1);
                let (heard, closed) = (Rc::clone(&heard), Rc::clone(&closed));
                tokio::task::spawn_local(async move {
                    let _ = follow(stream, script, &heard).await;
                    closed.notify_one();
                });
            }
        });
        origin
    }

    /// Starts an origin that follows the same script on every connection.
    pub async fn with(script: Vec<Step>) -> Self {
        Self::start(vec![script]).await
    }

    /// Returns the number of connections that the origin has accepted so far.
    pub fn connections(&self) -> usize {
        self.connections.get()
    }

    /// Returns all request heads and bodies that the origin has read so far, in order.
    pub fn heard(&self) -> Vec<String> {
        self.heard.borrow().clone()
    }

    /// Waits until the origin has read a request head.
    pub async fn heard_a_head(&self) {
        while self.heard.borrow().is_empty() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// Waits until a connection has reached the end of its script.
    pub async fn closed(&self) {
        self.closed.notified().await;
    }
}

async fn follow(
    mut stream: TcpStream,
    script: Vec<Step>,
    heard: &RefCell<Vec<String>>,
) -> std::io::Result<()> {
    for step in script {
        match step {
            Step::Head => {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    head.push(stream.read_u8().await?);
                }
                heard.borrow_mut().push(String::from_utf8_lossy(&head).into_owned());
            }
            Step::Body(length) => {
                let mut body = vec![0; length];
                stream.read_exact(&mut body).await?;
                heard.borrow_mut().push(String::from_utf8_lossy(&body).into_owned());
            }
            Step::Send(bytes) => stream.write_all(&bytes).await?,
            Step::SendForever(bytes) => loop {
                stream.write_all(&bytes).await?;
            },
            Step::Drip(byte, pause) => loop {
                stream.write_u8(byte).await?;
                tokio::time::sleep(pause).await;
            },
            Step::AwaitClose => while stream.read(&mut [0; 1024]).await? > 0 {},
            Step::Pause(time) => tokio::time::sleep(time).await,
            Step::AwaitGo(go) => go.notified().await,
            Step::Hang => std::future::pending().await,
            Step::Reset => {
                stream.set_zero_linger()?;
                return Ok(());
            }
        }
    }
    stream.shutdown().await
}
