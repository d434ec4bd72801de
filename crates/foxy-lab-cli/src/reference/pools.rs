//! Reference proxies with threads. In the first, each worker of a pool accepts connections itself.
//! The second has a fixed pool with a queue. The third starts a thread for each connection.

use super::Proxy;
use std::io;
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::{Receiver, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Builder;
use std::time::Duration;
use tokio::net::TcpSocket;

/// The pause after a failed accept. Usually no file descriptor is free.
const PAUSE: Duration = Duration::from_millis(10);

pub fn accept_each(listener: &TcpListener, mut serve: impl FnMut(TcpStream)) {
    loop {
        match listener.accept() {
            Ok((client, _)) => serve(client),
            Err(_) => std::thread::sleep(PAUSE),
        }
    }
}

pub fn prefork(proxy: &Arc<Proxy>, workers: usize, listener: &TcpListener) -> io::Result<()> {
    for _ in 0..workers {
        let (proxy, listener) = (Arc::clone(proxy), listener.try_clone()?);
        Builder::new()
            .name("worker".into())
            .spawn(move || accept_each(&listener, |client| proxy.serve(client)))?;
    }
    Ok(())
}

/// Starts workers that take connections from a queue. The proxy resets connections for which the
/// queue has no space. If such a connection stayed in the kernel's queue, Linux would make the
/// client retry a second later.
pub fn fixed(
    proxy: &Arc<Proxy>,
    workers: usize,
    backlog: usize,
    listener: TcpListener,
) -> io::Result<()> {
    let most = workers + backlog;
    let (queue, waiting) = sync_channel(most);
    let waiting = Arc::new(Mutex::new(waiting));
    // The number of connections that wait or that workers serve. The length of the queue alone is
    // not enough, because many connections can arrive before idle workers wake.
    let inside = Arc::new(AtomicUsize::new(0));
    for _ in 0..workers {
        let (proxy, waiting, inside) =
            (Arc::clone(proxy), Arc::clone(&waiting), Arc::clone(&inside));
        Builder::new().name("worker".into()).spawn(move || work(&proxy, &waiting, &inside))?;
    }
    let accept = move || {
        accept_each(&listener, |client| {
            if inside.load(SeqCst) >= most {
                return reset(client);
            }
            inside.fetch_add(1, SeqCst);
            if let Err(TrySendError::Full(client) | TrySendError::Disconnected(client)) =
                queue.try_send(client)
            {
                inside.fetch_sub(1, SeqCst);
                reset(client);
            }
        });
    };
    Builder::new().name("accept".into()).spawn(accept).map(|_| ())
}

fn work(proxy: &Proxy, waiting: &Mutex<Receiver<TcpStream>>, inside: &AtomicUsize) {
    loop {
        let next = waiting.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(client) = next else { return };
        proxy.serve(client);
        inside.fetch_sub(1, SeqCst);
    }
}

/// Resets the connection. If the socket option cannot be set, the close resets the connection too,
/// because the client's request is unread.
fn reset(client: TcpStream) {
    let _closed_all_the_same = TcpSocket::from_std_stream(client).set_zero_linger();
}

pub fn thread_each(proxy: Arc<Proxy>, listener: TcpListener) -> io::Result<()> {
    let accept = move || {
        accept_each(&listener, |client| {
            let proxy = Arc::clone(&proxy);
            let _closed_without_a_thread = Builder::new().spawn(move || proxy.serve(client));
        });
    };
    Builder::new().name("accept".into()).spawn(accept).map(|_| ())
}
