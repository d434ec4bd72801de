//! Listeners, and patience with a predecessor that was just killed and still holds an address or a
//! store.

use crate::failure::Failure;
use foxy_base::clock;
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

/// How long the process before this one may take to let go of its address and its stores.
const PREDECESSOR_PATIENCE: Duration = Duration::from_secs(1);
const PREDECESSOR_LOOK: Duration = Duration::from_millis(10);

/// Binds an address without sharing it, so that one in use is noticed.
pub fn listen(address: SocketAddr, flag: &str) -> Result<TcpListener, Failure> {
    let in_use = |error: &std::io::Error| error.kind() == std::io::ErrorKind::AddrInUse;
    patiently(in_use, || TcpListener::bind(address))
        .map_err(|error| cannot_listen(address, flag, &error))
}

/// Tries again for a while what a process that was just killed may still be in the way of.
pub fn patiently<T, E>(
    in_the_way: impl Fn(&E) -> bool,
    mut attempt: impl FnMut() -> Result<T, E>,
) -> Result<T, E> {
    let until = clock::monotonic() + PREDECESSOR_PATIENCE;
    loop {
        match attempt() {
            Err(error) if in_the_way(&error) && clock::monotonic() < until => {
                std::thread::sleep(PREDECESSOR_LOOK);
            }
            result => return result,
        }
    }
}

/// Why an address cannot be listened on.
pub fn cannot_listen(address: SocketAddr, flag: &str, error: &std::io::Error) -> Failure {
    let text = format!(
        "cannot listen on {address} ({flag}): {error}; stop what listens there or give another address"
    );
    Failure::Unusable(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_the_way_for_a_moment_is_waited_for_and_nothing_else() {
        let mut left = 3;
        let result = patiently(
            |_| true,
            || {
                left -= 1;
                if left == 0 { Ok(()) } else { Err(()) }
            },
        );
        assert_eq!(result, Ok(()));
        let mut attempts = 0;
        let result: Result<(), u8> = patiently(
            |_| false,
            || {
                attempts += 1;
                Err(7)
            },
        );
        assert_eq!((result, attempts), (Err(7), 1));
    }
}
