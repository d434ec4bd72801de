//! Reference architectures with threads. One has a pool of workers that accept connections, one has
//! a fixed pool with a queue, and one has a thread per connection.

use super::Proxy;
use std::io;
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::{Receiver, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Builder;
use std::time::Duration;
use tokio::net::TcpSocket;

/// Pause after a failed accept, for example because no file descriptor is free.
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

/// Starts workers that take connections from a queue. The proxy resets a connection beyond the
/// backlog. If the connection stayed in the kernel's queue, Linux would make the client retry a
/// second later.
pub fn fixed(
    proxy: &Arc<Proxy>,
    workers: usize,
    backlog: usize,
    listener: TcpListener,
) -> io::Result<()> {
    let most = workers + backlog;
    let (queue, waiting) = sync_channel(most);
    let waiting = Arc::new(Mutex::new(waiting));
    // Number of connections that workers serve or that wait. The length of the queue is not enough,
    // because many connections can arrive before idle workers wake.
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

/// Resets the connection. If the socket option fails, closing a socket with an unread request also
/// resets it.
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
