//! TLS as tests speak it: authorities, origins, and a client on a socket.

use super::{Certificates, Throwaway, Trust};
use crate::{Origin, OriginOptions};
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, StreamOwned};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;

/// A client's connection.
pub type Secure = StreamOwned<ClientConnection, TcpStream>;

/// Hosts that the certificates of these tests are for.
const HOSTS: [&str; 2] = ["localhost", "127.0.0.1"];

/// An authority for those who end TLS: its certificates, and who trusts it.
pub fn authority() -> (Certificates, Trust) {
    let made = Throwaway::of(&HOSTS).expect("made");
    let server = made.server();
    let certificates = Certificates::new(move |host, _| HOSTS.contains(&host).then(|| Arc::clone(&server)));
    (certificates, trusting(&[made.authority()]))
}

/// Who trusts these authorities.
pub fn trusting(authorities: &[&str]) -> Trust {
    let mut trust = Trust::default();
    for authority in authorities {
        trust.add_pem(authority.as_bytes()).expect("PEM");
    }
    trust
}

/// The verifying origin behind TLS, at all addresses of this machine, with a certificate for some of them; and who trusts it.
pub fn origin() -> (Origin, Trust) {
    let listen = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
    let origin = Origin::start_tls(OriginOptions { listen, threads: 1 }, 1).expect("started");
    let trust = trusting(&[origin.authority().expect("it speaks TLS")]);
    (origin, trust)
}

/// A connection on which TLS is spoken, in a tunnel if there is one to be opened; the handshake is still to come.
pub fn secure(to: SocketAddr, tunnel: Option<&str>, name: &str, trust: &Trust) -> Secure {
    let mut stream = TcpStream::connect(to).expect("connected");
    if let Some(authority) = tunnel {
        let text = format!("CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n");
        stream.write_all(text.as_bytes()).expect("sent");
        let (mut answer, mut byte) = (Vec::new(), [0]);
        while !answer.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|read| read == 1) {
            answer.push(byte[0]);
        }
        assert!(answer.starts_with(b"HTTP/1.1 200 "), "{}", String::from_utf8_lossy(&answer));
    }
    let name = ServerName::try_from(name.to_owned()).expect("a name");
    StreamOwned::new(ClientConnection::new(trust.client(false), name).expect("a client"), stream)
}
