//! Tests that an origin learns the client's address by the PROXY protocol, and that clients share
//! no connection to such an origin.

use crate::origins::bench::{group, serving};
use foxy_proxy::core::addresses::proxy_header::HeaderVersion;
use foxy_proxy::upstream::GroupSettings;
use foxy_testkit::http::{ok, read_head};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};

/// The client's port in each PROXY header that the server has received.
type Named = Arc<Mutex<Vec<u16>>>;

/// Starts a server that expects a PROXY header of version 2 before the requests of each connection.
fn server() -> (SocketAddr, Named) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("bound");
    let address = listener.local_addr().expect("bound");
    let named = Named::default();
    let seen = Arc::clone(&named);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, seen) = (stream.expect("accepted"), Arc::clone(&seen));
            std::thread::spawn(move || {
                let mut header = [0; 28];
                stream.read_exact(&mut header).expect("a header");
                assert_eq!(&header[12..16], [0x21, 0x11, 0, 12], "TCP over IPv4");
                let port = u16::from_be_bytes([header[24], header[25]]);
                seen.lock().expect("no panic").push(port);
                while read_head(&mut stream).is_some() {
                    let _proxy_left = stream.write_all(&ok("Cache-Control: no-store\r\n", b"x"));
                }
            });
        }
    });
    (address, named)
}

#[test]
fn each_client_has_its_own_connections_and_reuses_them() {
    let (address, named) = server();
    let named_group =
        GroupSettings { proxy_header: Some(HeaderVersion::V2), ..group("shop", &[address]) };
    let proxy = serving(vec![named_group]);
    let mut clients = [proxy.connect(), proxy.connect()];
    for _ in 0..3 {
        for client in &mut clients {
            let answer = client.ask("GET /a HTTP/1.1\r\nHost: a.test\r\n\r\n");
            assert_eq!(answer.status, 200, "{}", answer.head);
        }
    }
    let ports = clients.map(|client| client.stream.local_addr().expect("connected").port());
    assert_eq!(*named.lock().expect("no panic"), ports);
}
