//! Opens listening sockets. Retries for a short time, because a process that was just killed may
//! still hold the address.

use crate::failure::Failure;
use foxy_base::clock;
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

/// Time that a killed process may take to release its address and its stores.
const PREDECESSOR_PATIENCE: Duration = Duration::from_secs(1);
const PREDECESSOR_POLL: Duration = Duration::from_millis(10);

/// Binds an address exclusively. Fails if another process uses the address. `flag` names the
/// setting in the error.
pub fn listen(address: SocketAddr, flag: &str) -> Result<TcpListener, Failure> {
    let is_in_use = |error: &std::io::Error| error.kind() == std::io::ErrorKind::AddrInUse;
    patiently(is_in_use, || TcpListener::bind(address))
        .map_err(|error| cannot_listen(address, flag, &error))
}

/// Repeats `attempt` until it succeeds, for at most [`PREDECESSOR_PATIENCE`]. Gives up at once if
/// `attempt` returns an error that a killed process cannot cause.
pub fn patiently<T, E>(
    may_pass: impl Fn(&E) -> bool,
    mut attempt: impl FnMut() -> Result<T, E>,
) -> Result<T, E> {
    let until = clock::monotonic() + PREDECESSOR_PATIENCE;
    loop {
        match attempt() {
            Err(error) if may_pass(&error) && clock::monotonic() < until => {
                std::thread::sleep(PREDECESSOR_POLL);
            }
            result => return result,
        }
    }
}

pub fn cannot_listen(address: SocketAddr, flag: &str, error: &std::io::Error) -> Failure {
    Failure::Unusable(format!(
        "cannot listen on {address} ({flag}): {error}; stop the program that listens there, or \
         give another address"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_passing_errors_are_retried() {
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
