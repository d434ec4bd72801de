//! Clients that send requests one after another, on one connection.

use bytes::Bytes;
use std::future::poll_fn;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};

pub fn http1(proxy: SocketAddr, urls: impl Iterator<Item = String>) {
    let mut stream = TcpStream::connect(proxy).expect("connected");
    let mut reader = BufReader::new(stream.try_clone().expect("a second handle"));
    for url in urls {
        let request = format!("GET {url} HTTP/1.1\r\nHost: {}\r\n\r\n", host(&url));
        stream.write_all(request.as_bytes()).expect("sent");
        let (mut length, mut status) = (0, String::new());
        reader.read_line(&mut status).expect("a status");
        assert!(status.starts_with("HTTP/1.1 200 "), "{url}: {status}");
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).expect("a field");
            if let Some(bytes) = line.to_lowercase().strip_prefix("content-length: ") {
                length = bytes.trim().parse().expect("a length");
            }
            if line == "\r\n" {
                break;
            }
        }
        reader.read_exact(&mut vec![0; length]).expect("a body");
    }
}

pub fn http2(proxy: SocketAddr, urls: impl Iterator<Item = String>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let stream = tokio::net::TcpStream::connect(proxy).await.expect("connected");
        let (client, connection) = h2::client::handshake(stream).await.expect("HTTP/2");
        let connection = tokio::spawn(connection);
        let mut client: h2::client::SendRequest<Bytes> = client;
        for url in urls {
            poll_fn(|context| client.poll_ready(context)).await.expect("ready");
            let request = http::Request::get(&url).body(()).expect("a request");
            let (response, _) = client.send_request(request, true).expect("sent");
            let response = response.await.expect("a response");
            assert_eq!(response.status(), 200, "{url}");
            let mut body = response.into_body();
            while let Some(piece) = body.data().await {
                let length = piece.expect("a part of the body").len();
                body.flow_control().release_capacity(length).expect("released");
            }
        }
        connection.abort();
    });
}

fn host(url: &str) -> &str {
    url.trim_start_matches("http://").split('/').next().unwrap_or_default()
}
