//! A reference proxy with Squid's architecture. A single thread waits for sockets, but blocks on
//! file operations. An index in memory lists the stored URLs.

use super::message::{Answer, BAD_GATEWAY, Incoming, WantedUrl};
use super::{Proxy, TIME_LIMIT};
use foxy_base::clock;
use std::cell::RefCell;
use std::collections::HashSet;
use std::io;
use std::net::TcpListener as StdListener;
use std::rc::Rc;
use std::sync::Arc;
use std::thread::Builder;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{LocalSet, spawn_local};
use tokio::time::{sleep, timeout};

/// The pause after a failed accept. Usually no file descriptor is free.
const PAUSE: Duration = Duration::from_millis(10);

type Index = Option<RefCell<HashSet<String>>>;

pub fn start(proxy: Arc<Proxy>, index: bool, listener: StdListener) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let run = move || {
        let index: Rc<Index> = Rc::new(index.then(RefCell::default));
        LocalSet::new().block_on(&runtime, async {
            let Ok(listener) = TcpListener::from_std(listener) else { return };
            loop {
                match listener.accept().await {
                    Ok((client, _)) => {
                        let (proxy, index) = (Arc::clone(&proxy), Rc::clone(&index));
                        spawn_local(async move {
                            // An error does not matter, because it only means that the client has
                            // closed its connection.
                            let _gone =
                                timeout(2 * TIME_LIMIT, serve(&proxy, &index, client)).await;
                        });
                    }
                    Err(_) => sleep(PAUSE).await,
                }
            }
        });
    };
    Builder::new().name("loop".into()).spawn(run).map(|_| ())
}

async fn serve(proxy: &Proxy, index: &Index, mut client: TcpStream) -> io::Result<()> {
    let mut incoming = Incoming::default();
    let mut piece = [0; 4096];
    let wanted = loop {
        let read = client.read(&mut piece).await?;
        if read == 0 {
            return Ok(());
        }
        match incoming.take(&piece[..read]) {
            Ok(None) => {}
            Ok(Some(wanted)) => break wanted,
            Err(refusal) => return client.write_all(refusal).await,
        }
    };
    let known = index.as_ref().is_none_or(|index| index.borrow().contains(&wanted.url));
    if known
        && proxy.cache
        && !wanted.reload
        && let Some(answer) = proxy.files.find(&wanted, clock::wall().seconds())
    {
        client.write_all(&answer).await?;
        return client.shutdown().await;
    }
    let Ok(bytes) = fetch(&wanted).await else { return client.write_all(BAD_GATEWAY).await };
    let answer = Answer::of(bytes, clock::wall().seconds());
    client.write_all(&answer.bytes).await?;
    client.shutdown().await?;
    if let Some(expires) = answer.expires.filter(|_| proxy.cache) {
        proxy.files.keep(&wanted, &answer.bytes, expires)?;
        if let Some(index) = index {
            index.borrow_mut().insert(wanted.url);
        }
    }
    Ok(())
}

async fn fetch(wanted: &WantedUrl) -> io::Result<Vec<u8>> {
    let exchange = async {
        let mut server = TcpStream::connect(&wanted.authority).await?;
        server.write_all(&wanted.text).await?;
        let mut answer = Vec::new();
        server.read_to_end(&mut answer).await?;
        Ok(answer)
    };
    timeout(TIME_LIMIT, exchange).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}
