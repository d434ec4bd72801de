//! Why there is no connection to an origin, each with the status a client gets for it.
//! `docs/errors.md` explains them to people.

use crate::upstream::address::destination::DestinationRefusal;
use std::fmt;
use std::io;

/// Why a name gave no addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ResolveError {
    /// The name does not exist, or has no address. Also any host that ends in a number without
    /// being an address (`0x7f.1`, `2130706433`): no DNS name ends so, and libraries disagree about
    /// what address it is.
    NoSuchHost,
    /// No name server answered in time.
    TimedOut,
    /// The name servers failed, or there are none.
    ServerFailed,
    /// The answer is none that can be understood.
    BadAnswer,
    /// Too many names are being looked up.
    TooManyLookups,
    /// Too many names are being looked up for the same client.
    TooManyOfClient,
}

/// Why TLS with an origin did not come about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TlsError {
    /// No authority that is trusted signed the certificate.
    Untrusted,
    /// The certificate is for other names, or the origin's host is none that a certificate can be
    /// for.
    WrongName,
    /// The certificate is not valid any more, or not yet.
    Expired,
    /// The certificate is unusable in another way: its encoding, its signature, its purpose.
    BadCertificate,
    /// The origin refused the handshake with an alert.
    Refused,
    /// The origin closed or reset the connection within the handshake.
    Closed,
    /// The handshake took too long.
    TimedOut,
    /// What the origin sent is no TLS, or none we can agree on.
    Failed,
}

/// Why there is no connection to an origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ConnectError {
    /// The origin's name gave no addresses.
    Resolve(ResolveError),
    /// The policy forbids every address of the origin, or the port.
    Forbidden(DestinationRefusal),
    /// No address answered in time.
    TimedOut,
    /// The origin's machine refuses connections to the port.
    ConnectionRefused,
    /// No route leads to the origin.
    Unreachable,
    /// This machine is out of descriptors, ports or memory.
    OutOfResources,
    /// Connecting failed in another way.
    Failed,
    /// The connection is there, TLS on it is not.
    Tls(TlsError),
}

impl ResolveError {
    /// Whether it says something of the server that was asked and nothing of the name.
    pub(crate) const fn is_the_servers(self) -> bool {
        matches!(self, Self::TimedOut | Self::ServerFailed | Self::BadAnswer)
    }

    /// The reason as one word, for logs and `Cache-Status`.
    pub fn name(self) -> &'static str {
        match self {
            Self::NoSuchHost => "no-such-host",
            Self::TimedOut => "dns-timeout",
            Self::ServerFailed => "dns-failed",
            Self::BadAnswer => "dns-bad-answer",
            Self::TooManyLookups => "dns-busy",
            Self::TooManyOfClient => "dns-client-busy",
        }
    }

    /// The status a client gets.
    pub fn status(self) -> u16 {
        match self {
            Self::NoSuchHost | Self::ServerFailed | Self::BadAnswer => 502,
            Self::TimedOut => 504,
            Self::TooManyLookups | Self::TooManyOfClient => 503,
        }
    }

    /// One line for people.
    pub fn description(self) -> &'static str {
        match self {
            Self::NoSuchHost => "the host name does not exist or has no address",
            Self::TimedOut => "no name server answered in time",
            Self::ServerFailed => "the name servers answered with a failure, or none is set up",
            Self::BadAnswer => "a name server's answer cannot be understood",
            Self::TooManyLookups => "too many names are being looked up",
            Self::TooManyOfClient => {
                "as many names are being looked up for your address as one client may have; try again"
            }
        }
    }
}

impl TlsError {
    /// The reason as one word, for logs and `Cache-Status`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Untrusted => "certificate-untrusted",
            Self::WrongName => "certificate-name-mismatch",
            Self::Expired => "certificate-expired",
            Self::BadCertificate => "certificate-invalid",
            Self::Refused => "tls-refused",
            Self::Closed => "tls-closed",
            Self::TimedOut => "tls-timeout",
            Self::Failed => "tls-failed",
        }
    }

    /// The status a client gets.
    pub fn status(self) -> u16 {
        match self {
            Self::TimedOut => 504,
            Self::Untrusted
            | Self::WrongName
            | Self::Expired
            | Self::BadCertificate
            | Self::Refused
            | Self::Closed
            | Self::Failed => 502,
        }
    }

    /// One line for people.
    pub fn description(self) -> &'static str {
        match self {
            Self::Untrusted => "no trusted authority signed the origin's certificate",
            Self::WrongName => "the origin's certificate is for another name",
            Self::Expired => "the origin's certificate is not valid at this time",
            Self::BadCertificate => "the origin's certificate cannot be used",
            Self::Refused => "the origin refused the TLS handshake",
            Self::Closed => "the origin closed the connection within the TLS handshake",
            Self::TimedOut => "the TLS handshake with the origin took too long",
            Self::Failed => "the origin speaks no TLS, or none that can be agreed on",
        }
    }
}

impl ConnectError {
    /// The reason as one word, for logs and `Cache-Status`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Resolve(error) => error.name(),
            Self::Forbidden(_) => "destination-forbidden",
            Self::TimedOut => "connect-timeout",
            Self::ConnectionRefused => "connection-refused",
            Self::Unreachable => "unreachable",
            Self::OutOfResources => "out-of-resources",
            Self::Failed => "connect-failed",
            Self::Tls(error) => error.name(),
        }
    }

    /// The status a client gets.
    pub fn status(self) -> u16 {
        match self {
            Self::Resolve(error) => error.status(),
            Self::Forbidden(_) => 403,
            Self::TimedOut => 504,
            Self::ConnectionRefused | Self::Unreachable | Self::Failed => 502,
            Self::OutOfResources => 503,
            Self::Tls(error) => error.status(),
        }
    }

    /// One line for people.
    pub fn description(self) -> &'static str {
        match self {
            Self::Resolve(error) => error.description(),
            Self::Forbidden(refusal) => refusal.description(),
            Self::TimedOut => "the origin did not accept a connection in time",
            Self::ConnectionRefused => "the origin refuses connections to this port",
            Self::Unreachable => "no route leads to the origin",
            Self::OutOfResources => "the proxy's machine is out of descriptors, ports or memory",
            Self::Failed => "connecting to the origin failed",
            Self::Tls(error) => error.description(),
        }
    }
}

/// Why connecting failed, by the system's error.
pub(crate) fn connect_failure(error: &io::Error) -> ConnectError {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => ConnectError::ConnectionRefused,
        io::ErrorKind::TimedOut => ConnectError::TimedOut,
        io::ErrorKind::HostUnreachable
        | io::ErrorKind::NetworkUnreachable
        | io::ErrorKind::NetworkDown => ConnectError::Unreachable,
        io::ErrorKind::AddrNotAvailable
        | io::ErrorKind::OutOfMemory
        | io::ErrorKind::ResourceBusy => ConnectError::OutOfResources,
        _ if error.raw_os_error().is_some_and(is_descriptor_limit) => ConnectError::OutOfResources,
        _ => ConnectError::Failed,
    }
}

/// EMFILE and ENFILE, which the standard library has no kind for.
fn is_descriptor_limit(code: i32) -> bool {
    matches!(code, 23 | 24)
}

impl fmt::Display for ResolveError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.description())
    }
}

impl fmt::Display for TlsError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.description())
    }
}

impl fmt::Display for ConnectError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.description())
    }
}

impl std::error::Error for ResolveError {}
impl std::error::Error for TlsError {}
impl std::error::Error for ConnectError {}

impl From<ResolveError> for ConnectError {
    fn from(error: ResolveError) -> Self {
        Self::Resolve(error)
    }
}

impl From<DestinationRefusal> for ConnectError {
    fn from(refusal: DestinationRefusal) -> Self {
        Self::Forbidden(refusal)
    }
}

impl From<TlsError> for ConnectError {
    fn from(error: TlsError) -> Self {
        Self::Tls(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn running_out_of_descriptors_is_named_so() {
        for code in [23, 24] {
            assert_eq!(
                connect_failure(&io::Error::from_raw_os_error(code)),
                ConnectError::OutOfResources
            );
        }
    }
}
